import AppStores
import Cryptography
import Dispatch
import DrydockErrors
import FileSystem

/// What a transaction writes: a private directory with new inodes, and what each of them, or the absence of one, means for
/// the container.
final class Stage {
  /// A stage of more bytes than this takes the disk a while.
  static let largeSize: UInt64 = 64 << 20
  /// Files of a new directory that are worth a folder of their own: to move each one takes longer than to make it.
  static let largeDirectory = 32
  /// For fewer bytes the page cache finds memory in less time than the disk answers.
  static let cachedSize: UInt64 = 512 << 20

  let directory: Directory
  var overlay = Overlay()
  /// Of the last name. ext4 places folders by their names: under the same ones as the last time, new files would come where
  /// the last ones were removed, which ``Directory/spreadDirectories()`` is to prevent.
  private var count = UInt32.random(in: 0..<1 << 31)
  private var writing: [PendingResult<Void>] = []
  private let foldsNames: Bool

  init(_ directory: Directory, foldsNames: Bool) {
    (self.directory, self.foldsNames) = (directory, foldsNames)
  }

  func newName() -> ContainerPath { Self.name(newNumber()) }

  /// A number that is the name of nothing in the stage.
  func newNumber() -> UInt32 {
    count += 1
    return count
  }

  static func name(_ number: UInt32) -> ContainerPath { ContainerPath(name: Array(String(number).utf8)) }

  /// Whether a name finds what has another one, found out by trying: the stage is on the container's file system, and
  /// inherits what directories there have.
  func takes(_ name: [UInt8], for other: [UInt8]) throws -> Bool {
    if foldsNames { return true }
    let folder = newName()
    try directory.createDirectory(folder)
    defer { try? directory.removeTree(folder) }
    try directory.createFile(folder.appending(name: other)).close()
    return try directory.status(folder.appending(name: name)) != nil
  }

  func requireSpace(_ size: UInt64, for path: ContainerPath) throws {
    guard let free = directory.freeSpace(), free < size else { return }
    throw DrydockError(
      .noSpace,
      "staging \(path) needs \(size) bytes and \(free) are free here; free some space and run it again",
      path: directory.path)
  }

  /// Moves the folder with the files of a new directory into a tree, as that directory. Where a file in it is not to be there any
  /// more, or has another name than it was given, the folder stays.
  ///
  /// - Returns: whether there was such a folder, and it was moved.
  func moveFolder(of path: ContainerPath, to target: Directory, as name: ContainerPath) throws -> Bool {
    guard let folder = overlay.folders[path].map(Self.name) else { return false }
    for file in try directory.directory(folder).names() {
      let path = path.appending(name: file)
      guard case .inode(let inode) = overlay[path], overlay.isInFolder(inode, at: path) else { return false }
    }
    try directory.rename(folder, in: target, to: name)
    return true
  }

  /// Writes a database's image to a new file. Returns false when the database has changed by then.
  func write(_ pages: DatabasePages, as name: ContainerPath) throws -> Bool {
    let copy = try directory.createFile(name)
    defer { try? copy.close() }
    return try pages.copy(to: copy, path: directory.full(name))
  }

  /// A copy of a file of the stage, for a path.
  func copy(_ name: ContainerPath, for path: ContainerPath) throws -> ContainerPath {
    try requireSpace(directory.status(name)?.space ?? 0, for: path)
    let copy = newName()
    try directory.copyContents(of: name, to: copy, in: directory)
    return copy
  }

  /// Lets the disk work while what is staged is checked: the commit's sync then has less to wait for.
  ///
  /// - Parameter name: the file, or nil for all.
  func startWriting(_ name: ContainerPath?) {
    startWriting { [directory] in
      if let name { try directory.syncFile(name) } else { try directory.syncFileSystem() }
    }
  }

  func startWriting(_ body: @escaping @Sendable () throws -> Void) {
    let result = PendingResult<Void>()
    writing.append(result)
    DispatchQueue.global().async {
      result.finish(
        Result {
          do { try body() } catch let error as DrydockError where error.code == .notFound {
            // The transaction has removed the file again.
          }
        })
    }
  }

  /// Waits until no file of the stage is open: closing one that is live by then would drop the locks that this process
  /// has on it.
  ///
  /// - Throws: what kept a part from being written: the kernel reports it once, so that the commit's sync would miss
  ///   it.
  func finishWriting() throws {
    let results = writing.map { pending in Result { try pending.take() } }
    for result in results { try result.get() }
  }
}

/// A staged inode: a file or link in the stage's directory that represents a path.
struct StagedInode: Sendable {
  var name: ContainerPath
  var type: FileType
  /// Its content's digest, when it is known.
  var digest: SHA256.Digest?
  /// Its metadata and size, and whether it is a database, when these are known.
  var made: (metadata: FileMetadata, size: UInt64, isDatabase: Bool)?
  /// Of a main file: the file of the stage that has it merged with its staged log.
  var merged: ContainerPath?
  /// Whether an undo entry holds the same inode: it must not be written to.
  var isShared = false
}

/// What differs from the live container, path by path. It is flat: removing a directory removes each path below
/// by itself, so that what a path is never depends on what is above it.
struct Overlay: Sendable {
  enum Node: Sendable {
    case removed
    case inode(StagedInode)
    /// A directory that is new, or whose metadata changes; what is below a live one falls through.
    case directory(FileMetadata)
  }

  /// A node as it is stored: there may be a million.
  private enum Stored {
    case removed
    /// A file that was put with many others: its place in ``made``, and where it is in the stage.
    case bulk(made: UInt32, Folder, isDatabase: Bool)
    /// Its place in ``others``.
    case other(UInt32)
  }

  /// A folder of the stage with files that were put together.
  enum Folder {
    /// The files' names are the places in ``Overlay/made``.
    case group(UInt32)
    /// The files are those of a new directory, under their own names.
    case directory(UInt32)

    /// The name in the stage of a file that is to be at a path.
    func name(_ made: UInt32, _ path: @autoclosure () -> ContainerPath) -> ContainerPath {
      switch self {
      case .group(let folder): Stage.name(folder).appending(name: Stage.name(made).bytes)
      case .directory(let folder): Stage.name(folder).appending(name: path().name)
      }
    }
  }

  private var nodes = PathTable<Stored>()
  private var others: [Node] = []
  /// What the files are that were put with many others.
  var made = NodeTable()
  /// The folders of new directories.
  var folders: [ContainerPath: UInt32] = [:]
  /// The former paths of what was moved, for the difference.
  var origins: [ContainerPath: ContainerPath] = [:]
  /// The `chattr` flags of directories that a rollback brings back.
  var directoryFlags: [ContainerPath: InodeFlags] = [:]

  /// All paths that have a node, sorted.
  var paths: some Sequence<ContainerPath> { nodes.paths }

  subscript(path: ContainerPath) -> Node? {
    switch nodes[path] {
    case nil: return nil
    case .removed?: return .removed
    case .other(let place)?: return others[Int(place)]
    case .bulk(let place, let folder, let isDatabase)?:
      let record = made[place]
      return .inode(
        StagedInode(
          name: folder.name(place, path), type: record.type, digest: record.digest,
          made: (record.metadata, record.size, isDatabase)))
    }
  }

  /// The record in ``made`` of a file that was put with many others, unless it was changed since.
  func recordNumber(of path: ContainerPath) -> UInt32? {
    guard case .bulk(let place, _, _)? = nodes[path] else { return nil }
    return place
  }

  mutating func set(_ node: Node?, at path: ContainerPath) {
    switch node {
    case nil: nodes[path] = nil
    case .removed?: nodes[path] = .removed
    case let node?:
      if case .other(let place)? = nodes[path] {
        others[Int(place)] = node
      } else {
        others.append(node)
        nodes[path] = .other(UInt32(others.count - 1))
      }
    }
  }

  /// Sets a file that was put with many others.
  ///
  /// - Parameters:
  ///   - place: its record in ``made``.
  ///   - folder: where it is in the stage.
  mutating func set(_ place: UInt32, in folder: Folder, isDatabase: Bool, at path: ContainerPath) {
    nodes[path] = .bulk(made: place, folder, isDatabase: isDatabase)
  }

  /// Whether a path's inode is in the folder of its directory, under its own name.
  func isInFolder(_ inode: StagedInode, at path: ContainerPath) -> Bool {
    folders[path.parent].map { inode.name == Folder.directory($0).name(0, path) } ?? false
  }

  func children(of path: ContainerPath) -> [ContainerPath] { nodes.children(of: path) }

  func hasChildren(_ path: ContainerPath) -> Bool { nodes.hasChildren(path) }
}
