import ArchiveFile
import DrydockErrors
import FileSystem
import SystemPackage

/// A directory of this machine, or of a network file system.
package struct LocalPlace: Place {
  package let directory: Directory

  package init(_ directory: Directory) { self.directory = directory }

  package var path: String { directory.path }
  package var isRemote: Bool { false }
  package var parallelReads: Int { 0 }

  package func createIfNeeded() throws {}

  package func list(_ folder: ContainerPath) throws -> PlaceListing {
    guard try folder.isRoot || directory.status(folder) != nil else {
      return PlaceListing(names: []) { _ in nil }
    }
    let names = try folder.isRoot ? directory.names() : directory.directory(folder).names()
    // Each status is asked for when it is needed: a repository may have very many files, on a network file system.
    return PlaceListing(names: names) { try file($0) }
  }

  package func file(_ name: ContainerPath) throws -> PlaceFile? {
    try directory.status(name).map { PlaceFile(name, $0) }
  }

  package func open(_ file: PlaceFile, usesCache: Bool) throws -> ArchiveSource {
    // Without waiting: it may be replaced by a FIFO.
    try ArchiveSource(owning: directory.openFile(file.name))
  }

  package func contents(_ name: ContainerPath, limit: Int) throws -> [UInt8] {
    try directory.contents(name, limit: limit)
  }

  package func put(_ name: ContainerPath, _ bytes: [UInt8]) throws -> PlaceFile {
    // Readable like the names of archives.
    try directory.replace(name, with: bytes, mode: 0o644)
    guard let file = try file(name) else { throw DrydockError.removedMeanwhile(full(name)) }
    return file
  }

  package func upload(
    _ file: ContainerPath, in scratch: Directory, as name: ContainerPath
  ) throws -> any PlaceUpload { RenamedFile(name, file, scratch, directory) }

  package func remove(_ name: ContainerPath) throws { try directory.removeFile(name, missingIsFine: true) }

  package func sync() throws { try directory.sync() }

  package func makeScratch() throws -> ScratchDirectory {
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
