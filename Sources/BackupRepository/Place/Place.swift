import ArchiveFile
import DrydockErrors
import FileSystem
import RemoteStorage

/// Where the files of a repository are: a directory of this machine, or a remote place. A name is that of a file directly in
/// it.
protocol Place: Sendable {
  /// The directory's path, or the URL; followed by `/` and a name, a file's.
  var path: String { get }
  /// How many files are read at a time, on other threads; 0 for one after the other on the caller's.
  var parallelReads: Int { get }

  func list() throws -> PlaceListing
  /// One file; nil when there is none of that name.
  func file(_ name: ContainerPath) throws -> PlaceFile?
  /// Opens a file for reading. Throws `DrydockError` `notFound` when it is gone.
  ///
  /// - Parameter usesCache: whether the beginning and the end of a remote archive may come from the cache: for lists, and for
  ///   what the next snapshot is compared with, but not for what is restored or verified.
  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource
  /// The content of a small file.
  func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8]
  /// Writes a small file, on disk when this returns; one of that name is replaced in one step.
  func replace(_ name: ContainerPath, with bytes: [UInt8]) throws
  /// Removes a file; one that does not exist is fine.
  func remove(_ name: ContainerPath) throws
  /// Waits until what was removed is so on disk.
  func sync() throws
  /// A private directory for what is written here.
  func makeScratch() throws -> ScratchDirectory
  /// Throws `locked` when a lock that was taken may be another process's by now.
  func requireLocked() throws
  /// Begins to send a file that is being written; nil where it is not sent, but renamed.
  func upload(_ name: String, from file: @escaping ArchiveSource.Read) throws -> (any RemoteUpload)?
}

extension Place {
  func full(_ name: ContainerPath) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }
}

/// The names at a place.
struct PlaceListing: Sendable {
  let names: [[UInt8]]
  /// The file of a name; nil when it is gone.
  let file: @Sendable (ContainerPath) throws -> PlaceFile?

  /// Whether there are encrypted archives of an app and instance; their names show it.
  func hasEncrypted(_ app: String, _ instance: String) -> Bool {
    let owner = ArchiveLabel.nameKey(app, instance)
    return names.contains { bytes in
      let name = String(decoding: bytes, as: UTF8.self)
      return name.hasSuffix(ArchiveName.encryptedSuffix) && ArchiveName.label(of: name)?.nameKey == owner
    }
  }
}

/// A file at a place, as it was when it was listed or looked up.
enum PlaceFile: Sendable {
  case local(ContainerPath, FileStatus)
  case remote(RemoteFile)

  var name: ContainerPath {
    switch self {
    case .local(let name, _): name
    case .remote(let file): ContainerPath(name: Array(file.name.utf8))
    }
  }

  var size: UInt64 {
    switch self {
    case .local(_, let status): status.size
    case .remote(let file): file.size
    }
  }

  /// In nanoseconds since 1970.
  var modified: Int64 {
    switch self {
    case .local(_, let status): status.modified
    case .remote(let file): file.modified
    }
  }

  /// How many seconds `modified` may be wrong: an SFTP server lists files by the minute, old ones by the day, and in its own
  /// time zone.
  var timeError: Int64 {
    switch self {
    case .local: 0
    case .remote(let file): file.hasExactTime ? 0 : (24 + 14) * 3600
    }
  }

  /// False for a directory, a link, or another thing that is not a file.
  var isFile: Bool {
    switch self {
    case .local(_, let status): status.type == .file
    case .remote(let file): file.isFile
    }
  }

  /// The owner, mode and times; nil for a remote file.
  var status: FileStatus? {
    switch self {
    case .local(_, let status): status
    case .remote: nil
    }
  }

  /// Whether both are the same, unchanged file, whichever calls they are from. At an SFTP server, only the sizes are compared.
  func isSame(as other: PlaceFile) -> Bool {
    switch (self, other) {
    case (.local(_, let one), .local(_, let two)):
      one.identity == two.identity && one.size == two.size && one.modified == two.modified
    case (.remote(let one), .remote(let two)): one.version == two.version && one.size == two.size
    default: false
    }
  }
}

/// Opens places by their paths.
enum Places {
  /// - Throws: `DrydockError`: `notFound`, `permission`, `usage` for an invalid URL.
  static func open(_ path: String) throws -> any Place {
    if RemoteStores.isRemote(path) { return RemotePlace(try RemoteConnections.shared.connection(path)) }
    try RemoteStores.refuseOtherURL(path)
    return LocalPlace(try Directory(path))
  }

  /// The place of a file, and its name there. A link is followed to the directory of what it leads to.
  static func ofFile(_ path: String) throws -> (place: any Place, name: ContainerPath) {
    let real = RemoteStores.isRemote(path) ? path : realPath(path) ?? path
    let slash = real.lastIndex(of: "/")
    let folder = slash.map { $0 == real.startIndex ? "/" : String(real[..<$0]) } ?? "."
    return (try open(folder), try ContainerPath(lastName(real)))
  }
}

extension Places {
  /// The bytes of an archive.
  ///
  /// - Parameters:
  ///   - file: the file, when a listing of its remote place has it.
  ///   - usesCache: see ``Place/open(_:usesCache:)``.
  /// - Throws: `DrydockError`: `notFound`, `permission`, `io`.
  static func source(
    _ path: String, _ file: PlaceFile? = nil, usesCache: Bool = false
  ) throws -> ArchiveSource {
    func missing(_ cause: DrydockError? = nil) -> DrydockError {
      DrydockError(.notFound, "no such archive; check the path", path: path, cause: cause)
    }
    guard RemoteStores.isRemote(path) else {
      do { return try ArchiveSource(path: path) } catch let error as DrydockError
        where error.code == .io && FollowedStatus.identity(path) == nil
      { throw missing(error) }
    }
    let (place, name) = try ofFile(path)
    guard let file = try file ?? place.file(name) else { throw missing() }
    return try place.open(file, usesCache: usesCache)
  }
}

/// A directory of this machine, or of a network file system.
struct LocalPlace: Place {
  let directory: Directory

  init(_ directory: Directory) { self.directory = directory }

  var path: String { directory.path }
  var parallelReads: Int { 0 }

  func list() throws -> PlaceListing {
    PlaceListing(names: try directory.names()) { try file($0) }
  }

  func file(_ name: ContainerPath) throws -> PlaceFile? {
    try directory.status(name).map { .local(name, $0) }
  }

  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    // Without waiting: it may be replaced by a FIFO.
    try ArchiveSource(owning: directory.openFile(file.name))
  }

  func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8] {
    try directory.contents(name, limit: limit)
  }

  func replace(_ name: ContainerPath, with bytes: [UInt8]) throws {
    // Readable like the names of archives.
    try directory.replace(name, with: bytes, mode: 0o644)
  }

  func remove(_ name: ContainerPath) throws { try directory.removeFile(name, missingIsFine: true) }

  func sync() throws { try directory.sync() }

  func makeScratch() throws -> ScratchDirectory {
    try ScratchDirectory(ArchiveDestination.scratchPrefix, in: directory)
  }

  /// The kernel keeps the lock.
  func requireLocked() throws {}

  func upload(_ name: String, from file: @escaping ArchiveSource.Read) throws -> (any RemoteUpload)? { nil }
}
