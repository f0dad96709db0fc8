import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import Foundation

/// One version of a Core Data model, from the `VersionInfo.plist` of its compiled form (`.momd`): its identity, not its
/// attributes.
package struct CoreDataModel: Sendable {
  /// The name of its `.xcdatamodel`.
  package let name: String
  /// 32 bytes for each entity.
  package let hashes: [String: [UInt8]]
  private let listedChecksum: String?

  /// One checksum of all entities, which newer systems store beside the hashes.
  package func checksum() throws -> String {
    if let listedChecksum { return listedChecksum }
    return Data(try SHA256.hash(sorted.flatMap(\.value)).bytes).base64EncodedString()
  }

  /// The same with the entities' names, which Core Data's migrations compare.
  package func digest() throws -> String {
    Data(try HashFunction.sha512.hash(sorted.flatMap { Array($0.key.utf8) + $0.value })).base64EncodedString()
  }

  private var sorted: [(key: String, value: [UInt8])] {
    hashes.sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
  }

  /// The model with the hashes of these entities only, and of others that it does not have.
  package func having(_ names: Set<String>, and others: [String: [UInt8]]) -> CoreDataModel {
    let part = hashes.filter { names.contains($0.key) }.merging(others) { own, _ in own }
    return CoreDataModel(
      name: name, hashes: part, listedChecksum: part == hashes ? listedChecksum : nil)
  }

  private init(name: String, hashes: [String: [UInt8]], listedChecksum: String?) {
    (self.name, self.hashes, self.listedChecksum) = (name, hashes, listedChecksum)
  }

  /// Reads a version of a `VersionInfo.plist`.
  ///
  /// - Throws: `DrydockError` (`malformed`).
  package init(named name: String, in info: PropertyListDictionary) throws {
    let versions = try Self.versions(in: info)
    self.name = name
    guard let version = versions[name] else {
      throw DrydockError(
        .malformed,
        "the model has no version `\(name)`; "
          + NearestWord.hint(for: name, among: versions.keys.map(\.text)))
    }
    guard let hashes = version.entityHashes, !hashes.isEmpty else {
      throw DrydockError(
        .malformed, "the version `\(name)` of the model is corrupt: its entities have no hashes of 32 bytes")
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

  private static func versions(in info: PropertyListDictionary) throws -> PropertyListDictionary {
    guard case .dictionary(let versions)? = info["NSManagedObjectModel_VersionHashes"] else {
      throw DrydockError(
        .malformed,
        "the file is not the VersionInfo.plist of a compiled model (.momd): it has no "
          + "NSManagedObjectModel_VersionHashes")
    }
    return versions
  }

  /// The name of the current version, if the file names one.
  package static func currentVersion(in info: PropertyListDictionary) -> String? {
    guard case .string(let name)? = info["NSManagedObjectModel_CurrentVersionName"] else { return nil }
    return name
  }

  /// All versions of a compiled model, sorted by name.
  ///
  /// - Parameter path: a `.momd` directory, or the `VersionInfo.plist` in one.
  package static func all(in path: String) throws -> [CoreDataModel] {
    let info = try info(of: path)
    return try DrydockError.locating(path) {
      try versions(in: info).sorted().map { try CoreDataModel(named: $0.key, in: info) }
    }
  }

  private static func info(of path: String) throws -> PropertyListDictionary {
    let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    if let ending = [".xcdatamodeld", ".xcdatamodel", ".mom"].first(where: path.hasSuffix) {
      throw DrydockError(
        .unsupported,
        "a file \(ending) does not list the versions of a model: name the compiled model, NAME.momd, which is in the app",
        path: path)
    }
    do {
      let (directory, name) =
        try path.hasSuffix(".momd") ? (path, "VersionInfo.plist") : ContainerPath.split(path)
      let bytes = try Directory(directory).contents(name, limit: 1 << 20)
      return try PropertyListFile(bytes: bytes).root
    } catch var error as DrydockError {
      error.path = path
      throw error
    }
  }
}

extension PropertyListValue {
  /// The hashes of a model's entities; nil for another value.
  package var entityHashes: [String: [UInt8]]? {
    guard case .dictionary(let values) = self else { return nil }
    var hashes: [String: [UInt8]] = [:]
    for (entity, value) in values {
      guard case .data(let bytes) = value, bytes.count == 32, hashes.updateValue(bytes, forKey: entity) == nil
      else { return nil }
    }
    return hashes
  }
}

extension ContainerConfiguration {
  /// Compiled Core Data models by database: absolute paths of `.momd` directories or `VersionInfo.plist` files.
  package var coreDataModels: [String: String] {
    get { self[value: "core-data", default: [:]] }
    set { self[value: "core-data", default: [:]] = newValue }
  }

  /// A compiled model for all databases, in place of those.
  package var coreDataModel: String? {
    get { self[value: "core-data model", default: nil] }
    set { self[value: "core-data model", default: nil] = newValue }
  }

  /// The path of a compiled model for a database that the file names.
  fileprivate mutating func add(model pair: YAMLMapping.Pair, _ resolve: (String) -> String) throws {
    guard databases[pair.key.source] != nil else {
      throw pair.keyPosition.error(
        "`databases` has no `\(pair.key.source)`; "
          + NearestWord.hint(for: pair.key.source, among: databases.keys.sorted()))
    }
    coreDataModels[pair.key.source] = resolve(try pair.value.text("the path of a compiled model (.momd)"))
  }

  /// The versions of the compiled model for a database; nil when none is configured.
  ///
  /// - Parameter name: the database's name, if it has one.
  /// - Throws: `DrydockError` when the model cannot be read.
  func coreDataModels(of name: String?) throws -> (versions: [CoreDataModel], isForThisDatabase: Bool)? {
    if let coreDataModel { return (try CoreDataModel.all(in: coreDataModel), false) }
    guard let path = name.flatMap({ coreDataModels[$0] }) else { return nil }
    return (try CoreDataModel.all(in: path), true)
  }
}

extension ConfigurationSection {
  package static let coreData = ConfigurationSection("core-data") { node, configuration, resolve in
    if node.isNull { return }
    for pair in try node.pairs("`core-data`").pairs { try configuration.add(model: pair, resolve) }
  }
}
