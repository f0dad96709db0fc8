import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

/// A directory of this machine, or of a network file system.
struct LocalPlace: Place {
  private let directory: Directory

  init(_ directory: Directory) { self.directory = directory }

  var path: String { directory.path }
  var isRemote: Bool { false }
  var parallelReads: Int { 0 }

  func createIfNeeded() throws {}

  func list(_ folder: ContainerPath) throws -> PlaceListing {
    guard try folder.isRoot || directory.status(folder) != nil else {
      return PlaceListing(names: []) { _ in nil }
    }
    let names = try folder.isRoot ? directory.names() : directory.directory(folder).names()
    // Each status is asked for when it is needed: a repository may have very many files, on a network file system.
    return PlaceListing(names: names) { try file($0) }
  }

  func file(_ name: ContainerPath) throws -> PlaceFile? {
    try directory.status(name).map { PlaceFile(name, $0) }
  }

  func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    // Without waiting: it may be replaced by a FIFO.
    try ArchiveSource(owning: directory.openFile(file.name))
  }

  func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8] {
    try directory.contents(name, limit: limit)
  }

  func put(_ name: ContainerPath, _ bytes: [UInt8]) throws {
    // Readable like the names of archives.
    try directory.replace(name, with: bytes, mode: 0o644)
  }

  func upload(
    _ file: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> any PlaceUpload { RenamedFile(name, file, scratch, directory) }

  func replace(_ name: ContainerPath, with file: ContainerPath, in scratch: Directory) throws -> Bool {
    try scratch.rename(file, in: directory, to: name)
    return true
  }

  func remove(_ name: ContainerPath) throws { try directory.removeFile(name, missingIsFine: true) }

  func sync() throws { try directory.sync() }

  func makeScratch() throws -> ScratchDirectory {
    try ScratchDirectory(Places.writingPrefix, in: directory)
  }
}

extension PlaceFile {
  fileprivate init(_ name: ContainerPath, _ status: FileStatus) {
    self.init(
      name, size: status.size, modified: status.modified,
      version: "\(status.device) \(status.inode) \(status.changed)", isFile: status.type == .file,
      status: status)
  }
}

/// A file that is written where it stays, and renamed.
private final class RenamedFile: PlaceUpload {
  let name: ContainerPath
  let isSent = false
  private let file: ContainerPath, scratch: Directory, directory: Directory

  init(_ name: ContainerPath, _ file: ContainerPath, _ scratch: Directory, _ directory: Directory) {
    (self.name, self.file, self.scratch, self.directory) = (name, file, scratch, directory)
  }

  func extend(to size: UInt64) {}

  func publish(size: UInt64) throws -> PlaceFile? {
    guard let status = try scratch.status(file) else {
      throw DrydockError(.notFound, "the file was removed before it had its name", path: scratch.full(file))
    }
    do {
      do {
        try scratch.renameNew(file, in: directory, to: name)
      } catch let error as DrydockError where error.cause as? Errno == .invalidArgument {
        // Network file systems lack this rename; a hard link replaces nothing either.
        try scratch.link(file, in: directory, to: name)
        try scratch.removeFile(file)
      }
      return PlaceFile(name, status)
    } catch let error as DrydockError where error.cause as? Errno == .fileExists {
      return nil
    }
  }

  func cancel() {}
}
