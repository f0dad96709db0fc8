import AgeEncryption
import AppContainer
import DrydockErrors
import Formats
import Foundation

/// One version of a Core Data model, from the `VersionInfo.plist` of its compiled form (`.momd`): its identity, not its
/// attributes.
struct CoreDataModel: Sendable {
  /// The name of its `.xcdatamodel`.
  let name: String
  /// 32 bytes for each entity.
  let hashes: [String: [UInt8]]
  private let listedChecksum: String?

  /// One checksum of all entities, which newer systems store beside the hashes.
  func checksum() throws -> String {
    if let listedChecksum { return listedChecksum }
    return Data(try SHA256.hash(sorted.flatMap(\.value)).bytes).base64EncodedString()
  }

  /// The same with the entities' names, which Core Data's migrations compare.
  func digest() throws -> String {
    Data(try SHA512.hash(sorted.flatMap { Array($0.key.utf8) + $0.value })).base64EncodedString()
  }

  private var sorted: [(key: String, value: [UInt8])] {
    hashes.sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
  }

  /// - Parameter position: where the version is named, for messages.
  init(named name: String, in info: PropertyListDictionary, at position: YAMLPosition) throws {
    guard case .dictionary(let versions)? = info["NSManagedObjectModel_VersionHashes"] else {
      throw position.error(
        "the file is not the VersionInfo.plist of a compiled model (.momd): it has no NSManagedObjectModel_VersionHashes"
      )
    }
    self.name = name
    guard let version = versions[name] else {
      throw position.error(
        "the model has no version `\(name)`; " + NearestWord.hint(for: name, among: versions.keys.map(\.text))
      )
    }
    guard let hashes = version.entityHashes, !hashes.isEmpty else {
      throw position.error(
        "the version `\(name)` of the model is corrupt: its entities have no hashes of 32 bytes")
    }
    self.hashes = hashes
    if case .dictionary(let checksums)? = info["NSManagedObjectModel_VersionChecksums"],
      case .string(let checksum)? = checksums[name]
    {
      listedChecksum = checksum
    } else {
      listedChecksum = nil
    }
  }
}

extension CoreDataModel {
  /// Decodes the argument `core-data: {version-info: FILE, version: NAME, down-version: NAME}`: the models of a store after
  /// the statements (by default the current version), and after the down statements.
  static func argument(
    _ node: YAMLNode, files: MigrationFiles, hasDown: Bool
  ) throws -> (up: CoreDataModel, down: CoreDataModel?) {
    let reader = try YAMLReader(node, what: "core-data", keys: ["version-info", "version", "down-version"])
    let file = try reader.required("version-info")
    let bytes = try files.bytes(of: file.text("`version-info`"), namedAt: file.position)
    let info: PropertyListDictionary
    do {
      info = try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError {
      throw file.position.error(error.message)
    }
    let up: CoreDataModel
    if let node = reader["version"] {
      up = try CoreDataModel(named: node.text("`version`"), in: info, at: node.position)
    } else if case .string(let current)? = info["NSManagedObjectModel_CurrentVersionName"] {
      up = try CoreDataModel(named: current, in: info, at: file.position)
    } else {
      throw file.position.error(
        "the file does not say which version is the current one: name it with `version`")
    }
    switch (reader["down-version"], hasDown) {
    case (let node?, true):
      return (up, try CoreDataModel(named: node.text("`down-version`"), in: info, at: node.position))
    case (let node?, false): throw node.position.error("`down-version` is for a step with `down`")
    case (nil, true):
      throw node.position.error("the step has `down`: name the store's model after it with `down-version`")
    case (nil, false): return (up, nil)
    }
  }
}

extension PropertyListValue {
  /// The hashes of a model's entities; nil for another value.
  var entityHashes: [String: [UInt8]]? {
    guard case .dictionary(let values) = self else { return nil }
    var hashes: [String: [UInt8]] = [:]
    for (entity, value) in values {
      guard case .data(let bytes) = value, bytes.count == 32, hashes.updateValue(bytes, forKey: entity) == nil
      else { return nil }
    }
    return hashes
  }
}
