import FileSystem
import Foundation
import GRDB

/// Paths in a manifest: text where they are UTF-8, so that a person can read them with any SQLite, else blobs.
struct PathValue: DatabaseValueConvertible {
  var path: ContainerPath

  init(_ path: ContainerPath) { self.path = path }

  var databaseValue: DatabaseValue {
    String(validating: path.bytes, as: UTF8.self)?.databaseValue ?? Data(path.bytes).databaseValue
  }

  static func fromDatabaseValue(_ value: DatabaseValue) -> PathValue? {
    switch value.storage {
    case .string(let text): return (try? ContainerPath(text)).map(PathValue.init)
    case .blob(let data): return (try? ContainerPath(bytes: data)).map(PathValue.init)
    default: return nil
    }
  }
}
