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
  package enum Step {
    case entry(ScannedEntry)
    /// A directory that cannot be listed, a path with an unreadable attribute that a rule needs, or (`inUse`) one that was
    /// renamed during each search. Nothing below follows.
    case unreadable(ContainerPath, DrydockError)
  }

  /// Captures a group of files that is a directory. False when something changed meanwhile: the directory is listed again.
  package typealias Capture = (FileGroup, Directory, ContainerPath) throws -> Bool

  /// How often a directory that changes while it is captured is listed.
  private static let attempts = 10

  /// A directory that is being scanned.
  private final class OpenDirectory {
    let listing: DirectoryListing
    let decision: Decision
    /// Below an excluded directory: those that lead to an included path.
    let leading: Set<ContainerPath>?
    let mount: UInt64
    var nextEntry = 0

    init(_ listing: DirectoryListing, _ decision: Decision, leading: Set<ContainerPath>?, mount: UInt64) {
      (self.listing, self.decision, self.leading, self.mount) = (listing, decision, leading, mount)
    }
  }

  private typealias FoundDirectory = (
    path: ContainerPath, entry: DirectoryListing.Entry, decision: Decision, leading: Set<ContainerPath>?
  )

  private let root: Directory
  private let rules: ExclusionRules
  private let entersExcluded: Bool
  private let deepest: Int
  private let names: TreeNames?
  private let capture: Capture?
  private var isStarted = false
  private var open: [OpenDirectory] = []
  /// The directory that was returned last, which the next step enters.
  private var found: FoundDirectory?
  private var unreadable: [(path: ContainerPath, error: DrydockError)] = []

  /// - Parameters:
  ///   - entersExcluded: whether to enter excluded directories, of which otherwise only the topmost is an entry.
  ///   - deepest: the maximum depth of directories; deeper ones are unreadable. All directories above stay open.
  ///   - names: the names to scan; by default those that each directory has when the scan reaches it.
  package init(
    _ root: Directory, rules: ExclusionRules, entersExcluded: Bool = false, deepest: Int = .max,
    names: TreeNames? = nil, capture: Capture? = nil
  ) {
    (self.root, self.rules, self.entersExcluded) = (root, rules, entersExcluded)
    (self.deepest, self.names, self.capture) = (deepest, names, capture)
  }

  /// The next entry; nil at the end. Throws the error of an unreadable path.
  package mutating func nextEntry() throws -> ScannedEntry? {
    switch try next() {
    case .entry(let entry): return entry
    case .unreadable(_, let error): throw error
    case nil: return nil
    }
  }

  /// The next entry or unreadable path; nil at the end.
  package mutating func next() throws -> Step? {
    if !isStarted {
      isStarted = true
      try enter(root, .root, at: .root, .none, leading: nil, mount: root.status().mount)
    }
    while true {
      if !unreadable.isEmpty {
        let (path, error) = unreadable.removeFirst()
        return .unreadable(path, error)
      }
      if let directory = found {
        found = nil
        try enter(directory)
        continue
      }
      guard let top = open.last else { return nil }
      guard top.nextEntry < top.listing.entries.count else {
        open.removeLast()
        continue
      }
      let entry = top.listing.entries[top.nextEntry]
      top.nextEntry += 1
      let path = top.listing.path.appending(name: entry.name.bytes)
      if top.listing.directory.isGroupList(entry.name) {
        let list = try top.listing.directory.directory(entry.name)
        try enter(list, path, at: path, .none, leading: nil, mount: top.mount)
        continue
      }
      do {
        return .entry(try scanned(entry, path, in: top))
      } catch let error as DrydockError {
        return .unreadable(path, error)
      }
    }
  }

  private mutating func scanned(
    _ entry: DirectoryListing.Entry, _ path: ContainerPath, in parent: OpenDirectory
  ) throws -> ScannedEntry {
    let (listing, status) = (parent.listing, entry.status)
    let kind = listing.kind(of: entry.name, status, mount: parent.mount)
    var decision = try listing.decision(
      of: entry.name, status, type: status.type, above: parent.decision, rules)
    if kind == .directory {
      let leading = try leadingDirectories(
        path, decision, known: parent.leading, in: entry.directory, entry.localName, parent.mount)
      if leading?.contains(path) == true { decision.inclusion = Self.above(path) }
      if decision.effective == nil || entersExcluded {
        found = (path, entry, decision, leading)
      }
    }
    return ScannedEntry(
      path: path, currentPath: entry.currentPath, status: status, kind: kind, decision: decision,
      group: listing.groups[entry.name])
  }

  private mutating func enter(_ found: FoundDirectory) throws {
    let (path, status) = (found.path, found.entry.status)
    do {
      guard path.components.count <= deepest else {
        throw DrydockError(
          .unsupported, "more than \(deepest) directories deep, which is not supported; move it up",
          path: path.description)
      }
      let (directory, now) = try opened(found.entry, path)
      try enter(directory, path, at: now, found.decision, leading: found.leading, mount: status.mount)
    } catch let error as DrydockError {
      // A directory that was removed meanwhile is not an error.
      if error.code != .notFound { unreadable.append((path, error)) }
    }
  }

  private mutating func enter(
    _ directory: Directory, _ path: ContainerPath, at current: ContainerPath, _ decision: Decision,
    leading: Set<ContainerPath>?, mount: UInt64
  ) throws {
    do {
      var listing: DirectoryListing
      var group: FileGroup?
      var attempts = 0
      repeat {
        listing = try DirectoryListing(directory, path, at: current, names: names, databases: root.databases)
        group = listing.groups.values.first.flatMap { $0.isDirectory ? $0 : nil }
        attempts += 1
      } while try group.map { try capture?($0, directory, path) == false } ?? false
        && attempts <= Self.attempts
      if group == nil, names?.unstable.contains(path) ?? false { unreadable.append((path, unsettled(path))) }
      unreadable += listing.unsettled.map { ($0, unsettled($0)) }
      open.append(OpenDirectory(listing, decision, leading: leading, mount: mount))
    } catch let error as DrydockError {
      unreadable.append((path, error))
    }
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

  private static func above(_ path: ContainerPath) -> Inclusion {
    Inclusion(rule: .above, origin: path, detail: "a path below is included")
  }

  /// The directories from an excluded one down that lead to an included path: they are stored for their modes and times.
  /// Searched once for each topmost excluded directory, and only where a pattern can match; nil for one that is not
  /// excluded.
  private func leadingDirectories(
    _ path: ContainerPath, _ decision: Decision, known: Set<ContainerPath>?, in parent: Directory,
    _ name: ContainerPath, _ mount: UInt64
  ) throws -> Set<ContainerPath>? {
    guard let rule = decision.effective?.rule, rule != .state, decision.unit == nil else { return nil }
    if let known { return known }
    var found: Set<ContainerPath> = []
    _ = try isLeading(path, in: parent, name, mount, &found)
    return found
  }

  private func isLeading(
    _ path: ContainerPath, in parent: Directory, _ name: ContainerPath, _ mount: UInt64,
    _ found: inout Set<ContainerPath>
  ) throws -> Bool {
    guard rules.mayInclude(below: path) else { return false }
    let directory: Directory
    do {
      directory = try parent.directory(name)
    } catch let error as DrydockError where error.code == .notFound {
      return false
    }
    var leads = false
    for name in try directory.names().map(ContainerPath.init(unchecked:)) {
      guard let status = try directory.status(name) else { continue }
      let child = path.appending(unchecked: name.bytes)
      if rules.includes(child, type: status.type) {
        leads = true
      } else if status.type == .directory, status.mount == mount,
        try isLeading(child, in: directory, name, mount, &found)
      {
        leads = true
      }
    }
    if leads { found.insert(path) }
    return leads
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
    var known: Set<ContainerPath>?
    var parent = ContainerPath.root
    let names = path.components
    for (number, bytes) in names.enumerated() {
      let name = ContainerPath(unchecked: bytes)
      let child = parent.appending(unchecked: bytes)
      let assumed: FileType = number < names.count - 1 || isDirectory ? .directory : .file
      let above = decision
      guard let current = directory,
        let listing = try? DirectoryListing(current, parent, databases: root.databases)
      else {
        let subject = ExclusionRules.Subject(path: child, type: assumed)
        (decision, kind) = (try rules.decision(of: subject, above: above), nil)
        (directory, parent) = (nil, child)
        continue
      }
      let status = listing.status(of: name)
      kind = status.map { listing.kind(of: name, $0, mount: mount) }
      decision = try listing.decision(
        of: name, status, type: status?.type ?? assumed, above: above, rules)
      if kind == .directory {
        known = try leadingDirectories(child, decision, known: known, in: current, name, mount)
        if known?.contains(child) == true { decision.inclusion = Self.above(child) }
      }
      directory = kind == .directory ? try current.directory(name) : nil
      mount = status?.mount ?? mount
      parent = child
    }
    return (decision, kind)
  }
}
