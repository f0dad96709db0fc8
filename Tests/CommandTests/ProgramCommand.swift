import Foundation
import TestSupport

/// A command of the program, as the program describes itself.
struct ProgramCommand: Decodable {
  struct Argument: Decodable {
    struct Name: Decodable { var name: String }
    var kind: String
    var names: [Name]?
    var valueName: String?
  }

  var commandName: String
  var abstract: String?
  var discussion: String?
  var arguments: [Argument]?
  var subcommands: [ProgramCommand]?

  /// The program's own, which contains all others.
  private static let root = Result {
    struct Document: Decodable { var command: ProgramCommand }
    let result = try Command.run(Tools.drydock(), ["--experimental-dump-help"])
    return try JSONDecoder().decode(Document.self, from: Data(result.outputBytes)).command
  }

  /// All commands by their words, such as `vault list`, also those that only have others inside, such as `vault`.
  static func all() throws -> [(words: [String], command: ProgramCommand)] {
    try root.get().descendants([])
  }

  /// The program's own commands: `vault`, not `vault list`.
  static func top() throws -> [String] { try root.get().others.map(\.commandName) }

  private var others: [ProgramCommand] { (subcommands ?? []).filter { $0.commandName != "help" } }

  private func descendants(_ path: [String]) -> [(words: [String], command: ProgramCommand)] {
    others.flatMap { other in
      let words = path + [other.commandName]
      return [(words, other)] + other.descendants(words)
    }
  }

  func has(_ option: String) -> Bool {
    arguments?.contains { $0.names?.contains { $0.name == option } == true } == true
  }

  /// The values that it takes without a name: commands that take the same ones refuse others in the same way.
  var values: String {
    (arguments ?? []).filter { $0.kind == "positional" }.map { $0.valueName ?? "" }.joined(separator: " ")
  }
}
