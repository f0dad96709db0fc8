import Cryptography
import ArchiveFile
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// A place on a server whose archives' beginnings and ends are fetched as a whole, and kept: opening an archive reads small
/// pieces of both, and a list of archives reads nothing else of them.
struct CachedPlace: PlaceWrapper {
  let base: any Place
  let cache: ArchiveEndsCache?

  func list(_ folder: ContainerPath) throws -> PlaceListing {
    let listing = try base.list(folder)
    if folder.isRoot { try cache?.keepOnly(listing) }
    return listing
  }

  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    let source = try base.open(file, usesCache: usesCache)
    let ends = ArchiveEnds(file, source, usesCache ? cache : nil, isRead: !usesCache)
    return ArchiveSource(size: file.size, requests: source.requests) { try ends.read(into: $0, at: $1) }
  }
}

/// An open archive. Its beginning and its end are fetched with one request each when something in them is read.
private final class ArchiveEnds: Sendable {
  private let file: PlaceFile, source: ArchiveSource
  private let cache: ArchiveEndsCache?
  /// The beginning and the end; or all of a short file: what two requests would fetch is fetched with one.
  private let ranges: [Range<UInt64>]
  private let ends = Mutex<[Range<UInt64>: [UInt8]]>([:])

  /// Of an encrypted archive, the beginning and the end are whole chunks of age; else its tables are there.
  private static let encryptedLength: UInt64 = 68 << 10, plainLength: UInt64 = 8 << 10
  /// The end also has the manifest of some thousand files.
  private static let manifestLength: UInt64 = 256 << 10

  /// - Parameter isRead: whether the manifest is read, too, and not only the header.
  init(_ file: PlaceFile, _ source: ArchiveSource, _ cache: ArchiveEndsCache?, isRead: Bool) {
    (self.file, self.source, self.cache) = (file, source, cache)
    let isEncrypted = file.name.bytes.suffix(4).elementsEqual(".age".utf8)
    let beginning = isEncrypted ? Self.encryptedLength : Self.plainLength
    let end = isRead ? Self.manifestLength : beginning
    ranges =
      file.size <= beginning + end ? [0..<file.size] : [0..<beginning, (file.size - end)..<file.size]
  }

  func read(into target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    guard offset <= file.size, UInt64(target.count) <= file.size - offset else {
      throw DrydockError(.truncated, "the archive is shorter than expected")
    }
    let end = offset + UInt64(target.count)
    guard let range = ranges.first(where: { $0.lowerBound <= offset && end <= $0.upperBound }) else {
      return try source.readExactly(target, at: offset)
    }
    let bytes = try ends.withLock { ends in
      if let bytes = ends[range] ?? cache?.bytes(file, range) {
        ends[range] = bytes
        return bytes
      }
      var bytes = [UInt8](repeating: 0, count: range.count)
      try bytes.withUnsafeMutableBytes { try source.readExactly($0, at: range.lowerBound) }
      cache?.keep(bytes, file, range)
      ends[range] = bytes
      return bytes
    }
    bytes.withUnsafeBytes {
      let start = Int(offset - range.lowerBound)
      target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + target.count]))
    }
  }
}

/// The beginnings and ends of remote archives, as they are there; those of encrypted archives stay encrypted. The directory can
/// be removed at any time.
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
  func bytes(_ file: PlaceFile, _ range: Range<UInt64>) -> [UInt8]? {
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
  func keep(_ bytes: [UInt8], _ file: PlaceFile, _ range: Range<UInt64>) {
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
  func keepOnly(_ listing: PlaceListing) throws {
    guard let folder = try? Directory(path), let names = try? folder.names() else { return }
    let files = try listing.names.compactMap { try listing.file(ContainerPath(name: $0)) }
    let kept = Set(files.compactMap { try? Array(key($0).utf8) })
    for name in names where !kept.contains(Array(name.prefix(32))) {
      try? folder.removeFile(ContainerPath(name: name), missingIsFine: true)
    }
  }

  private func key(_ file: PlaceFile) throws -> String {
    try String(SHA256.hash(Array("\(file.name)\n\(file.size)\n\(file.version)".utf8)).hex.prefix(32))
  }

  private func name(_ file: PlaceFile, _ range: Range<UInt64>) throws -> ContainerPath {
    try ContainerPath("\(key(file))-\(range.lowerBound)")
  }
}
