import TestSupport
import Testing

@Suite("Help")
struct HelpTests {
  /// The commands that the program itself names.
  static func commands() throws -> [String] { try subcommands([]) }

  /// Those and the commands inside of them, such as `vault list`.
  static func allCommands() throws -> [String] {
    try commands().flatMap { command in
      [command] + (try subcommands([command])).map { "\(command) \($0)" }
    }
  }

  private static func subcommands(_ command: [String]) throws -> [String] {
    let help = try Command.run(Tools.drydock(), command + ["--help"]).output
    guard let start = help.range(of: "SUBCOMMANDS:\n") else { return [] }
    let list = help[start.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
    return list.prefix { !$0.isEmpty }.compactMap { line in
      guard line.hasPrefix("  "), !line.hasPrefix("   ") else { return nil }
      return line.split(separator: " ").first.map(String.init)
    }
  }

  @Test("Every command that is asked for is there")
  func complete() throws {
    let wanted = [
      "inspect", "explain", "audit", "snapshot", "list", "show", "verify", "diff", "export", "restore",
      "migrate", "status", "validate", "test", "fixture", "new", "release", "repair",
      "baseline", "rollback", "log", "recover", "keygen", "vault", "defaults", "init",
      "forget", "tag", "import",
    ]
    let commands = try Self.commands()
    #expect(wanted.filter { !commands.contains($0) } == [])
  }

  @Test("It shows an example that the program understands", arguments: try allCommands())
  func example(_ command: String) throws {
    let result = try Command.run(Tools.drydock(), command.split(separator: " ").map(String.init) + ["--help"])
    #expect(result.succeeded && result.errors.isEmpty, "\(result)")
    let head = result.output.prefix(
      upTo: result.output.range(of: "USAGE:")?.lowerBound ?? result.output.startIndex)
    #expect(head.contains("drydock \(command) "), "an example stands before the usage:\n\(result.output)")
    #expect(result.output.contains("--json"))
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
