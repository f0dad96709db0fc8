import Foundation
import TestSupport
import Testing

/// Archives of less than 2 MB whose lists of paths take hundreds: refused below 300 MB.
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

  @Test(
    "A list of a million rows, and one with a text of 200 MB",
    arguments: [
      """
      INSERT INTO superseded WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 1000000)
      SELECT n * 512, 'a', 1 FROM r
      """,
      "INSERT INTO excluded VALUES ('x', 'layout', 'x', replace(hex(zeroblob(100000000)), '00', 'aa'))",
    ]) func largeList(_ sql: String) throws
  {
    try Sandbox.with { sandbox in
      try sandbox.write("Notes/file", "mine\n")
      let make = Sandbox.repository + "/Tests/BackupRepositoryTests/HostileArchives/make.py"
      try sandbox.run(Tools.system("python3"), make, "large", sql, sandbox("A"))
      #expect(try RawFiles.status(Array(sandbox("A").utf8)).st_size < 2_000_000)
      for arguments in [
        ["show", "A"], ["verify", "A", "--data"], ["restore", "A", "Notes", "--from-other"],
      ] {
        let (result, memory) = try measured(sandbox, arguments)
        #expect(
          result.exitCode == 4 && (result.output + result.errors).contains("--max-size"),
          "\(arguments) \(result)")
        #expect((1000..<Self.limit).contains(memory), "\(arguments): \(memory) KiB")
      }
      #expect(try sandbox.text("Notes/file") == "mine\n")
    }
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
