import ArchiveFile
import DrydockErrors
import FileSystem
import Foundation
import Synchronization

/// Opens places by their paths.
///
/// Those on servers stay open and are shared by the whole process, because a connection takes longer to open than most requests,
/// and so that all transfers together keep the limit of their rate.
package enum Places {
  /// The beginning of the names of files that are being written.
  static let writingPrefix = ".drydock-writing-"

  /// Whether a path is a URL of a remote place: `s3://` or `sftp://`.
  package static func isRemote(_ path: String) -> Bool {
    path.hasPrefix("s3://") || path.hasPrefix("sftp://")
  }

  /// Throws `usage` for a URL of another kind, which would otherwise be the path of a directory.
  package static func refuseOtherURL(_ path: String) throws {
    guard !isRemote(path), let scheme = path.wholeMatch(of: /([A-Za-z][A-Za-z0-9+.-]*):\/\/.*/)?.1 else {
      return
    }
    throw DrydockError(
      .usage,
      "repositories at \(scheme):// are not supported; use s3://BUCKET/PREFIX, sftp://HOST/PATH or a directory",
      path: RemoteName.printable(path))
  }

  /// - Throws: `DrydockError`: `notFound`, `permission`; of a URL, for which no request is sent, `usage` when it is invalid or
  ///   credentials are missing, `badConfiguration` for an invalid variable.
  package static func open(_ path: String) throws -> any Place {
    if isRemote(path) { return try connection(path) }
    try refuseOtherURL(path)
    return LocalPlace(try Directory(path))
  }

  /// A place with its lock, which is held as long as a copy of it exists: `flock` on a directory, or ``LockedPlace``.
  ///
  /// The kernel releases a directory's when a process dies, so that it is never stale, and it needs no file. On a network file
  /// system it holds among the processes of one machine.
  ///
  /// - Parameters:
  ///   - exclusive: for who removes; who writes takes it shared, and who reads takes none.
  ///   - timeout: seconds to wait; 0 waits for a tenth of a second.
  /// - Returns: nil when others have a directory's lock.
  /// - Throws: `DrydockError`: `locked` with the holder at a server; those of ``open(_:)``.
  package static func locked(_ path: String, exclusive: Bool, timeout: Double) throws -> (any Place)? {
    guard isRemote(path) else {
      return try Directory.locked(path, exclusive: exclusive, timeout: timeout).map { LocalPlace($0) }
    }
    return try LockedPlace(connection(path), exclusive: exclusive, timeout: timeout)
  }

  /// Creates a place on its first use. The parent of a directory must exist, so that a mistyped path does not become a place; so
  /// must a bucket.
  package static func createIfNeeded(_ path: String) throws {
    if isRemote(path) { return try connection(path).createIfNeeded() }
    try refuseOtherURL(path)
    let url = URL(fileURLWithPath: path)
    guard !FileManager.default.fileExists(atPath: path),
      FileManager.default.fileExists(atPath: url.deletingLastPathComponent().path)
    else { return }
    try Directory(url.deletingLastPathComponent().path).createDirectories(
      ContainerPath(url.lastPathComponent), mode: 0o700)
  }

  /// The place of a file, and its name there. A link is followed to the directory of what it leads to.
  package static func ofFile(_ path: String) throws -> (place: any Place, name: ContainerPath) {
    let real = isRemote(path) ? path : realPath(path) ?? path
    let slash = real.lastIndex(of: "/")
    let folder = slash.map { $0 == real.startIndex ? "/" : String(real[..<$0]) } ?? "."
    return (try open(folder), try ContainerPath(real.split(separator: "/").last.map(String.init) ?? real))
  }

  /// The bytes of an archive.
  ///
  /// - Parameters:
  ///   - file: the file, when a listing of its place has it.
  ///   - usesCache: see ``Place/open(_:usesCache:)``.
  /// - Throws: `DrydockError`: `notFound`, `permission`, `io`.
  package static func source(
    _ path: String, _ file: PlaceFile? = nil, usesCache: Bool = false
  ) throws -> ArchiveSource {
    func missing(_ cause: DrydockError? = nil) -> DrydockError {
      DrydockError(.notFound, "no such archive; check the path", path: path, cause: cause)
    }
    guard isRemote(path) else {
      // Not through its directory, which the user may not be able to read.
      do { return try ArchiveSource(path: path) } catch let error as DrydockError
        where error.code == .io && FollowedStatus.identity(path) == nil
      { throw missing(error) }
    }
    let (place, name) = try ofFile(path)
    guard let file = try file ?? place.file(name) else { throw missing() }
    return try place.open(file, usesCache: usesCache)
  }

  // MARK: Connections

  private struct State {
    var options: RemoteOptions?
    var cache: String?
    var connections: [(url: String, place: any Place)] = []
  }

  private static let state = Mutex(State())
  /// More are closed, the oldest first.
  private static let mostConnections = 4

  private static func connection(_ url: String) throws -> any Place {
    try state.withLock { state in
      if let open = state.connections.first(where: { $0.url == url }) { return open.place }
      let place = try connect(url, state.options ?? RemoteOptions(), cache: state.cache)
      state.connections.append((url, place))
      if state.connections.count > mostConnections { state.connections.removeFirst() }
      return place
    }
  }

  /// A place on a server with connections of its own.
  package static func connect(
    _ url: String, _ options: RemoteOptions, cache: String? = nil
  ) throws -> any Place {
    guard isRemote(url) else {
      throw DrydockError(
        .usage, "not a remote place; use s3://BUCKET/PREFIX or sftp://HOST/PATH",
        path: RemoteName.printable(url))
    }
    let place: any Place = url.hasPrefix("s3://") ? try S3Place(url, options) : try SFTPPlace(url, options)
    return CachedPlace(base: place, cache: try cache.map { try ArchiveEndsCache($0, of: url) })
  }

  /// Changes what is used for remote places that are not open yet; by default the environment has the options, and there is no
  /// cache.
  ///
  /// - Parameter cache: a directory for caches.
  package static func configure(_ options: RemoteOptions, cache: String?) {
    state.withLock { ($0.options, $0.cache) = (options, cache) }
  }

  /// Uses a place for a URL, instead of a new connection; nil closes the one that is there when nobody uses it any more.
  package static func use(_ place: (any Place)?, for url: String) {
    state.withLock { state in
      state.connections.removeAll { $0.url == url }
      if let place { state.connections.append((url, place)) }
    }
  }
}

extension ContainerPath {
  /// As a server has it.
  var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// The names of files at a remote place: one component, or two for a file in a folder.
enum RemoteName {
  /// - Throws: `DrydockError` with `badPath`, if a name would leave the place or cannot be sent.
  static func check(_ name: ContainerPath) throws {
    let parts = name.text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count <= 2, name.bytes.count <= 1000, parts.allSatisfy({ isComponent($0) }) else {
      throw DrydockError(.badPath, "not a name of a remote file: \(printable(name.text))")
    }
  }

  /// Whether a byte needs no encoding, in the name of a host or a bucket either.
  static func isPlain(_ byte: UInt8) -> Bool { byte.isLetter || byte.isDigit || "-._".utf8.contains(byte) }

  static func isComponent(_ part: some StringProtocol) -> Bool {
    !part.isEmpty && part != "." && part != ".." && !part.contains("/")
      && !part.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f || $0 == "\u{fffd}" }
  }

  /// Names the reason why a path with `..` is refused: what it leads to is known only to the server.
  static func refuseDots(_ components: [Substring], in url: String) throws {
    guard let dots = components.first(where: { $0 == "." || $0 == ".." }) else { return }
    throw DrydockError(
      .usage,
      "a remote path with `\(dots)` is refused, because a link may lead elsewhere; write the path without it",
      path: printable(url))
  }

  /// A name for a message: control characters could change what a terminal shows.
  static func printable(_ text: some StringProtocol) -> String {
    let short = text.unicodeScalars.prefix(200).map { $0.properties.generalCategory == .control ? "?" : $0 }
    return String(String.UnicodeScalarView(short))
  }

  /// Percent encoding as Signature 4 wants it: only unreserved characters are sent as they are.
  static func encode(_ text: String, keeping slash: Bool = false) -> String {
    var encoded: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case _ where isPlain(byte), UInt8(ascii: "~"): encoded.append(byte)
      case UInt8(ascii: "/") where slash: encoded.append(byte)
      default: encoded += Array("%\([byte].hex.uppercased())".utf8)
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  /// The text, with `+` for a space as S3 lists names; nil for an invalid escape or invalid UTF-8.
  static func decode(_ text: String) -> String? {
    text.replacing("+", with: " ").removingPercentEncoding
  }
}
