import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// Reads and writes the number that an app keeps about its own data.
struct VersionMarkerAccess {
  let marker: AppContainer.Configuration.VersionMarker
  let stage: StagedContainer

  /// The marker in words.
  var name: String {
    switch marker.place {
    case .defaults(let key): "the setting `\(key)`"
    case .userVersion(let database): "the user_version of the database \(database)"
    case .json(let path, let pointer): "`\(pointer)` in \(path)"
    }
  }

  /// The app's number; nil when it is not there.
  ///
  /// - Throws: ``DrydockError`` with code `unknownVersion` when what is there is no integer.
  func read() throws -> Int? {
    switch marker.place {
    case .defaults(let key):
      guard let path = stage.container.standardDefaults, let value = try stage.defaults(path)?.root[key]
      else {
        return nil
      }
      guard case .integer(let number) = value, let number = Int(exactly: number) else {
        throw unreadable("is a \(value.typeName)")
      }
      return number
    case .userVersion(let database):
      guard let path = try stage.databasePlace(database) else { return nil }
      return try stage.readDatabase(at: path) { try Int.fetchOne($0, sql: "PRAGMA user_version") }
    case .json(let path, let pointer):
      guard try stage.status(of: path) != nil else { return nil }
      guard let value = try document(path).value[JSONPointer(pointer)] else { return nil }
      guard case .number(let number) = value, let number = number.integer.flatMap({ Int(exactly: $0) }) else {
        throw unreadable("is no integer")
      }
      return number
    }
  }

  /// Writes the app's number, where the place for it exists (a setting is made).
  ///
  /// - Returns: a remark when it could not be kept.
  func write(_ number: Int) throws -> String? {
    switch marker.place {
    case .defaults(let key):
      guard let path = stage.container.standardDefaults else { return "\(name): no settings file is known" }
      var file = try stage.defaults(path) ?? PropertyListFile()
      guard file.root[key] != .integer(Int64(number)) else { return nil }
      file.root[key] = .integer(Int64(number))
      try stage.setDefaults(file, at: path)
    case .userVersion(let database):
      guard let path = try stage.databasePlace(database) else {
        return "\(name): the database is not there, so that no version was written to it"
      }
      guard try read() != number else { return nil }
      guard Int32(exactly: number) != nil else { return "\(name): \(number) does not fit" }
      try stage.writeDatabase(at: path) { try $0.execute(sql: "PRAGMA user_version = \(number)") }
    case .json(let path, let pointer):
      guard try stage.status(of: path) != nil else { return "\(name): the file is not there" }
      guard try read() != number else { return nil }
      var document = try document(path)
      guard (try? document.value.set(.number(JSONNumber(number)), at: JSONPointer(pointer))) != nil else {
        return "\(name): what should hold it is not there"
      }
      try stage.write(document.bytes, to: path)
    }
    return nil
  }

  private func document(_ path: ContainerPath) throws -> JSONDocument {
    do {
      return try JSONDocument(bytes: try stage.read(path))
    } catch let error as DrydockError where error.code == .malformed {
      throw DrydockError(
        .unknownVersion, "the file with the version marker is \(error.message)", path: path.description,
        cause: error)
    }
  }

  private func unreadable(_ what: String) -> DrydockError {
    DrydockError(.unknownVersion, "the version marker, \(name), \(what): a version is an integer")
  }
}
