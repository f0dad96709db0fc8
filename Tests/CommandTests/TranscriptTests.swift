import Foundation
import TestSupport
import Testing

/// Every session in `Transcripts/` goes as it is written there. To record new ones, or a wanted change, run the
/// tests with `UPDATE_TRANSCRIPTS=1`, and read the difference before it is committed.
@Suite struct TranscriptTests {
  static let folder = Sandbox.repository + "/Tests/CommandTests/Transcripts"

  static func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).filter {
      $0.hasSuffix(".txt") && (TestExtent.isFull || !$0.hasPrefix("long-"))
    }.sorted()
  }

  @Test(arguments: try names()) func `The session goes as it is written`(_ name: String) throws {
    let file = Self.folder + "/" + name
    let written = Transcript(try String(contentsOfFile: file, encoding: .utf8))
    #expect(!written.steps.isEmpty)
    let replayed = try Sandbox.with { try written.replayed(in: $0) }
    let variables = ProcessInfo.processInfo.environment
    if variables["UPDATE_TRANSCRIPTS"] != nil {
      try #require(variables["CI"] == nil, "transcripts are recorded by a person, never by CI")
      try Data(replayed.text.utf8).write(to: URL(fileURLWithPath: file))
      return
    }
    for (wanted, got) in zip(written.steps, replayed.steps) {
      let difference = Self.difference(wanted.output, got.output)
      #expect(difference.isEmpty, "\(name), $ \(wanted.command)\n\(difference.joined(separator: "\n"))")
    }
  }

  @Test func `Every command has a session of its own, and a session that shows what it refuses`() throws {
    let sessions = try Self.names().map { name in
      Transcript(try String(contentsOfFile: Self.folder + "/" + name, encoding: .utf8))
    }
    let steps = sessions.flatMap(\.steps)
    for command in try ProgramCommand.top() {
      let own = steps.filter { step in
        (step.command + " ").hasPrefix("drydock \(command) ") && !step.command.hasSuffix("--help")
      }
      #expect(!own.isEmpty, "no transcript runs `drydock \(command)`")
      #expect(
        own.contains { $0.output.contains { $0.hasPrefix("[exit ") } },
        "no transcript shows `drydock \(command)` refusing something")
    }
  }

  @Test func `Each command's help has an example; each command has --json`() throws {
    let commands = try ProgramCommand.all()
    #expect(commands.count > 40)
    for (words, command) in commands {
      let text = [command.abstract, command.discussion].compactMap { $0 }.joined(separator: "\n")
      let name = words.joined(separator: " ")
      #expect(text.contains("drydock \(name) "), "an example of \(name) stands before the usage:\n\(text)")
      #expect(command.has("json") || command.subcommands != nil, "\(name)")
    }
  }

  @Test func `A placeholder stands for what is another each time, and for nothing else`() throws {
    try Sandbox.with { sandbox in
      let line = """
        \(sandbox("Backups"))/com.example.notes_20261120T101500Z_1f2e3d4c01234567.tar.zst  12 kB  20261120T101500Z-1f2e3d4c \
        2026-11-20T10:15:00Z in 3 ms, 4 files
        """
      #expect(
        Transcript.normalized(line, in: sandbox)
          == "{HERE}/Backups/{ARCHIVE}  {SIZE}  {ID} {TIME} in {MS} ms, 4 files")
      #expect(Transcript.normalized("    9 keys,     3 files", in: sandbox) == "    9 keys,  3 files")
    }
  }

  private static func difference(_ wanted: [String], _ got: [String]) -> [String] {
    guard got != wanted else { return [] }
    return got.difference(from: wanted).map { change in
      switch change {
      case .remove(let line, let text, _): "  - \(line + 1): \(text)"
      case .insert(let line, let text, _): "  + \(line + 1): \(text)"
      }
    }
  }
}
