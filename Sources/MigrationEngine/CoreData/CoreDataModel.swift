import AgeEncryption
import AppContainer
import DrydockErrors
import Formats
import Foundation

/// One version of a Core Data model, as the `VersionInfo.plist` of its compiled form (`.momd`) tells it: what identifies
/// it, not what it looks like.
struct CoreDataModel: Sendable {
  /// Its name, which is that of its `.xcdatamodel`.
  let name: String
  /// 32 bytes for each entity.
  let hashes: [String: [UInt8]]
  private let listedChecksum: String?

  /// One number for all entities, which newer systems keep beside the hashes.
  func checksum() throws -> String {
    if let listedChecksum { return listedChecksum }
    return Data(try SHA256.hash(sorted.flatMap(\.value)).bytes).base64EncodedString()
  }

  /// The same with the entities' names, which migrations look at.
  func digest() throws -> String {
    Data(try SHA512.hash(sorted.flatMap { Array($0.key.utf8) + $0.value })).base64EncodedString()
  }

  private var sorted: [(key: String, value: [UInt8])] {
    hashes.sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
  }

  /// A version of a VersionInfo.plist.
  ///
  /// - Parameters:
  ///   - position: where the version is named, for messages.
  init(named name: String, in info: PropertyListDictionary, at position: YAMLPosition) throws {
    guard case .dictionary(let versions)? = info["NSManagedObjectModel_VersionHashes"] else {
      throw position.error(
        "the file is no VersionInfo.plist of a compiled model (.momd): it has no NSManagedObjectModel_VersionHashes"
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
        "the version `\(name)` of the model is damaged: its entities have no hashes of 32 bytes")
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

/// The argument `core-data: {version-info: FILE, version: NAME, down-version: NAME}`: which models a store is of.
struct CoreDataArgument {
  /// After the way up: the version that is named, else the current one.
  let up: CoreDataModel
  /// After the way back; nil without one.
  let down: CoreDataModel?

  init(_ node: YAMLNode, files: MigrationFiles, hasDown: Bool) throws {
    let reader = try YAMLReader(node, what: "core-data", keys: ["version-info", "version", "down-version"])
    let file = try reader.required("version-info")
    let bytes = try files.bytes(of: file.text("`version-info`"), namedAt: file.position)
    let info: PropertyListDictionary
    do {
      info = try PropertyListFile(bytes: bytes).root
    } catch let error as DrydockError {
      throw file.position.error(error.message)
    }
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
      down = try CoreDataModel(named: node.text("`down-version`"), in: info, at: node.position)
    case (let node?, false): throw node.position.error("`down-version` is for a step with `down`")
    case (nil, true):
      throw node.position.error(
        "the step has a way back: name the model that the store is of after it with `down-version`")
    case (nil, false): down = nil
    }
  }
}

extension PropertyListValue {
  /// The hashes of a model's entities; nil when it is something else.
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
