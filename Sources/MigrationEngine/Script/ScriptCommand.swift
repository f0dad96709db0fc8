import Formats

/// What a script step runs: a file of the migration's directory, or a program of the machine.
struct ScriptCommand: Sendable, CustomStringConvertible {
  static let keys = ["run", "program", "arguments"]

  enum Kind: Sendable {
    /// By its path in the migration's directory.
    case file(String)
    /// By an absolute path, or a name that is looked for in PATH.
    case program(String)
  }

  let kind: Kind
  let arguments: [String]

  init(_ reader: YAMLReader, _ files: MigrationFiles) throws {
    arguments = try reader.texts("arguments") ?? []
    switch (reader["run"], reader["program"]) {
    case (let file?, nil): kind = try Self.file(file, files)
    case (nil, let program?): kind = try Self.program(program)
    case (_?, let program?): throw program.position.error("name either `run` or `program`, not both")
    case (nil, nil):
      throw reader.position.error(
        "\(reader.what) needs `run`, a file of the migration's directory, or `program`, a program of the machine"
      )
    }
  }

  /// A file alone.
  init(file node: YAMLNode, _ files: MigrationFiles) throws {
    kind = try Self.file(node, files)
    arguments = []
  }

  private static func file(_ node: YAMLNode, _ files: MigrationFiles) throws -> Kind {
    let name = try node.text("`run`")
    _ = try files.bytes(of: name, namedAt: node.position)
    return .file(name)
  }

  private static func program(_ node: YAMLNode) throws -> Kind {
    let name = try node.text("`program`")
    guard !name.isEmpty, !name.utf8.contains(0), name.hasPrefix("/") || !name.contains("/") else {
      throw node.position.error("`program` is an absolute path, or a name that is looked for in PATH")
    }
    return .program(name)
  }

  /// For messages: `convert.sh`.
  var description: String {
    switch kind {
    case .file(let name), .program(let name): "`\(name)`"
    }
  }
}
