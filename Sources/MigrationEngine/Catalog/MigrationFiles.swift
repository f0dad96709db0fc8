import AgeEncryption
import DrydockErrors
import FileSystem
import Formats

/// The files of one migration: what is read, and what the checksum covers.
struct MigrationFiles: Sendable {
  /// A file by its path inside the migration's directory; a single file by its name.
  var contents: [String: [UInt8]] = [:]
  /// The directory that holds them, for messages.
  var directory: String
  /// Whether the migration is a directory of files.
  var isDirectory: Bool

  /// The path of a file for messages.
  func display(_ name: String) -> String { directory.isEmpty ? name : directory + "/" + name }

  /// SHA-256 over every file in the order of the names: length and bytes of the name, length and bytes of the
  /// content, lengths as 64 bits big-endian, so that no two sets of files give the same input.
  func checksum() throws -> SHA256.Digest {
    let digest = try SHA256()
    for (name, bytes) in contents.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      for part in [Array(name.utf8), bytes] {
        withUnsafeBytes(of: UInt64(part.count).bigEndian) { digest.update($0) }
        part.withUnsafeBytes { digest.update($0) }
      }
    }
    return try digest.finalize()
  }

  /// The checksum without one of the files; nil when there is no such file.
  func checksum(without name: String?) throws -> SHA256.Digest? {
    guard let name, contents.count > 1, contents[name] != nil else { return nil }
    var rest = self
    rest.contents[name] = nil
    return try rest.checksum()
  }

  /// The content of a file that a step names.
  func bytes(of name: String, namedAt position: YAMLPosition) throws -> [UInt8] {
    guard isDirectory else {
      throw position.error(
        "`\(name)` is a file of its own: make the migration a directory with migration.yaml and its files")
    }
    guard let bytes = contents[name] else {
      throw position.error(
        "the migration has no file `\(name)`; " + NearestWord.hint(for: name, among: Array(contents.keys)))
    }
    return bytes
  }

  /// The text of a file that a step names.
  func text(of name: String, namedAt position: YAMLPosition) throws -> [UInt8] {
    guard let text = Self.text(try bytes(of: name, namedAt: position)) else {
      throw position.error("the file `\(name)` is not UTF-8")
    }
    return text
  }

  /// The text of a UTF-8 file, without a byte order mark; nil when it is something else.
  static func text(_ bytes: [UInt8]) -> [UInt8]? {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = bytes.starts(with: mark) ? Array(bytes.dropFirst(3)) : bytes
    return String(validating: text, as: UTF8.self) == nil ? nil : text
  }
}

extension MigrationFiles {
  /// Reads one file as a migration of its own.
  static func single(_ name: String, in folder: Directory, display: String) throws -> MigrationFiles {
    let bytes = try folder.contents(ContainerPath(name))
    return MigrationFiles(contents: [name: bytes], directory: display, isDirectory: false)
  }

  /// Reads a directory's files at every depth; names that start with a dot are not part of it.
  static func directory(_ name: String, in folder: Directory, display: String) throws -> MigrationFiles {
    var files = MigrationFiles(directory: display + "/" + name, isDirectory: true)
    try files.add(try folder.directory(ContainerPath(name)), prefix: "")
    return files
  }

  private mutating func add(_ directory: Directory, prefix: String) throws {
    for bytes in try directory.names() where bytes.first != UInt8(ascii: ".") {
      guard let name = String(validating: bytes, as: UTF8.self) else {
        throw DrydockError(.catalog, "a file's name is not UTF-8: rename it", path: display(prefix))
      }
      let path = try ContainerPath(name)
      switch try directory.status(path)?.type {
      case .directory: try add(try directory.directory(path), prefix: prefix + name + "/")
      case .file: contents[prefix + name] = try directory.contents(path)
      default:
        throw DrydockError(
          .catalog, "neither a file nor a directory: a migration's files must be files",
          path: display(prefix + name))
      }
    }
  }
}
