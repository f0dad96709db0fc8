import AppContainer
import AppStores
import FileSystem
import Formats
import GRDB

/// Reads the rows of a table once, for all rules about values.
struct TableScan {
  static let rowLimit = 50_000
  /// Longer values are looked at up to here; longer data is not.
  static let valueLimit = 1 << 20
  static let archiveLimit = 200
  static let documentLimit = 2000

  private let path: ContainerPath
  private let table: String
  private let db: Database
  private let isOfSecrets: Bool

  init(_ path: ContainerPath, _ table: String, _ db: Database) {
    (self.path, self.table, self.db) = (path, table, db)
    isOfSecrets = SecretEvidence.isSecret(name: table)
  }

  private struct Column {
    var name: String
    var isSecret: Bool
    var isValue: Bool
    var archives = 0, documents = 0
    var personal: PersonalColumn
  }

  func run(_ context: inout AuditContext) throws {
    let names = try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
    var columns = names.map { name in
      let isValue = ["value", "data", "content", "blob"].contains(name.lowercased())
      return Column(
        name: name, isSecret: SecretEvidence.isSecret(name: name) || isOfSecrets && isValue, isValue: isValue,
        personal: PersonalColumn(name))
    }
    let keyColumn = names.firstIndex { ["name", "key", "field"].contains($0.lowercased()) }
    let list = names.map {
      "CASE WHEN typeof(\(quotedIdentifier($0))) = 'blob' "
        + "AND length(\(quotedIdentifier($0))) > \(Self.valueLimit) THEN NULL ELSE \(quotedIdentifier($0)) END"
    }
    guard !list.isEmpty else { return }
    let rows = try Row.fetchCursor(
      db, sql: "SELECT \(list.joined(separator: ", ")) FROM \(quotedIdentifier(table)) LIMIT ?",
      arguments: [Self.rowLimit + 1])
    var count = 0
    while let row = try rows.next() {
      if count == Self.rowLimit {
        context.limits.append("\(path): only the first \(count) rows of \(table) were searched")
        break
      }
      count += 1
      var isNamed = false
      if let keyColumn, case .string(let text) = storage(row, keyColumn) {
        isNamed = SecretEvidence.isSecret(name: text)
      }
      for index in columns.indices { check(&columns[index], storage(row, index), isNamed, &context) }
    }
    context.facts.note(columns.map(\.personal), in: "\(table)", of: path, rows: count)
  }

  private func storage(_ row: Row, _ index: Int) -> DatabaseValue.Storage {
    (row[index] as DatabaseValue).storage
  }

  private func check(
    _ column: inout Column, _ value: DatabaseValue.Storage, _ isNamed: Bool, _ context: inout AuditContext
  ) {
    let isSecret = column.isSecret || isNamed && column.isValue
    func add(_ rule: AuditRuleID, _ message: String) {
      context.findings.add(rule, path.description, item: "\(table).\(column.name)", message, unit: "row")
    }
    switch value {
    case .null: return
    case .int64(let number):
      column.personal.note(number)
      if isSecret, SecretEvidence.isSecret(value: .integer(number), name: column.name) {
        add(.secretInDatabase, Self.message)
      }
    case .double(let number): column.personal.note(number)
    case .string(let whole):
      let text = whole.utf8.count > Self.valueLimit ? String(whole.prefix(Self.valueLimit)) : whole
      column.personal.note(text)
      if isSecret, SecretEvidence.isSecret(value: .string(text), name: column.name) {
        add(.secretInDatabase, Self.message)
      } else if let found = evidence(in: .string(text), text.utf8.first, &column) {
        add(.secretInDatabase, found)
      } else if let found = SecretEvidence.form(in: text) {
        add(isSecret ? .secretInDatabase : .tokenInRows, found)
      }
      if ContainerPaths.isIn(text) { add(.pathInDatabase, SettingsRules.pathMessage) }
    case .blob(let data):
      let bytes = Array(data)
      if isSecret, SecretEvidence.isSecret(value: .data(bytes), name: column.name) {
        add(.secretInDatabase, SecretValueSearch.data)
      } else if let found = evidence(in: .data(bytes), bytes.first, &column) {
        add(.secretInDatabase, found)
      }
      guard column.archives < Self.archiveLimit, PropertyListDocument.isBinary(bytes) else { return }
      column.archives += 1
      if !ArchivedClasses.custom(in: bytes).isEmpty { add(.customClassInArchive, ArchivedClasses.message) }
    }
  }

  /// Why a document in a value has a secret: JSON or a property list.
  private func evidence(
    in value: PropertyListValue, _ first: UInt8?, _ column: inout Column
  ) -> String? {
    guard let first, "{[b<".utf8.contains(first), column.documents < Self.documentLimit,
      let document = value.document, document.isStructured
    else { return nil }
    column.documents += 1
    var search = SecretValueSearch(budget: Self.valueLimit * 4)
    return search.evidence(in: document, name: column.name)
  }

  private static let message = "values under a secret's name"
}
