import ContainerDiff
import Foundation
import GRDB

/// A table of a database that is captured: its columns, and what tells its rows apart.
struct CapturedTable {
  /// One column that holds values of its own.
  struct Column {
    var name: String
    /// Whether it is part of what tells rows apart, or of a reference to another table.
    var isKey: Bool
  }

  /// A value of a row. Text of broken UTF-8, or with a zero byte in it, is bytes.
  enum Cell {
    case null, integer(Int64), real(Double), text(String), brokenText([UInt8]), blob([UInt8])
  }

  let name: String
  let columns: [Column]
  let isVirtual: Bool
  /// What tells a row from others: its rowid, else its key; empty when nothing does.
  let identity: [String]
  /// Whether the rowid has to be written down, because nothing else tells a row from others.
  let writesRowid: Bool

  init(_ name: String, isVirtual: Bool, _ references: [ForeignKey], in db: Database) throws {
    self.name = name
    self.isVirtual = isVirtual
    let info = try Row.fetchAll(db, sql: "SELECT name, pk FROM pragma_table_info(?)", arguments: [name])
    let keys = Set(references.flatMap(\.columns))
    columns = info.map { Column(name: $0["name"], isKey: ($0["pk"] as Int) > 0 || keys.contains($0["name"])) }
    let key: [String] = info.filter { ($0["pk"] as Int) > 0 }.map { $0["name"] }
    let hasRowid =
      try Bool.fetchOne(
        db, sql: "SELECT wr = 0 FROM pragma_table_list WHERE schema = 'main' AND name = ?", arguments: [name])
      ?? true
    let taken = Set(columns.map { $0.name.lowercased() })
    let rowid = hasRowid ? ["rowid", "_rowid_", "oid"].first { !taken.contains($0) } : nil
    identity = rowid.map { [$0] } ?? key.map(quoted)
    writesRowid = rowid != nil && (key.isEmpty || isVirtual)
  }

  /// Calls a body with rows.
  ///
  /// - Parameter identity: the one row that is meant; nil for all.
  func read(_ db: Database, _ identity: [DatabaseValue]?, _ body: ([Cell]) throws -> Void) throws {
    let list = readNames
    let values = list.flatMap {
      ["typeof(\($0))", "CASE typeof(\($0)) WHEN 'text' THEN CAST(\($0) AS BLOB) ELSE \($0) END"]
    }
    var sql = "SELECT \(values.joined(separator: ", ")) FROM \(quoted(name))"
    if identity != nil { sql += " WHERE " + self.identity.map { "\($0) IS ?" }.joined(separator: " AND ") }
    let cursor = try Row.fetchCursor(db, sql: sql, arguments: StatementArguments(identity ?? []))
    while let row = try cursor.next() {
      try body(list.indices.map { Self.cell(row, $0 * 2) })
    }
  }

  private static func cell(_ row: Row, _ at: Int) -> Cell {
    switch row[at] as String {
    case "integer": return .integer(row[at + 1])
    case "real": return .real(row[at + 1])
    case "text":
      let bytes = [UInt8](row[at + 1] as Data)
      guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
        return .brokenText(bytes)
      }
      return .text(text)
    case "blob": return .blob([UInt8](row[at + 1] as Data))
    default: return .null
    }
  }

  /// The names of what ``read(_:_:_:)`` gives.
  var readNames: [String] { (writesRowid ? identity : []) + columns.map { quoted($0.name) } }
}

extension CapturedTable.Cell {
  /// The value as SQL has it.
  var sql: String {
    switch self {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): number.isInfinite ? (number < 0 ? "-9e999" : "9e999") : "\(number)"
    case .text(let text): "'\(text.replacing("'", with: "''"))'"
    case .brokenText(let bytes): "CAST(x'\(Self.hexadecimal(bytes))' AS TEXT)"
    case .blob(let bytes): "x'\(Self.hexadecimal(bytes))'"
    }
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { String(format: "%02x", $0) }.joined()
  }

  /// What a visitor makes of it.
  func visited<Visitor: LeafVisitor>(_ place: LeafPlace, _ visitor: inout Visitor) throws -> Self {
    switch self {
    case .null: self
    case .integer(let number): .integer(try Int64(visitor.number("\(number)", place)) ?? number)
    case .real(let number):
      if let whole = Int64(exactly: number), let other = try Double(visitor.number("\(whole)", place)) {
        .real(other)
      } else {
        self
      }
    case .text(let text): .text(try ValueWalk.text(text, place, &visitor))
    case .brokenText(let bytes): .brokenText(try ValueWalk.data(bytes, place, &visitor))
    case .blob(let bytes): .blob(try ValueWalk.data(bytes, place, &visitor))
    }
  }
}
