import ArchiveFile
import DrydockErrors
import FileSystem
import Foundation
import RemoteStorage
import Synchronization

/// A bucket, or a directory of a server.
struct RemotePlace: Place {
  let store: any RemoteStore
  private let cache: ArchiveEndsCache?
  /// The repository's lock, held as long as a copy of this value exists; nil for readers.
  private let lock: RemoteLock?

  init(_ connection: RemoteConnections.Connection, _ lock: RemoteLock? = nil) {
    (store, cache, self.lock) = (connection.store, connection.cache, lock)
  }

  var path: String { store.url }
  var parallelReads: Int { store.parallelReads }

  func list() throws -> PlaceListing {
    let files = try store.list("")
    cache?.keepOnly(files)
    let byName = Dictionary(files.map { ($0.name, $0) }) { first, _ in first }
    return PlaceListing(names: files.map { Array($0.name.utf8) }) { byName["\($0)"].map(PlaceFile.remote) }
  }

  func file(_ name: ContainerPath) throws -> PlaceFile? {
    try store.file("\(name)").map(PlaceFile.remote)
  }

  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    guard case .remote(let file) = file else {
      throw DrydockError(.invalidUse, "a local file at a remote place; report this", path: path)
    }
    return RemoteArchive(store, file, usesCache ? cache : nil).source
  }

  func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8] {
    guard let file = try store.file("\(name)") else {
      throw DrydockError(.notFound, "no such file", path: full(name))
    }
    guard file.size <= UInt64(limit) else {
      throw DrydockError(
        .unsupported, "\(file.size) bytes, more than the limit of \(limit)", path: full(name))
    }
    var bytes = [UInt8](repeating: 0, count: Int(file.size))
    try bytes.withUnsafeMutableBytes { try store.read(file, at: 0, into: $0) }
    return bytes
  }

  func replace(_ name: ContainerPath, with bytes: [UInt8]) throws {
    try requireLocked()
    _ = try store.put("\(name)", bytes)
  }

  func remove(_ name: ContainerPath) throws {
    try requireLocked()
    try store.remove("\(name)")
  }

  /// The server answers when the file is stored.
  func sync() throws {}

  func makeScratch() throws -> ScratchDirectory { try .temporary() }

  func requireLocked() throws { try lock?.requireHeld() }

  func upload(
    _ name: String, from file: @escaping ArchiveSource.Read
  ) throws -> (any RemoteUpload)? {
    try store.upload(name, from: file)
  }
}

/// A remote archive, open for reading. Its beginning and its end are fetched with one request each when something in them is
/// read: opening an archive reads small pieces of both.
private final class RemoteArchive: Sendable {
  private let store: any RemoteStore
  private let file: RemoteFile
  private let cache: ArchiveEndsCache?
  private let ends = Mutex<[Range<UInt64>: [UInt8]]>([:])

  /// Of an encrypted archive, the beginning and the end are whole chunks of age; else its tables are there.
  private static let encryptedLength: UInt64 = 68 << 10, plainLength: UInt64 = 8 << 10

  init(_ store: any RemoteStore, _ file: RemoteFile, _ cache: ArchiveEndsCache?) {
    (self.store, self.file, self.cache) = (store, file, cache)
  }

  var source: ArchiveSource {
    ArchiveSource(size: file.size, isRemote: true) { try self.read(into: $0, at: $1) }
  }

  private func read(into target: UnsafeMutableRawBufferPointer, at offset: UInt64) throws {
    guard offset <= file.size, UInt64(target.count) <= file.size - offset else {
      throw DrydockError(.truncated, "the archive is shorter than expected")
    }
    let end = offset + UInt64(target.count)
    let length = file.name.hasSuffix(ArchiveName.encryptedSuffix) ? Self.encryptedLength : Self.plainLength
    // What two requests would fetch is fetched with one.
    let ranges =
      file.size <= 2 * length ? [0..<file.size] : [0..<length, (file.size - length)..<file.size]
    guard let range = ranges.first(where: { $0.lowerBound <= offset && end <= $0.upperBound }) else {
      return try store.read(file, at: offset, into: target)
    }
    let bytes = try ends.withLock { ends in
      if let bytes = ends[range] ?? cache?.bytes(file, range) {
        ends[range] = bytes
        return bytes
      }
      var bytes = [UInt8](repeating: 0, count: range.count)
      try bytes.withUnsafeMutableBytes { try store.read(file, at: range.lowerBound, into: $0) }
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

/// The connections of this process to remote places. They are shared, because a connection takes longer to open than most
/// requests, and so is the limit of their rate.
package final class RemoteConnections: Sendable {
  package static let shared = RemoteConnections()

  struct Connection {
    var url: String
    var store: any RemoteStore
    var cache: ArchiveEndsCache?
  }

  private struct State {
    var options: RemoteOptions?
    var cache: String?
    var connections: [Connection] = []
  }

  private let state = Mutex(State())
  /// More are closed, the oldest first.
  private static let most = 4

  /// Changes what is used for places that are not open yet; by default the environment has the options, and there is no cache.
  ///
  /// - Parameter cache: a directory for caches.
  package func use(_ options: RemoteOptions, cache: String?) {
    state.withLock { ($0.options, $0.cache) = (options, cache) }
  }

  /// Uses certain options for one place.
  package func use(_ options: RemoteOptions, for url: String, cache: String? = nil) throws {
    let store = try RemoteStores.open(url, options)
    try state.withLock { state in
      state.connections.removeAll { $0.url == url }
      state.connections.append(
        Connection(url: url, store: store, cache: try cache.map { try ArchiveEndsCache($0, of: url) }))
    }
  }

  /// Forgets the connection to a place, which ends when nobody uses it any more.
  func close(_ url: String) {
    state.withLock { state in state.connections.removeAll { $0.url == url } }
  }

  func connection(_ url: String) throws -> Connection {
    try state.withLock { state in
      if let open = state.connections.first(where: { $0.url == url }) { return open }
      let connection = Connection(
        url: url, store: try RemoteStores.open(url, state.options ?? .environment()),
        cache: try state.cache.map { try ArchiveEndsCache($0, of: url) })
      state.connections.append(connection)
      if state.connections.count > Self.most { state.connections.removeFirst() }
      return connection
    }
  }
}

extension Repository {
  /// Limits the transfers of this process to and from remote places, and keeps the beginnings and ends of remote archives, which
  /// make a list. For places that are not open yet.
  ///
  /// - Parameters:
  ///   - rateLimit: bytes per second, all transfers together; nil for no limit.
  ///   - cache: a directory for caches; nil for none.
  package static func configureRemotePlaces(rateLimit: UInt64?, cache: String?) {
    var options = RemoteOptions.environment()
    options.rateLimit = rateLimit
    RemoteConnections.shared.use(options, cache: cache)
  }
}
