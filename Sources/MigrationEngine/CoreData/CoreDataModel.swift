import AgeEncryption
import AppContainer
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

  /// Reads the argument `core-data: {version-info: FILE, version: NAME}`; without a name it is the current version.
  init(_ node: YAMLNode, files: MigrationFiles) throws {
    let reader = try YAMLReader(node, what: "core-data", keys: ["version-info", "version"])
    let file = try reader.required("version-info")
    let info: [String: PropertyListValue]
    do {
      info = try PropertyListFile(bytes: files.bytes(of: file.text("`version-info`"), namedAt: file.position))
        .root
    } catch let error as ContainerError {
      throw file.position.error(error.message)
    }
    guard case .dictionary(let versions)? = info["NSManagedObjectModel_VersionHashes"] else {
      throw file.position.error(
        "the file is no VersionInfo.plist of a compiled model (.momd): it has no NSManagedObjectModel_VersionHashes"
      )
    }
    let position: YAMLPosition
    if let node = reader["version"] {
      (name, position) = (try node.text("`version`"), node.position)
    } else if case .string(let current)? = info["NSManagedObjectModel_CurrentVersionName"] {
      (name, position) = (current, file.position)
    } else {
      throw file.position.error(
        "the file does not say which version is the current one: name it with `version`")
    }
    guard let version = versions[name] else {
      throw position.error(
        "the model has no version `\(name)`; " + NearestWord.hint(for: name, among: Array(versions.keys)))
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

extension PropertyListValue {
  /// The hashes of a model's entities; nil when it is something else.
  var entityHashes: [String: [UInt8]]? {
    guard case .dictionary(let values) = self else { return nil }
    var hashes: [String: [UInt8]] = [:]
    for (entity, value) in values {
      guard case .data(let bytes) = value, bytes.count == 32 else { return nil }
      hashes[entity] = bytes
    }
    return hashes
  }
}
