import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation
import GRDB

/// A Core Data store that an operation names, with the model that it is changed to.
struct CoreDataTarget: Sendable {
  let database: NamedDatabase
  private let ifMissing: IfMissing

  init(_ reader: YAMLReader) throws {
    (database, ifMissing) = try (NamedDatabase(reading: reader), reader.ifMissing())
  }

  /// Changes the store in one transaction.
  ///
  /// - Parameter model: the model that the change leads to; nil when the schema stays.
  /// - Returns: notes; nil when there is no such database.
  func change(
    on stage: StagedContainer, to model: CoreDataModel?, _ body: (inout CoreDataSchema) throws -> [String]
  ) throws -> [String]? {
    try database.change(on: stage, ifMissing) { db in
      var notes: [String] = []
      let more = try MigrationTransaction.run(db, model: model, isPart: true) { store in
        guard store != nil else { throw StepFailure("the database is not a Core Data store") }
        var schema = try CoreDataSchema(db)
        if model != nil, try db.tableExists("ANSCKRECORDMETADATA") {
          throw StepFailure(
            "CloudKit mirrors the store, and would not be told of this change: migrate it with the app itself"
          )
        }
        notes = try body(&schema) + schema.notes
      }
      return notes + more
    }
  }
}

struct ChangeCoreData: MigrationOperation {
  static let kinds = [
    OperationKind(
      "coredata.rename-attribute",
      "Renames an attribute or a to-one relationship of an entity in a [Core Data "
        + "store](OtherTools.md#core-data), with its order and its indexes.",
      [
        "database": "required: a name under `databases:` in `drydock.yaml`",
        "entity, attribute": "required: their names in the model",
        "to": "required: the new name",
        "core-data":
          "required: `{version-info: FILE, version: NAME, down-version: NAME}`, as for `sql`; without "
          + "`down-version` the step cannot be reverted",
      ], common: ["if-missing"],
      decode: Self.init),
    OperationKind(
      "coredata.add-attribute",
      "Adds an attribute. The down step drops its column; a note counts the values other than the "
        + "default.",
      [
        "attribute": "required: its name",
        "type":
          "required: `integer-16`, `integer-32`, `integer-64`, `boolean`, `decimal`, `double`, `float`, "
          + "`string`, `date`, `uuid`, `uri`, `binary`, `transformable`",
        "default": "the value in existing rows of the entity, and of those that inherit from it; a `uuid` as "
          + "text, data with `!data`; NULL without it",
      ], common: ["database", "entity", "core-data", "if-missing"],
      decode: Self.init),
    OperationKind(
      "coredata.rename-entity",
      "Renames an entity: its table, its row in `Z_PRIMARYKEY`, its indexes, and the numbers of all "
        + "entities.",
      [
        "entity, to": "required: its names before and after"
      ], common: ["database", "core-data", "if-missing"],
      decode: Self.init),
    OperationKind(
      "coredata.add-entity",
      "Adds an entity.",
      [
        "entity": "required: its name",
        "parent": "the entity that it inherits from, whose table it shares",
        "attributes": "names, each with its type",
        "to-one": "a list of to-one relationships; only without `parent`",
      ], common: ["database", "core-data", "if-missing"],
      decode: Self.init),
  ]

  private enum Change: Sendable {
    case renameAttribute(entity: String, from: String, to: String)
    case addAttribute(CoreDataAttribute, entity: String)
    case dropAttribute(CoreDataAttribute, entity: String)
    case renameEntity(from: String, to: String)
    case addEntity(CoreDataNewEntity)
    case removeEntity(CoreDataNewEntity)

    var inverse: Change {
      switch self {
      case .renameAttribute(let entity, let old, let new):
        .renameAttribute(entity: entity, from: new, to: old)
      case .addAttribute(let attribute, let entity): .dropAttribute(attribute, entity: entity)
      case .dropAttribute(let attribute, let entity): .addAttribute(attribute, entity: entity)
      case .renameEntity(let old, let new): .renameEntity(from: new, to: old)
      case .addEntity(let entity): .removeEntity(entity)
      case .removeEntity(let entity): .addEntity(entity)
      }
    }
  }

  let name: String
  private let target: CoreDataTarget
  /// Of the store afterwards, and after the down step.
  private var models: (up: CoreDataModel, down: CoreDataModel?)
  private var change: Change

  private init(_ reader: YAMLReader, _ files: MigrationFiles) throws {
    name = reader.what
    target = try CoreDataTarget(reader)
    let model = try reader.required("core-data")
    models = try CoreDataModel.argument(
      model, files: files, hasDown: model.mapping?["down-version"] != nil)
    func text(_ key: String) throws -> String {
      try CoreDataAttribute.name(reader.required(key), "`\(key)`")
    }
    switch name {
    case "coredata.rename-attribute":
      change = .renameAttribute(entity: try text("entity"), from: try text("attribute"), to: try text("to"))
    case "coredata.add-attribute":
      let attribute = try CoreDataAttribute(
        text("attribute"), reader.requiredChoice("type"), default: reader["default"])
      change = .addAttribute(attribute, entity: try text("entity"))
    case "coredata.rename-entity":
      change = .renameEntity(from: try text("entity"), to: try text("to"))
      try Self.require(text("to"), in: models.up, at: reader.required("to").position)
    default:
      let entity = try CoreDataNewEntity(reader)
      change = .addEntity(entity)
      try Self.require(entity.name, in: models.up, at: reader.required("entity").position)
    }
  }

  private static func require(_ entity: String, in model: CoreDataModel, at position: YAMLPosition) throws {
    guard model.hashes[entity] == nil else { return }
    throw position.error(
      "the model `\(model.name)` has no entity `\(entity)`; "
        + NearestWord.hint(for: entity, among: model.hashes.keys.sorted()))
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let notes = try target.change(on: stage, to: models.up) { schema in
      switch change {
      case .renameAttribute(let entity, let old, let new):
        try schema.rename(property: old, to: new, of: entity)
      case .addAttribute(let attribute, let entity): try schema.add(attribute, to: entity)
      case .dropAttribute(let attribute, let entity): try schema.drop(attribute, of: entity)
      case .renameEntity(let old, let new): try schema.rename(entity: old, to: new)
      case .addEntity(let entity): try schema.add(entity)
      case .removeEntity(let entity): try schema.remove(entity)
      }
      return []
    }
    if notes == nil { recorded.skipped.append(target.database.name) }
    return notes ?? [target.database.missing]
  }

  var reversal: Reversal { inverse == nil ? .none : .derived }
  var inverse: (any MigrationAction)? {
    guard let down = models.down else { return nil }
    var inverse = self
    (inverse.models, inverse.change) = ((down, nil), change.inverse)
    return inverse
  }
  var effects: StepEffects { StepEffects(databases: .named(target.database.name)) }
}

struct ConvertCoreData: MigrationOperation {
  static let kinds = [
    OperationKind(
      "coredata.convert",
      "Converts the values of an attribute, in the rows of an entity and of those that inherit from it.",
      [
        "database, entity, attribute": "required: as above",
        "map": "old values, each with the new one; `null` is NULL, which stays if it is not in the map; or",
        "sql": "one SQL expression, in which the entity's attributes are columns by their own names",
        "down": "the expression of the down step, for `sql`",
        "unmapped": "for values that the map does not have: `fail` (default), `keep`, `delete` (NULL)",
      ], common: ["if-missing"],
      decode: Self.init)
  ]

  private enum Rule: Sendable {
    case map([(from: DatabaseValue, to: DatabaseValue)])
    case expression(String)
  }

  private let target: CoreDataTarget
  private let entity, attribute: String
  private var rule: Rule
  /// The rule of the down migration, if there is one.
  private var down: Rule?
  private var unmapped: Unmapped

  private init(_ reader: YAMLReader, _ files: MigrationFiles) throws {
    target = try CoreDataTarget(reader)
    entity = try CoreDataAttribute.name(reader.required("entity"), "`entity`")
    attribute = try CoreDataAttribute.name(reader.required("attribute"), "`attribute`")
    let (key, node) = try reader.only(["map", "sql"], needs: "`map` or `sql`")
    unmapped = try reader.choice("unmapped") ?? .fail
    if key == "sql" {
      rule = .expression(try node.text("`sql`"))
      down = try reader.text("down").map { .expression($0) }
      if let node = reader["unmapped"] { throw node.position.error("`unmapped` is for a `map`") }
      return
    }
    if let node = reader["down"] {
      throw node.position.error("`down` is for `sql`: a map has its own inverse")
    }
    let pairs = try node.pairs("`map`").pairs.map { pair in
      guard let to = pair.value.scalar else {
        throw pair.value.position.error("an attribute has a single value, not \(pair.value.summary)")
      }
      return (
        from: try Self.stored(pair.key.value, at: pair.keyPosition),
        to: try Self.stored(to.value, at: pair.value.position)
      )
    }
    if pairs.isEmpty { throw node.position.error("`map` is empty") }
    rule = .map(pairs)
    let isOneToOne = Set(pairs.map(\.to)).count == pairs.count
    down = isOneToOne && unmapped == .fail ? .map(pairs.map { (from: $0.to, to: $0.from) }) : nil
  }

  private static func stored(_ value: PropertyListValue, at position: YAMLPosition) throws -> DatabaseValue {
    switch value {
    case .boolean(let value): (value ? 1 : 0).databaseValue
    case .integer(let number): number.databaseValue
    case .unsigned: throw position.error("SQLite has no integer above \(Int64.max)")
    case .int(let number): Int64(number).databaseValue
    case .long(let number): number.databaseValue
    case .real(let number): number.databaseValue
    case .single(let number): Double(number).databaseValue
    case .string(let text): text.databaseValue
    case .date(let date): date.timeIntervalSinceReferenceDate.databaseValue
    case .data(let bytes): Data(bytes).databaseValue
    case .array, .set, .dictionary, .unknown: .null
    }
  }

  var reversal: Reversal { down == nil ? .none : .derived }
  var inverse: (any MigrationAction)? {
    guard let down else { return nil }
    var inverse = self
    (inverse.rule, inverse.down, inverse.unmapped) = (down, nil, .keep)
    return inverse
  }
  var effects: StepEffects { StepEffects() }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let notes = try target.change(on: stage, to: nil) { try convert(&$0) }
    if notes == nil { recorded.skipped.append(target.database.name) }
    return notes ?? [target.database.missing]
  }

  private func convert(_ schema: inout CoreDataSchema) throws -> [String] {
    let (entity, table) = try schema.entity(self.entity)
    _ = try schema.columns(of: attribute, in: table, entity: self.entity)
    let place = (table: quotedIdentifier(table), column: CoreDataSchema.column(attribute))
    let rows = schema.condition(for: entity)
    switch rule {
    case .map(let pairs): try apply(pairs, to: place, where: rows, schema.db)
    case .expression(let text): try apply(text, to: place, where: rows, schema)
    }
    var notes: [String] = []
    if try schema.db.tableExists("ANSCKRECORDMETADATA") {
      notes.append(
        "\(self.entity).\(attribute): CloudKit mirrors the store, and gets the converted values when the app next changes "
          + "these objects")
    }
    return notes
  }

  private typealias Place = (table: String, column: String)

  private func apply(
    _ pairs: [(from: DatabaseValue, to: DatabaseValue)], to place: Place, where rows: String, _ db: Database
  ) throws {
    let isMapped = pairs.map { _ in "\(place.column) IS ?" }.joined(separator: " OR ")
    let keys = StatementArguments(pairs.map(\.from))
    let others = "\(rows) AND \(place.column) IS NOT NULL AND NOT (\(isMapped))"
    switch unmapped {
    case .fail:
      let count =
        try Int.fetchOne(db, sql: "SELECT count(*) FROM \(place.table) WHERE \(others)", arguments: keys) ?? 0
      guard count == 0 else {
        throw StepFailure(
          "`\(entity).\(attribute)` has \(count) values that the map has no entry for: add them, or say `unmapped: keep` "
            + "or `unmapped: delete`")
      }
    case .keep: break
    case .delete:
      try db.execute(
        sql: "UPDATE \(place.table) SET \(place.column) = NULL WHERE \(others)", arguments: keys)
    }
    let cases = pairs.map { _ in "WHEN \(place.column) IS ? THEN ?" }.joined(separator: " ")
    try db.execute(
      sql: "UPDATE \(place.table) SET \(place.column) = CASE \(cases) END WHERE \(rows) AND (\(isMapped))",
      arguments: StatementArguments(pairs.flatMap { [$0.from, $0.to] }) + keys)
  }

  /// The attributes are columns of an inner query, under their own names: SQLite ignores the case of names.
  private func apply(
    _ expression: String, to place: Place, where rows: String, _ schema: CoreDataSchema
  ) throws {
    let name = String(place.table.dropFirst().dropLast())
    let columns = try schema.columns(of: name).map(\.name).filter { $0.hasPrefix("Z") && !$0.hasPrefix("Z_") }
    let list = columns.map { column in
      "\(place.table).\(quotedIdentifier(column)) AS \(quotedIdentifier(String(column.dropFirst())))"
    }.joined(separator: ", ")
    do {
      // The line end ends a comment in the expression.
      try schema.db.execute(
        sql: """
          UPDATE \(place.table) SET \(place.column) = (SELECT (\(expression)
          ) FROM (SELECT \(list))) WHERE \(rows)
          """)
    } catch let error as DatabaseError where !error.isAboutTheDisk {
      throw StepFailure("the expression for `\(entity).\(attribute)`: \(error.plainMessage)")
    }
  }
}
