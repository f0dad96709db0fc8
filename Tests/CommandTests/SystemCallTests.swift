import Foundation
import TestSupport
import Testing

/// What a command costs for each file in system calls, which are the same on every machine; times are not. Measured as the difference
/// between many small files and few, so that what a command does once does not count.
@Suite struct SystemCallTests {
  private static let few = 200, many = 2000

  /// A sandbox with a container of small files, fifty in a directory.
  private static func sandbox(files: Int) throws -> Sandbox {
    let sandbox = try Sandbox()
    try sandbox.write(
      "drydock.yaml", "app: many\nlayout: generic\ndefaults: {standard: Library/settings.plist}\n")
    try sandbox.write(
      "Settings/0001_theme.yaml", "description: A theme\nsteps:\n  - defaults.set: {values: {theme: light}}\n"
    )
    try sandbox.write("App/Library/settings.plist", "<plist version=\"1.0\"><dict/></plist>")
    for file in 0..<files { try sandbox.write("App/Documents/\(file / 50)/\(file).txt", "file \(file)\n") }
    return sandbox
  }

  private static func calls(_ command: String, in sandbox: Sandbox, commit: String?) throws -> Int {
    // In a namespace without other processes, which a commit would look at.
    let space =
      (getuid() == 0 ? [] : ["--map-root-user"]) + ["--pid", "--fork", "--kill-child", "--mount-proc"]
    let trace = [try Tools.system("strace"), "-f", "-c", "-o", sandbox("calls"), sandbox.program]
    let result = try sandbox.with(commit: commit).execute(
      Tools.system("unshare"), space + trace + command.words)
    guard result.succeeded else { throw SystemFailure("\(command): \(result)") }
    // The last line has the sums: percent, seconds, microseconds per call, calls, errors.
    let sums = try String(contentsOfFile: sandbox("calls"), encoding: .utf8).split(separator: "\n").last
    return try #require(sums?.split(separator: " ").dropFirst(3).first.flatMap { Int($0) })
  }

  @Test func `Snapshot, restore and migrate keep their budgets`() async throws {
    let sandboxes = try (Self.sandbox(files: Self.few), Self.sandbox(files: Self.many))
    func perFile(_ command: String, commit: String? = nil) throws -> Double {
      let few = try Self.calls(command, in: sandboxes.0, commit: commit)
      let many = try Self.calls(command, in: sandboxes.1, commit: commit)
      return Double(many - few) / Double(Self.many - Self.few)
    }
    #expect(try perFile("snapshot App -r Backups") <= 9)
    #expect(try perFile("restore -r Backups latest New") <= 10)
    for sandbox in [sandboxes.0, sandboxes.1] { try sandbox.succeed("baseline App -m Settings --to 0") }
    // An exchange links each file into the new tree, and removes it from the old one.
    #expect(try perFile("migrate App -m Settings --no-snapshot") <= 11)
    for sandbox in [sandboxes.0, sandboxes.1] { try sandbox.succeed("rollback App --to 0") }
    #expect(try perFile("migrate App -m Settings --no-snapshot", commit: "in-place") <= 3)
    // A file counts as unchanged when it was older than a minute at the capture before.
    try await Task.sleep(for: .seconds(61))
    for sandbox in [sandboxes.0, sandboxes.1] { try sandbox.succeed("snapshot App -r Backups") }
    #expect(try perFile("snapshot App -r Backups") <= 2)
    // Files in two directories change, so that the whole container is exchanged.
    for sandbox in [sandboxes.0, sandboxes.1] { try sandbox.write("App/new.txt", "new\n") }
    #expect(try perFile("restore -r Backups latest App --yes") <= 13)
  }

  @Test func `The checks of a migration's statements are in one transaction`() throws {
    func calls(_ count: Int) throws -> Int {
      let sandbox = try Sandbox()
      try sandbox.write("drydock.yaml", "app: many\nlayout: generic\ndatabases: {notes: [notes.sqlite]}\n")
      try sandbox.write("App/Documents/1.txt", "a file\n")
      let head = "-- drydock: database notes\n-- drydock: irreversible\n-- migrate:up\n"
      for number in 1...count {
        let name = String("000\(number)".suffix(4))
        try sandbox.write("Tables/\(name)_table.sql", head + "CREATE TABLE t\(number) (id INTEGER);\n")
      }
      try sandbox.succeed("baseline App -m Tables --to 0")
      return try Self.calls("migrate App -m Tables --no-snapshot", in: sandbox, commit: nil)
    }
    // A transaction for each query of the checks would make it more than 80.
    #expect(try calls(120) - calls(20) <= 100 * 72)
  }

  @Test(arguments: ["exchange", "in-place"])
  func `Plain copies of a secret are gone before its move is journaled as done`(_ commit: String) throws {
    let sandbox = try Sandbox().with(commit: commit)
    try sandbox.create()
    try sandbox.traced(
      "unlinkat,syncfs,fsync,fdatasync", log: sandbox("calls"), ["migrate", "Notes", "--no-snapshot"]
    ).expect()
    let calls = try sandbox.text("calls").split(separator: "\n")
    let kept = try #require(calls.lastIndex { $0.contains(/unlinkat\(.*"before-\d+"/) })
    let old = calls.lastIndex { $0.contains(/unlinkat\(.*"com.example.notes.plist"/) } ?? kept
    let synced = try #require(calls.lastIndex { $0.contains("syncfs(") })
    #expect(max(kept, old) < synced, "\(calls[kept...])")
    #expect(calls[synced...].contains { $0.contains(/\sf(data)?sync\(/) }, "the journal: \(calls[kept...])")
  }

  @Test func `A snapshot opens the newest archive, and not all that are in the repository`() async throws {
    let sandbox = try Self.sandbox(files: 1)
    func perArchive() async throws -> Int {
      // Those of one second are all opened.
      try await Task.sleep(for: .seconds(1.1))
      try sandbox.succeed("snapshot App -r Backups --full")
      try await Task.sleep(for: .seconds(1.1))
      return try Self.calls("snapshot App -r Backups", in: sandbox, commit: nil)
    }
    let few = try await perArchive()
    for _ in 0..<20 { try sandbox.succeed("snapshot App -r Backups --full") }
    // A name and a status of each; opened, it would be ten calls more. A chain of incremental ones is opened.
    #expect(try await perArchive() - few <= 22 * 4)
  }
}
