import ArchiveFile
import DrydockErrors
import FileSystem

/// Where the files of a repository are: a directory of this machine, a bucket of S3 below a prefix, or a directory of an SFTP
/// server; or one of these with a cache or a lock around it (``PlaceWrapper``).
///
/// A name is that of a file directly in the place, or in one folder of it, as `locks/x`. Safe to use from any thread. A
/// server is asked again when the connection breaks or it fails for a time, until a deadline; the error then says which
/// request failed and how often it was tried.
package protocol Place: Sendable {
  /// The directory's path, or a URL, never with credentials; followed by `/` and a name, a file's.
  var path: String { get }
  /// Whether each call takes a request to a server. Then a listing may be late, and a lock may be lost.
  var isRemote: Bool { get }
  /// How many files are read at a time, on other threads; 0 for one after the other on the caller's.
  var parallelReads: Int { get }

  /// Makes the directory of a server when its parent exists; a bucket must exist.
  ///
  /// - Throws: `DrydockError`: `notFound`, `permission`, `io`.
  func createIfNeeded() throws
  /// What is in a folder, or with the empty path at the top, sorted by name; a folder that does not exist has nothing.
  ///
  /// - Throws: `DrydockError`: `notFound` when the place itself does not exist, `permission`, `io`.
  func list(_ folder: ContainerPath) throws -> PlaceListing
  /// One file; nil when there is none of that name.
  func file(_ name: ContainerPath) throws -> PlaceFile?
  /// Opens a file for reading, in the version that was found. Throws `DrydockError` `notFound` when it is gone.
  ///
  /// - Parameter usesCache: whether the beginning and the end of a remote archive may come from the cache: for lists,
  ///   for whether a key is needed, and for what the next snapshot is compared with, but not for what is restored or
  ///   verified.
  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource
  /// The content of a small file.
  func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8]
  /// Writes a small file, on disk when this returns; one of that name is replaced.
  func put(_ name: ContainerPath, _ bytes: [UInt8]) throws
  /// Begins a large file, whose bytes are being written into one of a directory of ``makeScratch()``.
  func upload(
    _ file: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> any PlaceUpload
  /// Gives the name of a file to another one, in a directory of ``makeScratch()``, and so replaces it in one step.
  ///
  /// - Returns: false where this takes several steps; nothing has changed then.
  func replace(_ name: ContainerPath, with file: ContainerPath, in scratch: Directory) throws -> Bool
  /// Removes a file; one that does not exist is fine.
  func remove(_ name: ContainerPath) throws
  /// Waits until names that were given and removed are so on disk.
  func sync() throws
  /// A private directory for what is written here.
  func makeScratch() throws -> ScratchDirectory
  /// Throws `locked` when a lock that was taken may be another process's by now.
  func requireLocked() throws
}

extension Place {
  package func full(_ name: ContainerPath) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

  package func list() throws -> PlaceListing { try list(.root) }

  package func requireLocked() throws {}

  /// What the place has of a file that was written just now.
  func written<File>(_ file: File?, _ name: ContainerPath) throws -> File {
    if let file { return file }
    throw DrydockError(
      .changedMeanwhile, "was removed by another process right after it was written; run it again",
      path: full(name))
  }
}

/// The names in a folder of a place.
package struct PlaceListing: Sendable {
  package let names: [[UInt8]]
  /// The file of one of them, by its name in the place; nil when it is gone.
  package let file: @Sendable (ContainerPath) throws -> PlaceFile?
}

/// A file at a place, in the version that was found when it was listed or looked up.
package struct PlaceFile: Sendable, Hashable {
  package var name: ContainerPath
  package var size: UInt64
  /// By the clock of the place, in nanoseconds since 1970, as exact as it is known.
  package var modified: Int64
  /// How many seconds `modified` may be wrong: an SFTP server lists files by the minute, old ones by the day, and in its own
  /// time zone.
  package var timeError: Int64
  /// Of a bucket, the ETag, the same in a listing and of a single file; in a directory, the inode and its time of change. Empty
  /// where a server has none.
  package var version: String
  /// False for a directory, a link, or another thing that is not a file.
  package var isFile: Bool
  /// The owner, mode and times; nil for a remote file.
  package var status: FileStatus?

  package init(
    _ name: ContainerPath, size: UInt64, modified: Int64, timeError: Int64 = 0, version: String = "",
    isFile: Bool = true, status: FileStatus? = nil
  ) {
    (self.name, self.size, self.modified, self.timeError) = (name, size, modified, timeError)
    (self.version, self.isFile, self.status) = (version, isFile, status)
  }

  /// Whether both are the same, unchanged file, whichever calls they are from. At an SFTP server, only the sizes are compared.
  package func isSame(as other: PlaceFile) -> Bool { version == other.version && size == other.size }
}

/// A large file on its way. Nothing has its name before ``publish(size:)``.
package protocol PlaceUpload: AnyObject, Sendable {
  var name: ContainerPath { get }
  /// Whether its bytes are read while they are written, and so are best kept in memory; else ``extend(to:)`` does nothing.
  var isSent: Bool { get }

  /// Announces that the first `size` bytes of the file are final. Returns at once; errors of the transfer are thrown here
  /// or by ``publish(size:)``.
  func extend(to size: UInt64) throws
  /// Sends the rest, and gives the file its name in one step, never replacing one. Safe to repeat when a server's reply is
  /// lost: a file of this upload counts as published.
  ///
  /// - Returns: nil when there is another file of that name; what was sent is removed then.
  func publish(size: UInt64) throws -> PlaceFile?
  /// Stops, and removes what was sent, as far as the server can be reached.
  func cancel()
}

/// Something around a place, which does some things otherwise. Retries and the rate limit apply to requests; ``ServerPlace``
/// and ``RateLimit`` say why.
package protocol PlaceWrapper: Place {
  var base: any Place { get }
}

extension PlaceWrapper {
  package var path: String { base.path }
  package var isRemote: Bool { base.isRemote }
  package var parallelReads: Int { base.parallelReads }
  package func createIfNeeded() throws { try base.createIfNeeded() }
  package func list(_ folder: ContainerPath) throws -> PlaceListing { try base.list(folder) }
  package func file(_ name: ContainerPath) throws -> PlaceFile? { try base.file(name) }
  package func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    try base.open(file, usesCache: usesCache)
  }
  package func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8] {
    try base.contents(name, limit: limit)
  }
  package func put(_ name: ContainerPath, _ bytes: [UInt8]) throws { try base.put(name, bytes) }
  package func upload(
    _ file: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> any PlaceUpload { try base.upload(file, in: scratch, as: name) }
  package func replace(_ name: ContainerPath, with file: ContainerPath, in scratch: Directory) throws -> Bool
  {
    try base.replace(name, with: file, in: scratch)
  }
  package func remove(_ name: ContainerPath) throws { try base.remove(name) }
  package func sync() throws { try base.sync() }
  package func makeScratch() throws -> ScratchDirectory { try base.makeScratch() }
  package func requireLocked() throws { try base.requireLocked() }
}
