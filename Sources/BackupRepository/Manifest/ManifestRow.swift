import AppContainer
import Foundation
import GRDB

/// The columns of one row of a manifest, each as what the format says or nil. A STRICT table does not help here:
/// what a hostile file holds has never been checked by SQLite.
struct ManifestRow {
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
    if case .string(let value) = storage(column) { value } else { nil }
  }

  func bytes(_ column: String) -> [UInt8]? {
    if case .blob(let value) = storage(column) { [UInt8](value) } else { nil }
  }

  func path(_ column: String) -> ContainerPath? {
    PathValue.fromDatabaseValue(row[column] as DatabaseValue)?.path
  }
}
