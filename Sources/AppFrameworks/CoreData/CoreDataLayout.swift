import AppStores
import Formats
import Foundation
import GRDB

/// The type of an attribute, by its name in Xcode's model editor.
package enum CoreDataType: String, CaseIterable, Sendable {
  case integer16 = "integer-16"
  case integer32 = "integer-32"
  case integer64 = "integer-64"
  case boolean, decimal, double, float, string, date, uuid, uri, binary, transformable

  /// The type that Core Data declares for the column.
  package var columnType: String {
    switch self {
    case .integer16, .integer32, .integer64, .boolean: "INTEGER"
    case .decimal: "DECIMAL"
    case .double, .float: "FLOAT"
    case .date: "TIMESTAMP"
    case .string, .uri: "VARCHAR"
    case .uuid, .binary, .transformable: "BLOB"
    }
  }

  /// A value in this type as Core Data stores it; nil when it does not fit.
  package func stored(_ value: PropertyListValue) -> DatabaseValue? {
    switch (self, value) {
    case (.integer16, .integer(let number)): Int16(exactly: number).map { Int64($0).databaseValue }
    case (.integer32, .integer(let number)): Int32(exactly: number).map { Int64($0).databaseValue }
    case (.integer64, .integer(let number)), (.decimal, .integer(let number)): number.databaseValue
    case (.boolean, .boolean(let value)): (value ? 1 : 0).databaseValue
    case (.double, .real(let number)), (.decimal, .real(let number)): number.databaseValue
    case (.double, .integer(let number)): Double(exactly: number)?.databaseValue
    case (.float, .real(let number)): Double(Float(number)).databaseValue
    case (.float, .integer(let number)): Float(exactly: number).map { Double($0).databaseValue }
    case (.string, .string(let text)), (.uri, .string(let text)): text.databaseValue
    case (.date, .date(let date)): date.timeIntervalSinceReferenceDate.databaseValue
    case (.uuid, .string(let text)):
      UUID(uuidString: text).map { uuid in withUnsafeBytes(of: uuid.uuid) { Data($0) }.databaseValue }
    case (.binary, .data(let bytes)), (.transformable, .data(let bytes)): Data(bytes).databaseValue
    default: nil
    }
  }
}

/// A name of Core Data with the number of an entity, such as `Z_5TAGS` or `Z22_OWNER`.
package struct CoreDataNumberedName {
  package let prefix: String
  package let number: Int64
  /// What follows the number; a property's name begins with no digit.
  package let rest: String

  package init?(_ name: String, prefix: String) {
    guard name.hasPrefix(prefix) else { return nil }
    let digits = name.dropFirst(prefix.count).prefix { $0.isASCII && $0.isNumber }
    guard let number = Int64(digits) else { return nil }
    (self.prefix, self.number) = (prefix, number)
    rest = String(name.dropFirst(prefix.count + digits.count))
  }

  package func renumbered(_ numbers: [Int64: Int64]) -> String {
    prefix + String(numbers[number] ?? number) + rest
  }
}

extension CoreDataEntities {
  /// The number that Core Data gives each entity of the app, depth first: entities in the order of their names, each
  /// before those that inherit from it. Nil when entities inherit from each other.
  package var regularNumbers: [Int64: Int64]? {
    var numbers: [Int64: Int64] = [:]
    func visit(_ parent: Int64) {
      let children = ofApp.filter { $0.parent == parent && numbers[$0.number] == nil }
      for entity in children.sorted(by: { $0.name.utf16.lexicographicallyPrecedes($1.name.utf16) }) {
        numbers[entity.number] = Int64(numbers.count + 1)
        visit(entity.number)
      }
    }
    visit(0)
    return numbers.count == ofApp.count ? numbers : nil
  }

  /// Rows of each app's table whose `Z_ENT` is none of the entities that the table is for.
  package func orphanedRows(_ db: Database) throws -> [String: Int] {
    var counts: [String: Int] = [:]
    for (root, table) in roots where !root.isInternal {
      let numbers = family(of: root).map(String.init).joined(separator: ", ")
      let sql = """
        SELECT count(*) FROM \(quotedIdentifier(table)) WHERE Z_ENT IS NULL OR Z_ENT NOT IN (\(numbers))
        """
      counts[root.name] = try Int.fetchOne(db, sql: sql)
    }
    return counts
  }
}
