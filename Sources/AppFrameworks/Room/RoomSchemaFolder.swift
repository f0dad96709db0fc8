import DrydockErrors
import FileSystem
import Formats

// The directory of a database class's exported schemas.
extension RoomSchema {
  /// The directory below another whose schema of a version has a hash, such as `app/schemas/com.example.AppDatabase`.
  ///
  /// - Returns: its path below the other; nil when none is found in the first thousand directories.
  package static func folder(below path: String, _ identity: RoomIdentity) -> String? {
    var found: String?
    var left = 1_000
    try? Directory(path).walk { _, _ in
    } visit: { entry in
      guard entry.status.type == .directory, found == nil, left > 0 else { return .over }
      left -= 1
      let name = entry.name.nameString
      if name.hasPrefix(".") || ["build", "node_modules"].contains(name) { return .over }
      guard entry.path.parent.nameString == "schemas" else { return .into }
      let schema = try? RoomSchema.exported(identity.version, to: "\(path)/\(entry.path)")
      if let hash = identity.hash, schema?.identityHash == hash {
        found = entry.path.description
      }
      return .over
    }
    return found
  }

  /// The versions that have a file, ascending.
  package static func versions(in folder: String) throws -> [Int] {
    try Directory(folder).names().compactMap { bytes -> Int? in
      let name = String(decoding: bytes, as: UTF8.self)
      return name.hasSuffix(".json") ? Int(name.dropLast(5)) : nil
    }.sorted()
  }

  /// The schema of a version; nil when it was not exported.
  ///
  /// - Throws: ``DrydockError`` `catalog` for an invalid file.
  package static func exported(_ version: Int, to path: String) throws -> RoomSchema? {
    let folder: Directory
    do { folder = try Directory(path) } catch let error as DrydockError where error.code == .notFound {
      throw DrydockError(.catalog, "the directory of Room's schemas does not exist", path: path)
    }
    let name = "\(version).json"
    guard let file = try? ContainerPath(name), try folder.status(file) != nil else { return nil }
    let schema = try RoomSchema(folder.contents(file, limit: RoomSchema.sizeLimit), file: path + "/" + name)
    guard schema.version == version else {
      throw DrydockError(
        .catalog, "\(path)/\(name): the schema has version \(schema.version), not \(version)")
    }
    return schema
  }
}
