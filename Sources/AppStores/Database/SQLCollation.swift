import DrydockErrors
import GRDB
import GRDBSQLite

/// The order that an app's collation has on its data, as one of SQLite's: `collations:` of `drydock.yaml`.
package enum SQLCollation: String, CaseIterable, Sendable {
  case binary, nocase, rtrim

  func add(named name: String, to db: Database) {
    typealias Text = UnsafeRawPointer
    let compare: @convention(c) (UnsafeMutableRawPointer?, CInt, Text?, CInt, Text?) -> CInt =
      switch self {
      case .binary: { _, length, text, length2, text2 in Self.compare(text, length, text2, length2) }
      case .nocase:
        { _, length, text, length2, text2 in
          let left = text?.assumingMemoryBound(to: CChar.self),
            right = text2?.assumingMemoryBound(to: CChar.self)
          let result = sqlite3_strnicmp(left, right, min(length, length2))
          return result == 0 ? length - length2 : result
        }
      case .rtrim:
        { _, length, text, length2, text2 in
          Self.compare(text, Self.trimmed(text, length), text2, Self.trimmed(text2, length2))
        }
      }
    sqlite3_create_collation_v2(db.sqliteConnection, name, SQLITE_UTF8, nil, compare, nil)
  }

  fileprivate static func compare(
    _ text: UnsafeRawPointer?, _ length: CInt, _ text2: UnsafeRawPointer?, _ length2: CInt
  )
    -> CInt
  {
    let (left, right) = (bytes(text, length), bytes(text2, length2))
    if let index = zip(left, right).enumerated().first(where: { $0.element.0 != $0.element.1 })?.offset {
      return left[index] < right[index] ? -1 : 1
    }
    return length - length2
  }

  private static func trimmed(_ text: UnsafeRawPointer?, _ length: CInt) -> CInt {
    CInt((bytes(text, length).lastIndex { $0 != 0x20 } ?? -1) + 1)
  }

  private static func bytes(_ text: UnsafeRawPointer?, _ length: CInt) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text, count: Int(length))
  }
}

extension Database {
  /// Sorts by bytes what only the app can sort: for files that no app reads, and where SQLite only needs that the order has a name.
  package func substituteUnknownCollations() {
    sqlite3_collation_needed(sqliteConnection, nil) { _, connection, _, name in
      sqlite3_create_collation_v2(
        connection, name, SQLITE_UTF8, nil,
        { _, length, text, length2, text2 in SQLCollation.compare(text, length, text2, length2) }, nil)
    }
  }
}
