import Foundation

/// A whole directory tree with all that can be seen of it, to be compared with a later look or another tree.
///
/// Reading a database file closes a descriptor of it, which drops this process's SQLite locks on it: list a tree
/// only while this process has none of its databases open.
public struct TreeListing: Sendable {
  /// What two trees must share to count as equal copies: all but the status-change time and the inode numbers.
  public static let copied = Set(TreeEntry.Aspect.allCases).subtracting([.changed, .inode])

  /// What a tree that nobody touched shares with itself: everything.
  public static let untouched = Set(TreeEntry.Aspect.allCases)

  /// What remains when times do not matter.
  public static let timeless = copied.subtracting([.modified])

  /// Every entry by its path below the root; the root itself has the empty path.
  public private(set) var entries: [[UInt8]: TreeEntry] = [:]

  /// Looks at a tree, links not followed.
  ///
  /// - Parameter flag: an extended attribute: paths that have it are left out, with all below them.
  public init(_ root: String, leavingOut flag: String? = nil) throws {
    var firstPaths: [UInt64: [UInt8]] = [:]
    try add([], below: Array(root.utf8), flag.map { Array($0.utf8) }, &firstPaths)
  }

  /// Every path below the root, sorted, as text.
  public var paths: [String] {
    entries.keys.filter { !$0.isEmpty }.sorted(by: RawFiles.precedes).map(readable)
  }

  /// The entry of a path given as text.
  public subscript(_ path: String) -> TreeEntry? { entries[Array(path.utf8)] }

  /// The tree without these paths and all below them.
  public func without(_ paths: String...) -> TreeListing {
    without(paths)
  }

  /// The tree without these paths and all below them.
  public func without(_ paths: [String]) -> TreeListing {
    var listing = self
    let left = paths.map { Array($0.utf8) }
    listing.entries = entries.filter { path, _ in
      !left.contains { path == $0 || path.starts(with: $0 + [0x2f]) }
    }
    return listing
  }

  /// What differs, one readable line each; empty when the trees are equal in these aspects.
  ///
  /// - Parameter ignoringTimesOf: Paths whose own modification time does not count, such as the root of a tree
  ///   that something was removed from.
  public func differences(
    from other: TreeListing, comparing aspects: Set<TreeEntry.Aspect> = copied, ignoringTimesOf: [String] = []
  ) -> [String] {
    var found: [(path: [UInt8], lines: [String])] = []
    let ignored = Set(ignoringTimesOf.map { Array($0.utf8) })
    func name(_ path: [UInt8]) -> String { path.isEmpty ? "(root)" : readable(path) }
    for (path, new) in entries {
      guard let old = other.entries[path] else {
        found.append((path, ["\(name(path)): only in the new tree"]))
        continue
      }
      let compared = ignored.contains(path) ? aspects.subtracting([.modified, .changed]) : aspects
      let lines = TreeEntry.Aspect.allCases
        .filter { compared.contains($0) && !new.equals(old, in: $0) }
        .map { "\(name(path)): \($0.rawValue) was \(old.text($0)), is \(new.text($0))" }
      if !lines.isEmpty { found.append((path, lines)) }
    }
    for path in other.entries.keys where entries[path] == nil {
      found.append((path, ["\(name(path)): only in the old tree"]))
    }
    // Most trees are equal: to sort all paths takes longer than to compare what they have.
    return found.sorted { RawFiles.precedes($0.path, $1.path) }.flatMap(\.lines)
  }

  private mutating func add(
    _ path: [UInt8], below root: [UInt8], _ flag: [UInt8]?, _ firstPaths: inout [UInt64: [UInt8]]
  ) throws {
    let full = path.isEmpty ? root : root + [0x2f] + path
    let attributes = try ExtendedAttributes.all(of: full)
    if let flag, attributes[flag] != nil { return }
    let status = try RawFiles.status(full)
    let kind: TreeEntry.Kind
    switch status.st_mode & S_IFMT {
    case S_IFREG: kind = .file
    case S_IFDIR: kind = .directory
    case S_IFLNK: kind = .symbolicLink
    default: kind = .other
    }
    let inode = UInt64(status.st_ino)
    var hardLink: [UInt8]?
    if kind == .file, status.st_nlink > 1 {
      hardLink = firstPaths[inode]
      if hardLink == nil { firstPaths[inode] = path }
    }
    #if canImport(Darwin)
      let (modified, changed) = (status.st_mtimespec, status.st_ctimespec)
    #else
      let (modified, changed) = (status.st_mtim, status.st_ctim)
    #endif
    entries[path] = TreeEntry(
      kind: kind, mode: UInt16(status.st_mode & 0o7777), owner: [status.st_uid, status.st_gid],
      size: kind == .file ? Int64(status.st_size) : 0,
      content: kind == .file ? try RawFiles.read(full) : Data(),
      linkTarget: kind == .symbolicLink ? try RawFiles.linkTarget(full) : nil,
      attributes: attributes, hardLink: hardLink,
      modified: nanoseconds(modified), changed: nanoseconds(changed), inode: inode)
    if kind == .directory {
      for name in try RawFiles.names(in: full) {
        try add(path.isEmpty ? name : path + [0x2f] + name, below: root, flag, &firstPaths)
      }
    }
  }

  private func nanoseconds(_ time: timespec) -> Int64 {
    Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}
