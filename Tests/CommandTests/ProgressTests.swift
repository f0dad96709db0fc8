import Foundation
import TestSupport
import Testing

/// What commands show of their progress on standard error.
@Suite struct ProgressTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  private static let erase = "\r\u{1B}[K"

  /// A line of `--progress json`.
  private struct Line: Decodable {
    struct Progress: Decodable {
      var phase: String?
      var bytes: UInt64, files: Int, seconds: Double, ended: Bool
      var total_bytes: UInt64?, total_files: Int?, item: Int?, items: Int?
    }

    var progress: Progress
  }

  /// The lines of progress on standard error; the others must not look like one.
  private func lines(_ result: CommandResult) throws -> [Line.Progress] {
    try result.errors.split(separator: "\n").filter { $0.contains("\"progress\"") }.map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8)).progress
    }
  }

  /// A migration that takes more than a second.
  private func addSlowMigration() throws {
    try sandbox.write(
      "Migrations/0007_slow/migration.yaml",
      "description: Takes long\nsteps:\n  - script: {run: slow.sh}\n")
    try sandbox.write("Migrations/0007_slow/slow.sh", "#!/bin/sh\nsleep 2\necho x >Documents/slow.txt\n")
    try sandbox.run("/bin/chmod", "+x", sandbox("Migrations/0007_slow/slow.sh"))
  }

  /// What a command prints at a terminal, on both streams.
  private func atTerminal(_ line: String, _ environment: [String: String?] = [:]) throws -> String {
    let variables = ["TERM": "xterm"].merging(environment) { $1 }
    return try sandbox.atTerminal("", line.words, environment: variables).expect().errors
  }

  @Test func `JSON Lines on request: the last one has the sums, and nothing names a file`() throws {
    try sandbox.create(photos: 40)
    let archive = try sandbox.snapshot()
    let all: [(phases: [String], command: [String])] = [
      (["snapshot"], ["snapshot", "Notes", "-r", "Backups", "--full"]),
      (["verify"], ["verify", "-r", "Backups", "--data"]),
      (["export"], ["export", archive, "-o", "copy.tar.zst"]),
      (["list", "compare"], ["diff", archive, "Notes"]),
      (["compare", "restore", "check", "commit"], ["restore", archive, "New", "--from-other"]),
      (["list"], ["list", "-r", "Backups"]), (["inspect"], ["inspect", "Notes"]),
      (["list", "remove"], ["forget", "-r", "Backups", "--keep-last", "1"]),
      (["migrate", "check", "commit"], ["migrate", "Notes", "-m", "Migrations", "--no-snapshot"]),
      (["rollback", "check", "commit"], ["rollback", "Notes"]),
    ]
    for (phases, command) in all {
      let result = try sandbox.drydock(command + ["--progress", "json"]).expect()
      let lines = try lines(result)
      let last = try #require(lines.last, "\(result)")
      #expect(last.ended && !lines.dropLast().contains(where: \.ended), "\(result)")
      #expect(phases.contains(last.phase ?? ""), "\(command): \(lines)")
      #expect(Double(lines.count) <= last.seconds * 10 + 3, "\(lines.count) in \(last.seconds) s")
      #expect(
        !result.errors.split(separator: "\n").contains { $0.contains("progress") && $0.contains("Doc") })
      if command[0] == "verify" {
        #expect(last.items == 2 && last.item == 2 && last.files > 40, "\(last)")
        #expect(try last.bytes > 0 && #require(last.total_bytes) >= last.bytes, "\(last)")
      }
      if command[0] == "snapshot" { #expect(last.bytes > 40_000 && last.files > 40, "\(last)") }
    }
    let both = try sandbox.drydock("verify -r Backups --json --progress json").expect()
    #expect(try lines(both).last?.ended == true)
    #expect(try JSONSerialization.jsonObject(with: Data(both.outputBytes)) is [String: Any])
  }

  @Test func `A command that fails prints the last line before the error`() throws {
    try sandbox.create()
    let archive = try sandbox.snapshot()
    var bytes = try sandbox.read(archive.replacing(sandbox.directory.path + "/", with: ""))
    for index in bytes.count / 4..<bytes.count / 2 { bytes[index] ^= 0xff }
    try sandbox.write("damaged.tar.zst", bytes: bytes)
    let result = try sandbox.drydock("export damaged.tar.zst -o x --progress json").expect(exit: 4)
    let ends = result.errors.split(separator: "\n").suffix(2)
    #expect(ends.first?.contains("\"ended\":true") == true && ends.last?.hasPrefix("drydock: error") == true)
  }

  @Test func `By option or variable; nothing in a pipe without either, and with --quiet`() throws {
    try sandbox.create()
    let command = ["snapshot", "Notes", "-r", "Backups", "--full"]
    let shown: [([String], String?, Bool)] = [
      ([], nil, false), (["--progress", "auto"], nil, false), (["--progress", "none"], "json", false),
      ([], "json", true), ([], "", false), (["--quiet", "--progress", "json"], nil, false),
      (["--quiet"], "json", false),
    ]
    for (options, variable, isShown) in shown {
      let result = try sandbox.drydock(command + options, environment: ["DRYDOCK_PROGRESS": variable])
        .expect()
      #expect(!result.errors.contains("\u{1B}"), "\(result)")
      #expect(try lines(result).isEmpty != isShown, "\(options) \(variable ?? "")")
    }
    for (options, variable) in [(["--progress", "lots"], nil), ([], "lots")] as [([String], String?)] {
      try sandbox.drydock(command + options, environment: ["DRYDOCK_PROGRESS": variable]).expect(
        exit: 64, errors: "lots")
    }
  }

  @Test func `A line on a terminal, from the first second on, within its width, erased at the end`() throws {
    try sandbox.create()
    try addSlowMigration()
    let shown = try atTerminal("migrate Notes", ["COLUMNS": "14"])
    let parts = shown.components(separatedBy: Self.erase)
    #expect(parts.contains("migrate 7/7, "), "\(shown.debugDescription)")
    // All but the first and the last are the line as it was; after that come the results.
    #expect(parts.dropFirst().dropLast().allSatisfy { $0.count <= 13 && !$0.contains("\n") }, "\(parts)")
    #expect(parts.first == "" && parts.last?.contains("version 0 → 7") == true, "\(parts)")
  }

  @Test(arguments: [("--progress none", "xterm"), ("--json", "xterm"), ("", "dumb")])
  func `No line on a terminal`(_ options: String, _ terminal: String) throws {
    try sandbox.create()
    try addSlowMigration()
    #expect(try !atTerminal("migrate Notes " + options, ["TERM": terminal]).contains("\u{1B}"))
  }

  @Test func `The line does not come back while a question waits for its answer`() throws {
    try sandbox.create()
    let archive = try sandbox.snapshot()
    try sandbox.write("Notes/Documents/extra.txt", "extra")
    let done = try sandbox.atTerminal("y", ["restore", archive, "Notes"], before: "sleep 1.5")
    // What came after the question: first the answer, which the terminal repeats.
    #expect(done.succeeded && done.errors.drop(while: \.isNewline).hasPrefix("y\r\n"), "\(done)")
  }
}
