import AppContainer
import Dispatch
import DrydockErrors
import FileSystem
import Synchronization

/// The private directory of a stage: names for new files, and what is being written to disk.
final class StageArea {
  let directory: Directory
  private let writing = DiskWork()
  private var count = 0
  /// What became of metadata that was put on a path, by what was wanted except for the time.
  private var attained: [Attempt: FileMetadata] = [:]

  private struct Attempt: Hashable {
    var type: FileType
    var metadata: FileMetadata
  }

  init(_ directory: Directory) { self.directory = directory }

  /// An unused name.
  func newName() -> ContainerPath {
    count += 1
    return ContainerPath(name: Array(String(count).utf8))
  }

  func requireSpace(_ size: UInt64, for path: ContainerPath) throws {
    guard let free = directory.freeSpace(), free < size else { return }
    throw DrydockError(
      .noSpace,
      "staging \(path) needs \(size) bytes and \(free) are free here; free some space and run it again",
      path: directory.path)
  }

  /// What a path has once this metadata has been put on it: a user who is not root cannot change owners, and a
  /// file system may lack attributes or flags, or round times. Found out by trying, once for each kind of metadata.
  func attainable(_ metadata: FileMetadata, for type: FileType) throws -> FileMetadata {
    var wanted = Attempt(type: type, metadata: metadata)
    wanted.metadata.modified = 0
    if var known = attained[wanted] {
      known.modified = metadata.modified
      return known
    }
    let name = newName()
    switch type {
    case .directory: try directory.createDirectory(name)
    case .symbolicLink: try directory.createLink(name, target: [0x2E])
    case .file, .other: try directory.createFile(name).close()
    }
    try directory.apply(metadata, to: name)
    let made = try directory.metadata(name) ?? metadata
    try directory.removeTree(name)
    if made.modified == metadata.modified { attained[wanted] = made }
    return made
  }

  func startWriting(_ name: ContainerPath?) {
    writing.start { [directory] in
      if let name { try directory.syncFile(name) } else { try directory.syncFileSystem() }
    }
  }

  /// Waits until nothing has a file of the stage open any more: closing one that is live by then would drop the locks
  /// that this process has on it.
  ///
  /// - Throws: what kept a part from being written.
  func finishWriting() throws { try writing.finish() }
}

/// Work of the disk beside a run, and the first failure of it: the kernel reports one once, so that the sync of the commit
/// would not see it.
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
