import TestSupport
import Testing

@Suite("Help")
struct HelpTests {
  @Test("Each command's help has an example; each command has --json")
  func examples() throws {
    let commands = try ProgramCommand.all()
    #expect(commands.count > 40)
    for (words, command) in commands {
      let text = [command.abstract, command.discussion].compactMap { $0 }.joined(separator: "\n")
      let name = words.joined(separator: " ")
      #expect(text.contains("drydock \(name) "), "an example of \(name) stands before the usage:\n\(text)")
      #expect(command.has("json") || command.subcommands != nil, "\(name)")
    }
  }

  /// As the session `help.txt` has it, which is compared with the program.
  @Test("What one needs on the first day fits the first screen; no paragraph is broken early")
  func firstScreen() throws {
    let session = Transcript(
      try String(contentsOfFile: TranscriptTests.folder + "/help.txt", encoding: .utf8))
    for step in session.steps where step.command.hasSuffix(" --help") {
      let (lines, name) = (step.output, step.command)
      let own = ["ARGUMENTS:", "OPTIONS:", "EVERYDAY SUBCOMMANDS:", "SUBCOMMANDS:"]
      let first = lines.prefix { !$0.contains(/^[A-Z ]+:$/) || own.contains($0) }
      #expect(first.count <= 41, "\(name) has \(first.count - 1) lines")
      #expect(lines.allSatisfy { $0.count <= 80 || $0.hasPrefix("USAGE:") }, "\(name)")
      for (line, next) in zip(lines, lines.dropFirst())
      where line.first?.isLetter == true && next.first?.isLetter == true {
        let word = next.prefix { $0 != " " }
        #expect(line.count + 1 + word.count > 77 || line.hasSuffix(":"), "\(name) is broken early: \(line)")
      }
    }
  }
}
