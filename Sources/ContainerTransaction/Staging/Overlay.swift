import AgeEncryption
import FileSystem

/// A staged inode: a file or link in the stage's directory that stands for a path.
struct StagedInode: Sendable {
  /// Its name in the stage.
  var name: ContainerPath
  /// A file or a link.
  var type: FileType
  /// Its content's digest, when whoever wrote it knew.
  var digest: SHA256.Digest?
  /// What it carries, its size, and whether it is a database, when whoever made it knows.
  var made: (metadata: FileMetadata, size: UInt64, isDatabase: Bool)?
  /// Whether an undo holds the same inode: it must not be written to.
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

  private(set) var nodes: [ContainerPath: Node] = [:]
  private var children: [ContainerPath: Set<ContainerPath>] = [:]

  subscript(path: ContainerPath) -> Node? { nodes[path] }

  mutating func set(_ node: Node?, at path: ContainerPath) {
    nodes[path] = node
    if path.isRoot { return }
    if node == nil {
      children[path.parent]?.remove(path)
    } else {
      children[path.parent, default: []].insert(path)
    }
  }

  func children(of path: ContainerPath) -> Set<ContainerPath> { children[path] ?? [] }
}
