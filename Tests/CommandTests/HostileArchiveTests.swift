import Foundation
import TestSupport
import Testing

@Suite("The committed hostile archives, by the program") struct HostileArchiveTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// The hostile ones as a repository of their own, beside which nothing may change.
  private func prepare() throws -> [HostileArchive] {
    try sandbox.write("Notes/file", "mine\n")
    try sandbox.write("outside/file", "untouched\n")
    try sandbox.run(Tools.system("mkdir"), sandbox("Hostile"))
    let archives = try HostileArchive.all().filter { $0.noticed != .never }
    for archive in archives { try sandbox.run(Tools.system("cp"), archive.path, sandbox("Hostile")) }
    return archives
  }

  @Test func `verify --data says of each what is wrong`() throws {
    let archives = try prepare()
    let before = try sandbox.tree(".").without("tmp")
    let files = archives.map { "Hostile/" + $0.description + ".tar.zst" }
    let verified = try sandbox.drydock(["verify", "--data"] + files).expect(exit: 4)
    // The paths that one affects follow it.
    let lines = verified.output.split(separator: "\n").filter { !$0.hasPrefix("  ") }
    #expect(lines.count == files.count)
    for (line, file) in zip(lines, files) { #expect(line.hasPrefix("BAD \(file)  "), "\(line)") }
    let structure = try sandbox.drydock(["verify"] + files)
    let bad = structure.output.split(separator: "\n").filter { $0.hasPrefix("BAD ") }
    #expect(bad.count == archives.filter { $0.noticed != .data }.count)
    #expect(structure.exitCode == 4)
    // A list tells which it cannot read, and goes on.
    let listed = try sandbox.drydock("list -r Hostile").expect(exit: 3)
    #expect(!listed.errors.contains("error:"), "\(listed)")
    try sandbox.tree(".").without("tmp").expectSame(as: before)
  }

  @Test func `What would command the terminal is shown as text`() throws {
    try sandbox.create(version: 4)
    let link = sandbox("Notes/Documents/link")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "\u{1B}[2Jgone")
    let shown = try sandbox.succeed("show", try sandbox.snapshot())
    #expect(!shown.contains("\u{1B}"))
    #expect(shown.contains("Documents/link → \\x1b[2Jgone"))
  }

  @Test func `show and restore refuse what they would have to read`() throws {
    let archives = try prepare()
    // One of each kind: the library's tests try all.
    let examples = [
      "bomb", "entry-path-up-file", "extent-shared", "sql-view", "tree-cycle", "location-hash",
      "table-frame-4-gib", "age", "header-bomb", "frame-window-of-2-gib",
    ]
    try sandbox.expectUnchanged {
      for archive in archives where examples.contains(archive.description) {
        let file = "Hostile/" + archive.description + ".tar.zst"
        try sandbox.expectError(["restore", file, "Notes", "--from-other"], exit: 4, [file])
        try sandbox.expectError(["restore", file, "New"], exit: 4, [file])
        if archive.noticed == .open { try sandbox.expectError(["show", file], exit: 4, [file]) }
      }
    }
    #expect(try sandbox.text("outside/file") == "untouched\n")
    try sandbox.expectRefusal("show Hostile/bomb.tar.zst --max-size many", exit: 64, ["is not a size"])
    try sandbox.expectRefusal("show Hostile/name-dot.tar.zst --max-size 1kB", exit: 4, ["--max-size"])
  }

  /// Runs `drydock`, started by a small process: what a program has counts from the memory of the one that started it.
  ///
  /// - Returns: its result, and the largest memory that it took, in KiB.
  private func measured(_ arguments: [String]) throws -> (result: CommandResult, memory: Int) {
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

  /// `HostileArchiveTests` of the library has other lists that would take the memory, and does not measure it.
  @Test func `An archive of less than 2 MB with a list of a million rows`() throws {
    try sandbox.write("Notes/file", "mine\n")
    try sandbox.python(
      """
      import sys
      sys.dont_write_bytecode = True
      sys.path.insert(0, "\(Sandbox.repository)/Tests/BackupRepositoryTests/HostileArchives")
      import make
      make.LEVEL, box = "-1", make.Box()
      rows = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 1000000)"
      box.sql = f"INSERT INTO superseded {rows} SELECT n * 512, 'a', 1 FROM r"
      open("A", "wb").write(box.archive())
      """)
    #expect(try sandbox.read("A").count < 2_000_000)
    for arguments in [["show", "A"], ["restore", "A", "Notes", "--from-other"]] {
      let (result, memory) = try measured(arguments)
      #expect(
        result.exitCode == 4 && (result.output + result.errors).contains("--max-size"),
        "\(arguments) \(result)")
      #expect((1000..<300_000).contains(memory), "\(arguments): \(memory) KiB")
    }
    #expect(try sandbox.text("Notes/file") == "mine\n")
  }

  @Test func `A passphrase that takes 4 GiB to try`() throws {
    try sandbox.write("secret", "made up\n")
    let salt = String(repeating: "A", count: 22), body = String(repeating: "A", count: 43)
    try sandbox.write(
      "A.tar.zst.age",
      "age-encryption.org/v1\n-> scrypt \(salt) 22\n\(body)\n--- \(body)\n"
        + String(repeating: "x", count: 100))
    for command in [["show"], ["verify"]] {
      let (result, memory) = try measured(command + ["A.tar.zst.age", "--passphrase-file", "secret"])
      #expect(result.exitCode == 4 && (result.output + result.errors).contains("256 MiB"), "\(result)")
      #expect((1000..<300_000).contains(memory), "\(memory) KiB")
    }
  }
}
