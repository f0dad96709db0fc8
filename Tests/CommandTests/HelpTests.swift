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

  @Test("What one needs on the first day fits the first screen; no paragraph is broken early")
  func firstScreen() throws {
    for (words, command) in try ProgramCommand.all() {
      let help = try Command.run(Tools.drydock(), words + ["--help"])
      let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      let own = ["ARGUMENTS:", "OPTIONS:", "EVERYDAY SUBCOMMANDS:", "SUBCOMMANDS:"]
      let first = lines.prefix { !$0.contains(/^[A-Z ]+:$/) || own.contains($0) }
      let name = words.joined(separator: " ")
      #expect(help.succeeded && first.count <= 41, "\(name) has \(first.count - 1) lines")
      #expect(lines.allSatisfy { $0.count <= 80 || $0.hasPrefix("USAGE:") }, "\(name)")
      if command.subcommands == nil {
        #expect(first.contains("OPTIONS:") && lines.contains("OUTPUT AND CONFIGURATION:"))
      }
      for (line, next) in zip(lines, lines.dropFirst())
      where line.first?.isLetter == true && next.first?.isLetter == true {
        let word = next.prefix { $0 != " " }
        #expect(line.count + 1 + word.count > 77 || line.hasSuffix(":"), "\(name) is broken early: \(line)")
      }
    }
  }

  @Test("The program's own help shows the main job and the exit codes")
  func root() throws {
    let result = try Command.run(Tools.drydock(), ["--help"]).expect()
    for text in [
      "drydock snapshot ", "drydock migrate ", "drydock rollback ", "drydock restore ", "64  usage",
    ] {
      #expect(result.output.contains(text))
    }
    let version = try Command.run(Tools.drydock(), ["--version"]).expect()
    #expect(version.output.contains(/^\d+\.\d+\.\d+\n$/), "\(version)")
  }
}
