import AppStores
import DrydockErrors
import FileSystem

/// A path of a container, its kind, and whether a backup includes it.
package struct ScannedEntry: Sendable {
  package enum Kind: Sendable, Hashable {
    case file, directory, symbolicLink
    /// The main file of a database.
    case database(DatabaseUnit)
    /// A `-wal`, `-shm` or `-journal` of a database, which is not stored by itself.
    case sidecar(of: ContainerPath)
    case mount
    /// A socket, FIFO or device.
    case special
  }

  package let path: ContainerPath
  /// Where it is now, if it was renamed during the scan.
  package var currentPath: ContainerPath
  package var status: FileStatus
  package let kind: Kind
  package let decision: Decision
  /// The files that its app changes together with it.
  package var group: FileGroup?

  /// Why a backup excludes it; nil when it is included.
  package var exclusion: Exclusion? { decision.effective }
}

/// Iterates over a container: recognizes databases and applies exclusion rules.
///
/// Parents come first, names in the order of their bytes, including the groups' roots but not the list of groups.
package struct ContainerScan {
  /// Handles a directory that cannot be listed, a path with an unreadable attribute that a rule needs, or (`inUse`) one that was
  /// renamed during each search. Nothing below follows.
  package typealias Unreadable = (ContainerPath, DrydockError) throws -> Void

  /// Captures a group of files that is a directory. False when something changed meanwhile: the directory is listed again.
  package typealias Capture = (FileGroup, Directory, ContainerPath) throws -> Bool

  /// The extended attributes of a path with a status, where they are known without a system call. The paths come in their order.
  package typealias KnownAttributes = (ContainerPath, FileStatus) throws -> [ExtendedAttribute]?

  /// The status of a file, without its mount and blocks, if it is known and the listing says that the same inode is there.
  package typealias KnownStatus = (ContainerPath, NameList.Item) -> FileStatus?

  /// How often a directory that changes while it is captured is listed.
  private static let attempts = 10

  private typealias FoundDirectory = (
    path: ContainerPath, entry: DirectoryListing.Entry, decision: Decision, leading: Set<ContainerPath>?
  )

  private let root: Directory
  private let rules: ExclusionRules
  private let entersExcluded: Bool
  private let deepest: Int
  private let names: TreeNames?
  private let attributes: KnownAttributes?
  private let status: KnownStatus?
  private let capture: Capture?
  private var isStarted = false
  /// The directories that are being scanned, from the root inwards.
  private var open: [DirectoryListing] = []
  /// The directory that was returned last, which the next step enters.
  private var found: FoundDirectory?

  /// - Parameters:
  ///   - entersExcluded: whether to enter excluded directories, of which otherwise only the topmost is an entry.
  ///   - deepest: the maximum depth of directories; deeper ones are unreadable. All directories above stay open.
  ///   - names: the names to scan; by default those that each directory has when the scan reaches it.
  ///   - attributes: spares the scan reading attributes.
  ///   - status: spares the scan reading statuses.
  package init(
    _ root: Directory, rules: ExclusionRules, entersExcluded: Bool = false, deepest: Int = .max,
    names: TreeNames? = nil, status: KnownStatus? = nil, attributes: KnownAttributes? = nil,
    capture: Capture? = nil
  ) {
    (self.root, self.rules, self.entersExcluded) = (root, rules, entersExcluded)
    (self.deepest, self.names, self.capture) = (deepest, names, capture)
    (self.attributes, self.status) = (attributes, status)
  }

  /// The next entry; nil at the end.
  ///
  /// - Parameter unreadable: by default the error is thrown.
  package mutating func nextEntry(unreadable: Unreadable = { throw $1 }) throws -> ScannedEntry? {
    if !isStarted {
      isStarted = true
      try enter(root, .root, at: .root, .none, leading: nil, mount: root.status().mount, unreadable)
    }
    while true {
      if let directory = found {
        found = nil
        try enter(directory, unreadable)
        continue
      }
      guard let top = open.last else { return nil }
      guard top.nextEntry < top.entries.count else {
        open.removeLast()
        continue
      }
      var entry = top.entries[top.nextEntry]
      top.nextEntry += 1
      let path = entry.path
      if top.directory.isGroupList(entry.name) {
        let list = try top.directory.directory(entry.name)
        try enter(list, path, at: path, .none, leading: nil, mount: top.mount, unreadable)
        continue
      }
      // A database's sidecars have the decision of the main file, which came before.
      if case .sidecar = top.kind(of: entry) {
      } else {
        entry.attributes = try attributes?(path, entry.status)
      }
      do {
        return try scanned(entry, path, in: top)
      } catch let error as DrydockError {
        try unreadable(path, error)
      }
    }
  }

  private mutating func scanned(
    _ entry: DirectoryListing.Entry, _ path: ContainerPath, in parent: DirectoryListing
  ) throws -> ScannedEntry {
    let kind = parent.kind(of: entry)
    var decision = try parent.decision(of: entry.name, entry, type: entry.status.type, rules)
    if kind == .directory {
      let leading = try leadingDirectories(path, &decision, entry, in: parent)
      if decision.effective == nil || entersExcluded {
        found = (path, entry, decision, leading)
      }
    }
    return ScannedEntry(
      path: path, currentPath: entry.currentPath, status: entry.status, kind: kind, decision: decision,
      group: parent.groups[entry.name])
  }

  private mutating func enter(_ found: FoundDirectory, _ unreadable: Unreadable) throws {
    let path = found.path
    let opened: (directory: Directory, now: ContainerPath)
    do {
      guard path.components.count <= deepest else {
        throw DrydockError(
          .unsupported, "more than \(deepest) directories deep, which is not supported; move it up",
          path: path.description)
      }
      opened = try self.opened(found.entry, path)
    } catch let error as DrydockError {
      // A directory that was removed meanwhile is not an error.
      if error.code != .notFound { try unreadable(path, error) }
      return
    }
    try enter(
      opened.directory, path, at: opened.now, found.decision, leading: found.leading,
      mount: found.entry.status.mount, unreadable)
  }

  private mutating func enter(
    _ directory: Directory, _ path: ContainerPath, at current: ContainerPath, _ decision: Decision,
    leading: Set<ContainerPath>?, mount: UInt64, _ unreadable: Unreadable
  ) throws {
    var listing: DirectoryListing
    var group: FileGroup?
    do {
      var attempts = 0
      repeat {
        listing = try DirectoryListing(
          directory, path, at: current, decision, leading: leading, mount: mount, names: names,
          databases: root.databases, status: status)
        group = listing.groups.values.first.flatMap { $0.isDirectory ? $0 : nil }
        attempts += 1
      } while try group.map { try capture?($0, directory, path) == false } ?? false
        && attempts <= Self.attempts
    } catch let error as DrydockError {
      return try unreadable(path, error)
    }
    if group == nil, names?.unstable.contains(path) ?? false { try unreadable(path, unsettled(path)) }
    for path in listing.unsettled { try unreadable(path, unsettled(path)) }
    open.append(listing)
  }

  private func unsettled(_ path: ContainerPath) -> DrydockError {
    DrydockError(
      .inUse, "renamed during each search for it; close the app and run the command again",
      path: root.full(path))
  }

  /// Opens a directory where it is now.
  private func opened(
    _ entry: DirectoryListing.Entry, _ path: ContainerPath
  ) throws -> (Directory, ContainerPath) {
    guard let names else { return (try entry.directory.directory(entry.localName), entry.currentPath) }
    var (current, identity): (ContainerPath, FileIdentity?) = (entry.currentPath, entry.status.identity)
    var opened = try? entry.directory.directory(entry.localName)
    for _ in 0..<10 {
      if let opened, try identity == nil || opened.status().identity == identity { return (opened, current) }
      switch try names.find(path, inode: entry.status.inode) {
      case .at(let now, let status):
        // Its name is taken by something else, or it cannot be opened.
        if status.type != .directory || (opened == nil && now == current) {
          return (try root.directory(now), now)
        }
        (current, identity) = (now, status.identity)
      case .unmoved:
        if opened == nil { return (try root.directory(current), current) }
        identity = nil
      case .gone: throw DrydockError(.notFound, "removed during the scan", path: root.full(path))
      case .unsettled: throw unsettled(path)
      }
      opened = try? root.directory(current)
    }
    throw unsettled(path)
  }

  // MARK: Includes below what is excluded

  /// The directories from an excluded one down that lead to an included path: they are stored for their modes and times, which
  /// the decision then says of this one. Searched once for each topmost excluded directory, and only where a pattern can
  /// match; nil for one that is not excluded.
  private func leadingDirectories(
    _ path: ContainerPath, _ decision: inout Decision, _ entry: DirectoryListing.Entry,
    in parent: DirectoryListing
  ) throws -> Set<ContainerPath>? {
    guard let rule = decision.effective?.rule, rule != .state, decision.unit == nil else { return nil }
    let leading = try parent.leading ?? leadingDirectories(from: path, entry)
    if leading.contains(path) {
      decision.inclusion = Inclusion(rule: .above, origin: path, detail: "a path below is included")
    }
    return leading
  }

  private func leadingDirectories(
    from path: ContainerPath, _ entry: DirectoryListing.Entry
  ) throws -> Set<ContainerPath> {
    var found: Set<ContainerPath> = []
    guard rules.include.mayMatch(below: path) else { return found }
    let directory: Directory
    do {
      directory = try entry.directory.directory(entry.localName)
    } catch let error as DrydockError where error.code == .notFound {
      return found
    }
    try directory.walk { below in
      let child = path.appending(unchecked: below.path.bytes)
      let isDirectory = below.status.type == .directory
      if rules.include.contains(child, isDirectory: isDirectory) {
        found.formUnion(child.ancestors.prefix { $0 != path })
        found.insert(path)
        return .over
      }
      return isDirectory && rules.include.mayMatch(below: child) ? .into : .over
    }
    return found
  }

  // MARK: One path

  /// Decides for one path, which need not exist, reading only the directories above it.
  ///
  /// - Parameter isDirectory: whether to treat a missing path as a directory.
  /// - Returns: the decision, and what the path is; nil when it does not exist.
  package func explain(
    _ path: ContainerPath, isDirectory: Bool
  ) throws -> (decision: Decision, kind: ScannedEntry.Kind?) {
    var mount = try root.status().mount
    var directory: Directory? = root
    var (decision, kind): (Decision, ScannedEntry.Kind?) = (.none, .directory)
    var leading: Set<ContainerPath>?
    var parent = ContainerPath.root
    let names = path.components
    for (number, bytes) in names.enumerated() {
      let name = ContainerPath(unchecked: bytes)
      let child = parent.appending(unchecked: bytes)
      let assumed: FileType = number < names.count - 1 || isDirectory ? .directory : .file
      guard let current = directory,
        let listing = try? DirectoryListing(
          current, parent, decision, leading: leading, mount: mount, databases: root.databases)
      else {
        (decision, kind) = (try rules.decision(of: child, assumed, above: decision), nil)
        (directory, parent) = (nil, child)
        continue
      }
      let entry = listing[name]
      kind = entry.map(listing.kind)
      decision = try listing.decision(of: name, entry, type: entry?.status.type ?? assumed, rules)
      if kind == .directory, let entry {
        leading = try leadingDirectories(child, &decision, entry, in: listing)
      }
      directory = kind == .directory ? try current.directory(name) : nil
      mount = entry?.status.mount ?? mount
      parent = child
    }
    return (decision, kind)
  }
}
