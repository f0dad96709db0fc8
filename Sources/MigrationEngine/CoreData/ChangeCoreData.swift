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
  static let argument = Argument(
    ["database": "required: a name under `databases:` in `drydock.yaml`"], common: ["if-missing"]
  ) { reader, _ in Self(database: try NamedDatabase(reading: reader), ifMissing: try reader.ifMissing()) }

  let database: NamedDatabase
  private let ifMissing: IfMissing

  /// Changes the store in one transaction.
  ///
  /// - Parameter model: the model that the change leads to; nil when the schema stays.
  /// - Returns: notes, also when there is no such database.
  func change(
    on stage: StagedContainer, _ recorded: inout PriorValues, to model: CoreDataModel?,
    _ body: (inout CoreDataSchema) throws -> [String]
  ) throws -> [String] {
    let notes = try database.change(on: stage, ifMissing) { db in
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
    if notes == nil { recorded.skipped.append(database.name) }
    return notes ?? [database.missing]
  }
}

struct ChangeCoreData: MigrationOperation {
  static let kinds = [
    OperationKind(
      "coredata.rename-attribute",
      "Renames an attribute or a to-one relationship of an entity in a [Core Data "
        + "store](OtherTools.md#core-data), with its order and its indexes.",
      CoreDataTarget.argument, entity,
      Argument<CoreDataName>("attribute", "the name of the attribute or relationship"),
      Argument<CoreDataName>("to", "the new name"), models
    ) { target, entity, attribute, to, models in
      Self(
        target: target, models: models,
        change:
          .renameAttribute(entity: entity.text, from: attribute.text, to: to.text))
    },
    OperationKind(
      "coredata.add-attribute",
      "Adds an attribute. The down step drops its column; a note counts the values other than the "
        + "default.",
      CoreDataTarget.argument.explainedBefore, entity.explainedBefore,
      Argument<CoreDataName>("attribute", "its name"),
      Argument<CoreDataType>(
        "type",
        "`integer-16`, `integer-32`, `integer-64`, `boolean`, `decimal`, `double`, `float`, `string`, "
          + "`date`, `uuid`, `uri`, `binary`, `transformable`"),
      Argument<YAMLNode?>(
        "default",
        "the value in existing rows of the entity, and of those that inherit from it; a `uuid` as "
          + "text, data with `!data`; NULL without it"), models.explainedBefore
    ) { target, entity, name, type, value, models in
      let attribute = try CoreDataAttribute(name, type, default: value)
      return Self(target: target, models: models, change: .addAttribute(attribute, entity: entity.text))
    },
    OperationKind(
      "coredata.rename-entity",
      "Renames an entity: its table, its row in `Z_PRIMARYKEY`, its indexes, and the numbers of all "
        + "entities.",
      CoreDataTarget.argument.explainedBefore, Argument<CoreDataName>("entity", "its name"),
      Argument<CoreDataName>("to", "its new name"), models.explainedBefore
    ) { target, entity, to, models in
      try models.require(to)
      return Self(target: target, models: models, change: .renameEntity(from: entity.text, to: to.text))
    },
    OperationKind(
      "coredata.add-entity",
      "Adds an entity.",
      CoreDataTarget.argument.explainedBefore, Argument<CoreDataName>("entity", "its name"),
      Argument<CoreDataName?>("parent", "the entity that it inherits from, whose table it shares"),
      Argument<YAMLNode?>("attributes", "names, each with its type"),
      Argument<YAMLNode?>("to-one", "a list of to-one relationships; only without `parent`"),
      models.explainedBefore
    ) { target, name, parent, attributes, toOne, models in
      let entity = try CoreDataNewEntity(name, parent: parent, attributes: attributes, toOne: toOne)
      try models.require(name)
      return Self(target: target, models: models, change: .addEntity(entity))
    },
  ]

  private static let entity = Argument<CoreDataName>("entity", "its name in the model")
  private static let models = Argument([
    "core-data": "required: `{version-info: FILE, version: NAME, down-version: NAME}`, as for `sql`; without "
      + "`down-version` the step cannot be reverted"
  ]) { reader, files in try CoreDataModels(reader.required("core-data"), files) }

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

  private let target: CoreDataTarget
  private var models: CoreDataModels
  private var change: Change

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    try target.change(on: stage, &recorded, to: models.up) { schema in
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
  }

  var reversal: Reversal { inverse == nil ? .none : .derived }
  var inverse: (any MigrationAction)? {
    guard let down = models.down else { return nil }
    var inverse = self
    (inverse.models.up, inverse.models.down, inverse.change) = (down, nil, change.inverse)
    return inverse
  }
  var effects: StepEffects { StepEffects(databases: .named(target.database.name)) }
}

struct ConvertCoreData: MigrationOperation {
  static let kinds = [
    OperationKind(
      "coredata.convert",
      "Converts the values of an attribute, in the rows of an entity and of those that inherit from it.",
      CoreDataTarget.argument.explainedBefore, Argument<CoreDataName>("entity").explainedBefore,
      Argument<CoreDataName>("attribute").explainedBefore,
      Argument(
        [
          "map": "old values, each with the new one; `null` is NULL, which stays if it is not in the map; or",
          "sql": "one SQL expression, in which the entity's attributes are columns by their own names",
          "down": "the expression of the down step, for `sql`",
          "unmapped": "for values that the map does not have: `fail` (default), `keep`, `delete` (NULL)",
        ], read: rules)
    ) { Self(target: $0, entity: $1, attribute: $2, rules: $3) }
  ]

  private enum Rule: Sendable {
    case map([(from: DatabaseValue, to: DatabaseValue)], Unmapped)
    case expression(String)
  }

  private let target: CoreDataTarget
  private let entity, attribute: CoreDataName
  /// The rule of the down migration is nil where there is none.
  private var rules: (up: Rule, down: Rule?)

  private static func rules(_ reader: YAMLReader, _: MigrationFiles) throws -> (up: Rule, down: Rule?) {
    let (key, node) = try reader.only(["map", "sql"], needs: "`map` or `sql`")
    if key == "sql" {
      if let node = reader["unmapped"] { throw node.position.error("`unmapped` is for a `map`") }
      return (.expression(try node.text("`sql`")), try reader.text("down").map { .expression($0) })
    }
    if let node = reader["down"] {
      throw node.position.error("`down` is for `sql`: a map has its own inverse")
    }
    let pairs = try node.pairs("`map`").pairs.map { pair in
      guard let to = pair.value.scalar else {
        throw pair.value.position.error("an attribute has a single value, not \(pair.value.summary)")
      }
      return (
        from: try stored(pair.key.value, at: pair.keyPosition),
        to: try stored(to.value, at: pair.value.position)
      )
    }
    if pairs.isEmpty { throw node.position.error("`map` is empty") }
    let unmapped: Unmapped = try reader.choice("unmapped") ?? .fail
    let isInvertible = unmapped == .fail && Set(pairs.map(\.to)).count == pairs.count
    return (
      .map(pairs, unmapped), isInvertible ? .map(pairs.map { (from: $0.to, to: $0.from) }, .keep) : nil
    )
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

  var reversal: Reversal { rules.down == nil ? .none : .derived }
  var inverse: (any MigrationAction)? {
    guard let down = rules.down else { return nil }
    var inverse = self
    inverse.rules = (down, nil)
    return inverse
  }
  var effects: StepEffects { StepEffects() }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    try target.change(on: stage, &recorded, to: nil, convert)
  }

  private func convert(_ schema: inout CoreDataSchema) throws -> [String] {
    let (entity, table) = try schema.entity(self.entity.text)
    _ = try schema.columns(of: attribute.text, in: table, entity: self.entity.text)
    let place = (table: quotedIdentifier(table), column: CoreDataSchema.column(attribute.text))
    let rows = schema.condition(for: entity)
    switch rules.up {
    case .map(let pairs, let unmapped): try apply(pairs, unmapped, to: place, where: rows, schema.db)
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
    _ pairs: [(from: DatabaseValue, to: DatabaseValue)], _ unmapped: Unmapped, to place: Place,
    where rows: String, _ db: Database
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
