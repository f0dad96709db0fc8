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

  @Test("The program's own help shows the main job and the exit codes")
  func root() throws {
    let result = try Command.run(Tools.drydock(), ["--help"])
    #expect(result.succeeded)
    for text in [
      "drydock snapshot ", "drydock migrate ", "drydock rollback ", "drydock restore ", "64  usage",
    ] {
      #expect(result.output.contains(text))
    }
    let version = try Command.run(Tools.drydock(), ["--version"])
    #expect(version.succeeded && version.output.contains(/^\d+\.\d+\.\d+\n$/), "\(version)")
  }
}
