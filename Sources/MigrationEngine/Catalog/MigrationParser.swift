import DrydockErrors
import Formats

/// Reads the body of a migration from YAML or SQL.
struct MigrationParser {
  /// The files that steps may name.
  let files: MigrationFiles
  /// What is wrong in single steps and assertions, in the order of the file's keys.
  private(set) var problems: [DrydockError] = []

  private static let keys = ["description", "steps", "check", "verify", "irreversible", "down"]

  init(files: MigrationFiles) { self.files = files }

  /// Reads a `migration.yaml` or its like. What is wrong in one step goes to ``problems``, and the rest is read.
  ///
  /// - Throws: when nothing of the file can be read.
  mutating func yaml(_ bytes: [UInt8], file: String) throws -> MigrationBody {
    let document = try YAMLDocument(bytes, file: file)
    guard let root = document.root else {
      throw DrydockError(.catalog, "\(file):1:1: the migration is empty: it needs `steps:`")
    }
    let reader = try YAMLReader(root, what: "a migration", keys: Self.keys)
    var body = MigrationBody()
    body.notes = document.notes
    body.summary = attempt { try reader.text("description") } ?? nil
    body.isIrreversible = (attempt { try reader.boolean("irreversible") } ?? nil) ?? false
    body.steps = attempt { try reader.required("steps") }.map { steps($0, "`steps`") } ?? []
    body.down = reader["down"].map { steps($0, "`down`") } ?? []
    body.checks = reader["check"].map { assertions($0, "`check`") } ?? []
    body.verifications = reader["verify"].map { assertions($0, "`verify`") } ?? []
    for problem in body.checks.compactMap(\.problemAsCheck) { add(problem) }
    return body
  }

  private mutating func steps(_ node: YAMLNode, _ what: String) -> [MigrationStep] {
    let files = files
    return attempt { try node.elements(what) }?.compactMap { element in
      attempt { try Self.step(element, what, files) }
    } ?? []
  }

  private static func step(_ node: YAMLNode, _ what: String, _ files: MigrationFiles) throws -> MigrationStep
  {
    let (name, position, arguments) = try single(node, "a step of \(what)")
    return try MigrationStep(name, at: position, arguments: arguments, files: files)
  }

  private mutating func assertions(_ node: YAMLNode, _ what: String) -> [Assertion] {
    attempt { try node.elements(what) }?.compactMap { element in
      attempt {
        let (name, position, arguments) = try Self.single(element, "an element of \(what)")
        return try Assertion(name, position: position, arguments: arguments)
      }
    } ?? []
  }

  private mutating func attempt<T>(_ body: () throws -> T) -> T? {
    do {
      return try body()
    } catch {
      add(error)
      return nil
    }
  }

  private mutating func add(_ error: any Error) { problems.append(DrydockError(reading: error)) }

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
