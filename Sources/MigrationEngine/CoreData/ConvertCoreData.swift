import AppStores
import ContainerTransaction
import DrydockErrors
import Formats
import Foundation
import GRDB

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
      ], common: ["if-missing"]
    ) { try Self(reading: $0, files: $1) }
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

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
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

  var effects: StepEffects { StepEffects(writing: .conversion, databases: .none) }
  var reversal: Reversal { down == nil ? .none : .byArguments }
  var inverse: (any MigrationAction)? {
    guard let down else { return nil }
    var inverse = self
    (inverse.rule, inverse.down, inverse.unmapped) = (down, nil, .keep)
    return inverse
  }

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
          message:
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
      throw StepFailure(message: "the expression for `\(entity).\(attribute)`: \(error.plainMessage)")
    }
  }
}
