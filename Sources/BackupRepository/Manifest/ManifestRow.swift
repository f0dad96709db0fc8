import FileSystem
import Foundation
import GRDB

/// The columns of one row of a manifest, each as what the format says or nil. A STRICT table does not help here:
/// what a hostile file holds has never been checked by SQLite.
///
/// Text and bytes are at most 1 MiB: longer than any path, and than what a tar header can have.
struct ManifestRow {
  private static let longest = 1 << 20
  private let row: Row

  init(_ row: Row) { self.row = row }

  private func storage(_ column: String) -> DatabaseValue.Storage { (row[column] as DatabaseValue).storage }

  func isNull(_ column: String) -> Bool {
    if case .null = storage(column) { true } else { false }
  }

  func integer(_ column: String) -> Int64? {
    if case .int64(let value) = storage(column) { value } else { nil }
  }

  func unsigned<T: FixedWidthInteger>(_ column: String, _ type: T.Type) -> T? {
    integer(column).flatMap { T(exactly: $0) }
  }

  func text(_ column: String) -> String? {
    if case .string(let value) = storage(column), value.utf8.count <= Self.longest { value } else { nil }
  }

  func bytes(_ column: String) -> [UInt8]? {
    if case .blob(let value) = storage(column), value.count <= Self.longest { [UInt8](value) } else { nil }
  }

  /// The SQL of a path's column, for ``path(_:)``. SQLite's text may be no UTF-8 and go on after a NUL, which a Swift
  /// string does not show: its bytes are read.
  static func path(_ column: String, as name: String) -> String {
    "CAST(\(column) AS BLOB) AS \(name), typeof(\(column)) AS \(name)_type"
  }

  /// A path: text where it is UTF-8, and a blob where it is not, so that none can be there in two ways.
  func path(_ column: String) -> ContainerPath? {
    guard let bytes = bytes(column),
      text(column + "_type") == (String(validating: bytes, as: UTF8.self) == nil ? "blob" : "text")
    else { return nil }
    return try? ContainerPath(bytes: bytes)
  }
}
