import Foundation
import TestSupport
import Testing

/// Lists of paths that would take the memory are those of `ManifestMemoryTests`.
@Suite("Memory for hostile archives")
struct HostileMemoryTests {
  private static let limit = 300_000

  /// Runs `drydock`, started by a small process: what a program has counts from the memory of the one that started it.
  ///
  /// - Returns: its result, and the largest memory that it took, in KiB.
  private func measured(_ sandbox: Sandbox, _ arguments: [String]) throws -> (
    result: CommandResult, memory: Int
  ) {
    let script = """
      import resource, subprocess, sys
      code = subprocess.run(sys.argv[2:]).returncode
      open(sys.argv[1], "w").write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
      sys.exit(code)
      """
    let result = try sandbox.execute(
      Tools.system("python3"), ["-c", script, sandbox("memory"), sandbox.program] + arguments)
    let memory = try #require(Int(sandbox.text("memory")))
    return (result, memory)
  }

  @Test("A passphrase that takes 4 GiB to try")
  func passphrase() throws {
    try Sandbox.with { sandbox in
      try sandbox.write("secret", "made up\n")
      let salt = String(repeating: "A", count: 22), body = String(repeating: "A", count: 43)
      try sandbox.write(
        "A.tar.zst.age",
        "age-encryption.org/v1\n-> scrypt \(salt) 22\n\(body)\n--- \(body)\n"
          + String(repeating: "x", count: 100))
      for command in [["show"], ["verify"]] {
        let (result, memory) = try measured(
          sandbox, command + ["A.tar.zst.age", "--passphrase-file", "secret"])
        #expect(result.exitCode == 4 && (result.output + result.errors).contains("256 MiB"), "\(result)")
        #expect((1000..<Self.limit).contains(memory), "\(memory) KiB")
      }
    }
  }
}
