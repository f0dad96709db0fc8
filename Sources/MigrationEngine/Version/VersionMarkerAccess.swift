import AppContainer
import ContainerTransaction
import Foundation
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
  /// - Throws: ``MigrationError`` with code `unknownVersion` when what is there is no integer.
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
      guard let value = JSONPointer(pointer).value(in: try document(path)) else { return nil }
      guard let number = value as? NSNumber, !isBoolean(number), let number = Int(exactly: number) else {
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
      let (changed, done) = JSONPointer(pointer).setting(NSNumber(value: number), in: try document(path))
      guard done else { return "\(name): what should hold it is not there" }
      let data = try JSONSerialization.data(
        withJSONObject: changed,
        options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed])
      try stage.write([UInt8](data) + [UInt8(ascii: "\n")], to: path)
    }
    return nil
  }

  private func document(_ path: ContainerPath) throws -> Any {
    do {
      return try JSONSerialization.jsonObject(with: Data(try stage.read(path)), options: [.fragmentsAllowed])
    } catch let error as NSError where error.domain == NSCocoaErrorDomain {
      throw MigrationError(
        .unknownVersion, "the file with the version marker is not JSON", path: path.description, cause: error)
    }
  }

  private func unreadable(_ what: String) -> MigrationError {
    MigrationError(.unknownVersion, "the version marker, \(name), \(what): a version is an integer")
  }

  private func isBoolean(_ number: NSNumber) -> Bool {
    ["c", "B"].contains(String(cString: number.objCType))
  }
}

/// A JSON pointer (RFC 6901), as far as objects and arrays that exist go.
struct JSONPointer {
  private let tokens: [String]

  init(_ text: String) {
    tokens = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map {
      String($0).replacing("~1", with: "/").replacing("~0", with: "~")
    }
  }

  func value(in document: Any) -> Any? {
    var current = document
    for token in tokens {
      if let object = current as? [String: Any], let next = object[token] {
        current = next
      } else if let array = current as? [Any], let index = Int(token), array.indices.contains(index) {
        current = array[index]
      } else {
        return nil
      }
    }
    return current
  }

  /// The document with the value set, and whether there was a place for it.
  func setting(_ value: Any, in document: Any) -> (Any, Bool) { Self.set(value, tokens[...], in: document) }

  private static func set(_ value: Any, _ tokens: ArraySlice<String>, in document: Any) -> (Any, Bool) {
    guard let token = tokens.first else { return (value, true) }
    if var object = document as? [String: Any] {
      if object[token] == nil, tokens.count > 1 { return (document, false) }
      let (changed, done) = set(value, tokens.dropFirst(), in: object[token] ?? NSNull())
      object[token] = changed
      return done ? (object, true) : (document, false)
    }
    if var array = document as? [Any], let index = Int(token), array.indices.contains(index) {
      let (changed, done) = set(value, tokens.dropFirst(), in: array[index])
      array[index] = changed
      return done ? (array, true) : (document, false)
    }
    return (document, false)
  }
}
