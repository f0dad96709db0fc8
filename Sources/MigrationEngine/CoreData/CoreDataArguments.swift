import AppFrameworks
import DrydockErrors
import Formats
import GRDB

/// The argument `core-data: {version-info: FILE, version: NAME, down-version: NAME}`: the models of a store after a
/// step (by default the current version), and after its down step.
struct CoreDataModels: Sendable {
  var up: CoreDataModel
  var down: CoreDataModel?
  /// Where the model of the down step is named; else where the argument is.
  private let position: YAMLPosition

  init(_ node: YAMLNode, _ files: MigrationFiles) throws {
    let reader = try YAMLReader(node, what: "core-data", keys: ["version-info", "version", "down-version"])
    let file = try reader.required("version-info")
    let bytes = try files.bytes(of: file.text("`version-info`"), namedAt: file.position)
    let info: PropertyListDictionary
    do {
      info = try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError {
      throw file.position.error(error.message)
    }
    func version(_ name: String, at position: YAMLPosition) throws -> CoreDataModel {
      do {
        return try CoreDataModel(named: name, in: info)
      } catch let error as DrydockError {
        throw position.error(error.message)
      }
    }
    if let node = reader["version"] {
      up = try version(node.text("`version`"), at: node.position)
    } else if let current = CoreDataModel.currentVersion(in: info) {
      up = try version(current, at: file.position)
    } else {
      throw file.position.error(
        "the file does not say which version is the current one: name it with `version`")
    }
    let name = reader["down-version"]
    down = try name.map { try version($0.text("`down-version`"), at: $0.position) }
    position = name?.position ?? node.position
  }

  /// - Throws: `DrydockError` unless a step has both down statements and a model after them, or neither.
  func require(hasDown: Bool) throws {
    if hasDown == (down != nil) { return }
    throw position.error(
      hasDown
        ? "the step has `down`: name the store's model after it with `down-version`"
        : "`down-version` is for a step with `down`")
  }

  /// - Throws: `DrydockError` unless the model after the step has an entity.
  func require(_ entity: CoreDataName) throws {
    guard up.hashes[entity.text] == nil else { return }
    throw entity.position.error(
      "the model `\(up.name)` has no entity `\(entity.text)`; "
        + NearestWord.hint(for: entity.text, among: up.hashes.keys.sorted()))
  }
}

/// The name of an entity, an attribute or a relationship, and where it is written.
struct CoreDataName: ArgumentValue, CustomStringConvertible {
  let text: String
  let position: YAMLPosition

  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws {
    try self.init(node.text("`\(name)`"), at: node.position)
  }

  init(_ text: String, at position: YAMLPosition) throws {
    guard text.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil else {
      throw position.error(
        "`\(text)` is not a name in a Core Data model: letters, digits and `_`, starting with a letter")
    }
    (self.text, self.position) = (text, position)
  }

  var description: String { text }
}

extension CoreDataType: ArgumentValue {}

/// A new attribute with its default value.
struct CoreDataAttribute: Sendable {
  let name: String
  let type: CoreDataType
  /// Nil for NULL.
  var value: DatabaseValue?

  init(_ name: CoreDataName, _ type: CoreDataType, default node: YAMLNode? = nil) throws {
    (self.name, self.type) = (name.text, type)
    guard let node, !node.isNull else { return }
    guard let scalar = node.scalar, let value = type.stored(scalar.value) else {
      throw node.position.error("`default` is \(node.summary), which does not fit the type \(type.rawValue)")
    }
    self.value = value
  }
}

/// A new entity with its attributes and to-one relationships.
struct CoreDataNewEntity: Sendable {
  let name: String
  let parent: String?
  let attributes: [CoreDataAttribute]
  let relationships: [String]

  init(_ name: CoreDataName, parent: CoreDataName?, attributes: YAMLNode?, toOne: YAMLNode?) throws {
    (self.name, self.parent) = (name.text, parent?.text)
    self.attributes =
      try attributes?.pairs("`attributes`").pairs.map { pair in
        let name = try CoreDataName(pair.key.source, at: pair.keyPosition)
        let word = try pair.value.text("the type of `\(name.text)`")
        guard let type = CoreDataType(rawValue: word) else {
          throw pair.value.position.error(
            "`\(word)` is not a type of attributes; "
              + NearestWord.hint(for: word, among: CoreDataType.allCases.map(\.rawValue)))
        }
        return try CoreDataAttribute(name, type)
      } ?? []
    relationships =
      try toOne?.elements("`to-one`").map {
        try CoreDataName($0.text("a relationship"), at: $0.position).text
      } ?? []
    if let toOne, parent != nil, !relationships.isEmpty {
      throw toOne.position.error("an entity with a parent gets its relationships with `sql`")
    }
    let names = (self.attributes.map(\.name) + relationships).map { $0.uppercased() }
    if Set(names).count < names.count {
      throw name.position.error("two of the names differ at most in upper and lower case")
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
