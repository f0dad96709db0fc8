import AppStores
import ContainerTransaction
import Cryptography
import Formats
import Foundation
import GRDB

/// The argument `defaults` of `sql`: the statements read and write settings as the rows of a temporary table
/// `defaults(key, type, value)`.
struct DefaultsTable: Sendable {
  /// A setting that SQL cannot represent has this type and the value NULL. Its row can be deleted, and not changed.
  private static let otherType = "other"

  /// A type in the column `type`: SQL's word for a string is `text`.
  private static func name(of type: SettingType) -> String { type == .string ? "text" : type.rawValue }

  static let creation = "CREATE TEMP TABLE defaults (key TEXT NOT NULL PRIMARY KEY, type TEXT, value)"
  static let collision =
    "the database has a table `defaults`, which the settings would hide: compute them with `defaults.compute` instead"

  static func collides(with db: Database) throws -> Bool {
    let sql = "SELECT 1 FROM main.sqlite_schema WHERE name = 'defaults' COLLATE NOCASE"
    return try Int.fetchOne(db, sql: sql) != nil
  }

  private let target: DefaultsTarget

  /// `true` for the app's own settings, or a mapping `{suite}` or `{file}`.
  init?(_ node: YAMLNode) throws {
    if node.mapping == nil, try !node.boolean("`defaults`") { return nil }
    target = try DefaultsTarget(
      node.mapping == nil ? nil : node, "`defaults` of sql", at: node.position)
  }

  /// Runs statements with the table, and takes its changes over into the settings.
  ///
  /// - Parameter body: gets the part of the transaction that fills the table, runs the statements and reads the table.
  /// - Returns: the notes of the body, those on the settings, and the names of the settings that changed.
  func run(
    on stage: StagedContainer, _ recorded: inout PriorValues,
    _ body: ((Database, () throws -> Void) throws -> Void) throws -> [String]
  ) throws -> (notes: [String], changed: [ExactText]) {
    var edit = try DefaultsEdit(target, stage)
    let before = edit.values
    let rows = Rows(before, stage.redactor)
    let notes = try body { db, statements in
      try rows.write(to: db)
      try statements()
      edit.values = try rows.changed(before, by: db)
    }
    let changed = before.differingKeys(from: edit.values)
    return (notes + (try edit.save(to: stage, &recorded)), changed)
  }

  /// The settings as rows.
  private struct Rows {
    private typealias Row = (type: String, value: DatabaseValue)

    private var rows: [ExactText: Row] = [:]
    /// Hides keys that may be secrets.
    private let redactor: Redactor

    init(_ settings: PropertyListDictionary, _ redactor: Redactor) {
      self.redactor = redactor
      // SQLite's text ends at a NUL character: such a name has no row, and its setting stays as it is.
      for (key, setting) in settings where !key.utf8.contains(0) {
        rows[ExactText(key)] = Self.row(of: setting) ?? (DefaultsTable.otherType, .null)
      }
    }

    private static func row(of setting: PropertyListValue) -> Row? {
      guard let type = SettingType(of: setting), let value = try? SQLiteValue(setting) else { return nil }
      return (DefaultsTable.name(of: type), DatabaseValue(value))
    }

    func write(to db: Database) throws {
      if try DefaultsTable.collides(with: db) { throw StepFailure(DefaultsTable.collision) }
      try db.execute(sql: DefaultsTable.creation)
      let insert = try db.makeStatement(sql: "INSERT INTO temp.defaults VALUES (?, ?, ?)")
      for (key, row) in rows.sorted(by: { $0.key < $1.key }) {
        try insert.execute(arguments: [key.text, row.type, row.value])
      }
    }

    /// The settings that the table has now. Those whose rows are unchanged keep their exact value.
    func changed(_ settings: PropertyListDictionary, by db: Database) throws -> PropertyListDictionary {
      var settings = settings
      var gone = Set(rows.keys)
      do {
        try requireNoNUL(db)
        let cursor = try GRDB.Row.fetchCursor(db, sql: "SELECT key, type, value FROM temp.defaults")
        while let row = try cursor.next() {
          guard let key = String.fromDatabaseValue(row[0]) else {
            throw StepFailure("a row of `defaults` has a key that is not text")
          }
          let value: DatabaseValue = row[2]
          let type = try self.type(row[1], of: key)
          gone.remove(ExactText(key))
          if let old = rows[ExactText(key)], old.type == type, old.value.isExactly(value) { continue }
          settings[key] = try setting(key, type, value)
        }
      } catch let error as DatabaseError where !error.isAboutTheDisk {
        throw StepFailure("the table `defaults` cannot be read after the statements: \(error.plainMessage)")
      }
      for key in gone { settings[key] = nil }
      return settings
    }

    private func requireNoNUL(_ db: Database) throws {
      let sql = """
        SELECT count(*) FROM temp.defaults WHERE instr(CAST(key AS BLOB), x'00')
        OR typeof(value) = 'text' AND instr(CAST(value AS BLOB), x'00')
        """
      if try Int.fetchOne(db, sql: sql) != 0 {
        throw StepFailure("a row of `defaults` has text with a NUL character")
      }
    }

    /// The type of a row, which is text or NULL.
    private func type(_ value: DatabaseValue, of key: String) throws -> String? {
      if value.isNull { return nil }
      if let text = String.fromDatabaseValue(value) {
        if text == DefaultsTable.otherType { return text }
        if let type = SettingType(rawValue: text) { return DefaultsTable.name(of: type) }
      }
      let known = SettingType.allCases.map(DefaultsTable.name)
      throw StepFailure(
        "the row `\(redactor.shown(name: key))` of `defaults` has an unknown type: use one of \(known.joined(separator: ", "))"
      )
    }

    private func setting(_ key: String, _ type: String?, _ value: DatabaseValue) throws -> PropertyListValue {
      func failure(_ reason: String) -> StepFailure {
        StepFailure("the row `\(redactor.shown(name: key))` of `defaults` cannot be a setting: \(reason)")
      }
      if type == DefaultsTable.otherType {
        throw failure("its type `\(DefaultsTable.otherType)` is for settings that SQL cannot represent")
      }
      do {
        let value = SQLiteValue(value)
        guard let type = type.flatMap({ SettingType(rawValue: $0) }) else {
          return try SettingType.natural(value)
        }
        return try type.setting(value)
      } catch let mismatch as ValueMismatch {
        throw failure("its value is \(mismatch.reason)")
      }
    }
  }
}

extension DatabaseValue {
  fileprivate init(_ value: SQLiteValue) {
    self =
      switch value {
      case .null: .null
      case .integer(let number): number.databaseValue
      case .real(let number): number.databaseValue
      case .text(let bytes): bytes.withBytes { String(decoding: $0, as: UTF8.self) }.databaseValue
      case .blob(let bytes): bytes.withBytes { Data($0) }.databaseValue
      }
  }

  /// Whether both have the same type and the same bits.
  fileprivate func isExactly(_ other: DatabaseValue) -> Bool {
    switch (storage, other.storage) {
    case (.null, .null): true
    case (.int64(let left), .int64(let right)): left == right
    case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
    case (.string(let left), .string(let right)): left.isExactly(right)
    case (.blob(let left), .blob(let right)): left == right
    default: false
    }
  }
}

extension SQLiteValue {
  fileprivate init(_ value: DatabaseValue) {
    self =
      switch value.storage {
      case .null: .null
      case .int64(let number): .integer(number)
      case .double(let number): .real(number)
      case .string(let text): .text(SecretBytes(Array(text.utf8)))
      case .blob(let data): .blob(SecretBytes([UInt8](data)))
      }
  }
}
