import AppContainer

/// Reads the body of a migration from YAML or SQL.
struct MigrationParser {
  /// The files that steps may name.
  let files: MigrationFiles

  private static let keys = ["description", "steps", "check", "verify", "irreversible", "down"]

  func yaml(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let document = try YAMLDocument(bytes, file: file)
    guard let root = document.root else {
      throw MigrationError(.catalog, "\(file):1:1: the migration is empty: it needs `steps:`")
    }
    let reader = try YAMLReader(root, what: "a migration", keys: Self.keys)
    var body = MigrationBody()
    body.notes = document.notes
    body.summary = try reader.text("description")
    body.isIrreversible = try reader.boolean("irreversible") ?? false
    body.steps = try steps(try reader.required("steps"), "`steps`")
    body.down = try reader["down"].map { try steps($0, "`down`") } ?? []
    body.checks = try reader["check"].map { try assertions($0, "`check`") } ?? []
    body.verifications = try reader["verify"].map { try assertions($0, "`verify`") } ?? []
    try body.refuseBeforeInChecks()
    return body
  }

  private func steps(_ node: YAMLNode, _ what: String) throws -> [MigrationStep] {
    try node.elements(what).map { element in
      let (name, position, arguments) = try Self.single(element, "a step of \(what)")
      guard let type = Operations.named[name] else {
        throw position.error(
          "unknown operation `\(name)`; " + NearestWord.hint(for: name, among: Array(Operations.named.keys)))
      }
      let reader = try YAMLReader(arguments, what: name, keys: type.keys)
      return MigrationStep(position: position, operation: try type.init(reading: reader, files: files))
    }
  }

  private func assertions(_ node: YAMLNode, _ what: String) throws -> [Assertion] {
    try node.elements(what).map { element in
      let (name, position, arguments) = try Self.single(element, "an element of \(what)")
      return try Assertion(name, position: position, arguments: arguments)
    }
  }

  /// The one key of a mapping, and its value.
  private static func single(_ node: YAMLNode, _ what: String) throws -> (String, YAMLPosition, YAMLNode) {
    let pairs = try node.pairs(what).pairs
    guard let pair = pairs.first, case .text(let name) = pair.key.value else {
      throw node.position.error("\(what) is `operation: {arguments}`")
    }
    if pairs.count > 1 {
      throw pairs[1].keyPosition.error(
        "\(what) has one operation: start another line with `- `, or indent `\(pairs[1].key.source)` further")
    }
    return (name, pair.keyPosition, pair.value)
  }
}
