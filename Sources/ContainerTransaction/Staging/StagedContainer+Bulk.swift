import AgeEncryption
import AppContainer
import Dispatch
import DrydockErrors
import FileSystem
import Synchronization

/// A file that is to be put with others, its content still to come.
package struct NewFile: Sendable {
  /// Where it will be.
  package var path: ContainerPath
  /// Mode, owner, time and attributes.
  package var metadata: FileMetadata
  /// SHA-256 of the content, as whoever fills the file makes sure.
  package var digest: SHA256.Digest?
  /// Bytes of content.
  package var size: UInt64
  /// Whether it is a database, or a part of one.
  package var isDatabase: Bool

  /// A file from its parts.
  package init(
    path: ContainerPath, metadata: FileMetadata, digest: SHA256.Digest?, size: UInt64, isDatabase: Bool
  ) {
    (self.path, self.metadata, self.digest, self.size) = (path, metadata, digest, size)
    self.isDatabase = isDatabase
  }
}

extension StagedContainer {
  /// Lets the disk work while what is staged is checked: what is written already when the commit syncs need not be waited
  /// for. In a dry run nothing is to be kept.
  ///
  /// - Parameter name: the file, or nil for all.
  func startWriting(_ name: ContainerPath?) {
    if transaction.isEmpty { return }
    writing.start { [stage] in
      if let name { try stage.syncFile(name) } else { try stage.syncFileSystem() }
    }
  }

  /// Waits until nothing has a file of the stage open any more: closing one that is live by then would drop the locks
  /// that this process has on it.
  ///
  /// - Throws: what kept a part from being written.
  func finishWriting() throws { try writing.finish() }

  /// A stage of more bytes than this takes the disk a while.
  static let largeStage: UInt64 = 64 << 20

  /// Fills one file of the stage.
  package typealias Filler = (NewFile, StageFile) throws -> Void

  /// Puts many files, filled on all cores: making a file, writing and hashing it take one core longer than a disk
  /// takes. Each group is filled in its order by one thread.
  ///
  /// - Parameter filler: makes what fills a group's files, on the group's own thread.
  /// - Throws: the first failure of a filler, `DrydockError`, ``DrydockError``.
  package func putFiles(_ groups: [[NewFile]], filler: @escaping @Sendable () throws -> Filler) throws {
    let size = groups.joined().reduce(0) { $0 &+ $1.size }
    if let first = groups.first?.first {
      try requireSpace(size, for: first.path)
    }
    for file in groups.joined() { try createDirectory(file.path.parent) }
    stage.spreadDirectories()
    let folders = groups.map { _ in newName() }
    let made = Mutex<[Int: [FileMetadata?]]>([:])
    let failure = Mutex<(any Error)?>(nil)
    let stage = stage
    DispatchQueue.concurrentPerform(iterations: groups.count) { number in
      guard failure.withLock({ $0 == nil }) else { return }
      do {
        let metadata = try Self.make(groups[number], in: folders[number], of: stage, filler()) {
          failure.withLock { $0 != nil }
        }
        made.withLock { $0[number] = metadata }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    if size > Self.largeStage { startWriting(nil) }
    let metadata = made.withLock { $0 }
    for (number, group) in groups.enumerated() {
      for (index, file) in group.enumerated() {
        var inode = StagedInode(
          name: folders[number].appending(name: Self.name(index)), type: .file, digest: file.digest)
        inode.made = metadata[number]?[index].map { ($0, file.size, file.isDatabase) }
        try replace(file.path, with: .inode(inode))
      }
    }
  }

  /// Makes a group's files in a folder of their own: two threads do not wait for each other's names.
  ///
  /// - Returns: what each file carries then, which a user who is not root may not have been able to set.
  private static func make(
    _ files: [NewFile], in folder: ContainerPath, of stage: Directory, _ fill: Filler, isCancelled: () -> Bool
  ) throws -> [FileMetadata?] {
    try stage.createDirectory(folder)
    let directory = try stage.directory(folder)
    return try files.enumerated().map { index, file in
      if isCancelled() { return nil }
      let name = ContainerPath(name: name(index))
      try StageFile.make(name, in: directory, file.metadata) { try fill(file, $0) }
      return try directory.metadata(name)
    }
  }

  private static func name(_ number: Int) -> [UInt8] { Array(String(number).utf8) }
}

/// Work of the disk beside a run, and the first failure of it: the kernel reports one once, so that the sync of the commit
/// would not hear of it any more.
final class DiskWork: Sendable {
  private let group = DispatchGroup()
  private let failure = Mutex<(any Error)?>(nil)

  func start(_ body: @escaping @Sendable () throws -> Void) {
    DispatchQueue.global().async(group: group) { [self] in
      do {
        try body()
      } catch let error as DrydockError where error.code == .notFound {
        // The run has thrown it away by now.
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
  }

  func finish() throws {
    group.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
