import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import RemoteStorage

/// The beginnings and ends of remote archives, as they are there: a list of archives reads nothing else of them. Those of
/// encrypted archives stay encrypted. The directory can be removed at any time.
struct ArchiveEndsCache: Sendable {
  private let path: String

  /// - Parameters:
  ///   - directory: for caches; it is created on the first use.
  ///   - url: of the repository.
  init(_ directory: String, of url: String) throws {
    path = try "\(directory)/edges/\(SHA256.hash(Array(url.utf8)).hex.prefix(32))"
  }

  /// The bytes of a range of a file; nil if they are not here. An archive's name is never used for other content, so that
  /// the size is enough where a server has no version.
  func bytes(_ file: RemoteFile, _ range: Range<UInt64>) -> [UInt8]? {
    guard let folder = try? Directory(path), let status = try? folder.status(), status.user == geteuid(),
      status.mode & 0o077 == 0, let name = try? name(file, range),
      let content = try? folder.contents(name, limit: range.count + SHA256.Digest.byteCount),
      content.count == range.count + SHA256.Digest.byteCount
    else { return nil }
    let bytes = Array(content.dropFirst(SHA256.Digest.byteCount))
    // The files are not synced: after a power failure they may hold anything.
    let isWhole = SHA256.Digest(bytes: content.prefix(SHA256.Digest.byteCount)) == (try? SHA256.hash(bytes))
    return isWhole ? bytes : nil
  }

  /// Keeps bytes. What prevents that costs a request next time, and is not an error.
  func keep(_ bytes: [UInt8], _ file: RemoteFile, _ range: Range<UInt64>) {
    do {
      let name = try name(file, range)
      let folder = try openOrMake()
      // What is there is damaged: it has just been read. One that is not written to its end is found to be by its hash.
      try folder.removeFile(name, missingIsFine: true)
      try folder.create(name, Array(SHA256.hash(bytes).bytes) + bytes)
    } catch {}
  }

  private func openOrMake() throws -> Directory {
    if let folder = try? Directory(path) { return folder }
    try FileManager.default.createDirectory(
      atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    return try Directory(path)
  }

  /// Removes what is of none of these files.
  func keepOnly(_ files: [RemoteFile]) {
    guard let folder = try? Directory(path), let names = try? folder.names() else { return }
    let kept = Set(files.compactMap { try? Array(key($0).utf8) })
    for name in names where !kept.contains(Array(name.prefix(32))) {
      try? folder.removeFile(ContainerPath(name: name), missingIsFine: true)
    }
  }

  private func key(_ file: RemoteFile) throws -> String {
    try String(SHA256.hash(Array("\(file.name)\n\(file.size)\n\(file.version)".utf8)).hex.prefix(32))
  }

  private func name(_ file: RemoteFile, _ range: Range<UInt64>) throws -> ContainerPath {
    try ContainerPath("\(key(file))-\(range.lowerBound)")
  }
}
