import AppFrameworks
import DrydockErrors
import Formats
import GRDB

extension CoreDataModel {
  /// Decodes the argument `core-data: {version-info: FILE, version: NAME, down-version: NAME}`: the models of a store after
  /// the statements (by default the current version), and after the down statements.
  static func argument(
    _ node: YAMLNode, files: MigrationFiles, hasDown: Bool
  ) throws -> (up: CoreDataModel, down: CoreDataModel?) {
    let reader = try YAMLReader(node, what: "core-data", keys: ["version-info", "version", "down-version"])
    let file = try reader.required("version-info")
    let bytes = try files.bytes(of: file.text("`version-info`"), namedAt: file.position)
    let info: PropertyListDictionary
    do {
      info = try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError {
      throw file.position.error(error.message)
    }
    let up: CoreDataModel
    if let node = reader["version"] {
      up = try version(node.text("`version`"), of: info, at: node.position)
    } else if let current = currentVersion(in: info) {
      up = try version(current, of: info, at: file.position)
    } else {
      throw file.position.error(
        "the file does not say which version is the current one: name it with `version`")
    }
    switch (reader["down-version"], hasDown) {
    case (let node?, true):
      return (up, try version(node.text("`down-version`"), of: info, at: node.position))
    case (let node?, false): throw node.position.error("`down-version` is for a step with `down`")
    case (nil, true):
      throw node.position.error("the step has `down`: name the store's model after it with `down-version`")
    case (nil, false): return (up, nil)
    }
  }

  private static func version(
    _ name: String, of info: PropertyListDictionary, at position: YAMLPosition
  ) throws -> CoreDataModel {
    do {
      return try CoreDataModel(named: name, in: info)
    } catch let error as DrydockError {
      throw position.error(error.message)
    }
  }
}

/// A new attribute with its default value.
struct CoreDataAttribute: Sendable {
  let name: String
  let type: CoreDataType
  /// Nil for NULL.
  var value: DatabaseValue?

  init(_ name: String, _ type: CoreDataType, default node: YAMLNode? = nil) throws {
    (self.name, self.type) = (name, type)
    guard let node, !node.isNull else { return }
    guard let scalar = node.scalar, let value = type.stored(scalar.value) else {
      throw node.position.error("`default` is \(node.summary), which does not fit the type \(type.rawValue)")
    }
    self.value = value
  }

  /// The name of an entity, an attribute or a relationship.
  static func name(_ node: YAMLNode, _ what: String) throws -> String {
    try checked(node.text(what), at: node.position)
  }

  static func checked(_ name: String, at position: YAMLPosition) throws -> String {
    guard name.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil else {
      throw position.error(
        "`\(name)` is not a name in a Core Data model: letters, digits and `_`, starting with a letter")
    }
    return name
  }
}

/// A new entity with its attributes and to-one relationships.
struct CoreDataNewEntity: Sendable {
  let name: String
  let parent: String?
  let attributes: [CoreDataAttribute]
  let relationships: [String]

  init(_ reader: YAMLReader) throws {
    name = try CoreDataAttribute.name(reader.required("entity"), "`entity`")
    parent = try reader["parent"].map { try CoreDataAttribute.name($0, "`parent`") }
    attributes =
      try reader["attributes"]?.pairs("`attributes`").pairs.map { pair in
        let name = try CoreDataAttribute.checked(pair.key.source, at: pair.keyPosition)
        let word = try pair.value.text("the type of `\(name)`")
        guard let type = CoreDataType(rawValue: word) else {
          throw pair.value.position.error(
            "`\(word)` is not a type of attributes; "
              + NearestWord.hint(for: word, among: CoreDataType.allCases.map(\.rawValue)))
        }
        return try CoreDataAttribute(name, type)
      } ?? []
    relationships =
      try reader["to-one"]?.elements("`to-one`").map { try CoreDataAttribute.name($0, "a relationship") }
      ?? []
    if let node = reader["to-one"], parent != nil, !relationships.isEmpty {
      throw node.position.error("an entity with a parent gets its relationships with `sql`")
    }
    let names = (attributes.map(\.name) + relationships).map { $0.uppercased() }
    if Set(names).count < names.count {
      throw reader.position.error("two of the names differ at most in upper and lower case")
    }
  }

  /// The definitions of the columns of its table, in Core Data's order.
  var columns: [String] {
    func columns(_ type: String) -> [String] {
      attributes.filter { $0.type.columnType == type }.map { CoreDataSchema.column($0.name) }.sorted()
        .map { "\($0) \(type)" }
    }
    let relations = relationships.map { CoreDataSchema.column($0) + " INTEGER" }.sorted()
    return ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"] + columns("INTEGER") + relations
      + ["DECIMAL", "FLOAT", "TIMESTAMP", "VARCHAR", "BLOB"].flatMap(columns)
  }
}
