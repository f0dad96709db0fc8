import DrydockErrors
import FileSystem

/// One path of a container, with what it is and whether a backup takes it.
package struct ScannedEntry: Sendable {
  /// What a path is to a backup.
  package enum Kind: Sendable, Hashable {
    case file, directory, symbolicLink
    /// The main file of a database.
    case database(DatabaseUnit)
    /// A `-wal`, `-shm` or `-journal`: part of the database named, never stored by itself.
    case sidecar(of: ContainerPath)
    /// A directory that another file system is mounted on.
    case mount
    /// A socket, FIFO or device.
    case special
  }

  /// Its path in the container.
  package let path: ContainerPath
  /// Where it is: elsewhere than at its path when it was renamed while the walk ran.
  package var place: ContainerPath
  /// Its status, of a link itself.
  package var status: FileStatus
  /// What it is.
  package let kind: Kind
  /// What was decided for it.
  package let decision: Decision

  /// Why a backup does not take it; nil when it does.
  package var exclusion: Exclusion? { decision.effective }
}

/// A walk over a container that knows databases and exclusion rules.
package struct ContainerScan {
  /// The container's root.
  package let root: Directory
  /// The rules that decide.
  package let rules: ExclusionRules
  /// Whether to go into excluded directories; without, only their top is visited.
  package var entersExcluded = false
  /// The deepest directories that are entered, as names in their path: one below is unreadable. A walk holds every directory
  /// above open.
  package var deepest = Int.max
  /// The names that count; by default those that each directory has when the walk comes to it.
  package var names: TreeNames?

  /// A scan of a container.
  package init(_ root: Directory, rules: ExclusionRules, entersExcluded: Bool = false) {
    self.root = root
    self.rules = rules
    self.entersExcluded = entersExcluded
  }

  /// What the walk knows when it enters a directory.
  private struct Place {
    var directory: Directory
    var path: ContainerPath
    /// Where it is, which is elsewhere when it was renamed.
    var place: ContainerPath
    var decision: Decision
    /// Below an excluded directory: the directories in it that lead to an included path.
    var leading: Set<ContainerPath>?
  }

  /// Visits every path, parents first and names in the order of their bytes; the list of groups is none, the root of each
  /// group is.
  ///
  /// - Parameter unreadable: takes a directory that cannot be listed, a path whose rules cannot be decided because an
  ///   attribute cannot be read, and with the code `inUse` one that was renamed each time it was looked for; nothing
  ///   below is visited. By default it is thrown.
  package func visit(
    unreadable: (ContainerPath, DrydockError) throws -> Void = { throw $1 },
    _ body: (ScannedEntry) throws -> Void
  ) throws {
    let top = Place(directory: root, path: .root, place: .root, decision: .none, leading: nil)
    try visit(top, root.status().mount, unreadable, body)
  }

  private func visit(
    _ place: Place, _ mount: UInt64,
    _ unreadable: (ContainerPath, DrydockError) throws -> Void, _ body: (ScannedEntry) throws -> Void
  ) throws {
    let listing: DirectoryListing
    do {
      listing = try DirectoryListing(
        place.directory, place.path, at: place.place, names: names, databases: root.databases)
    } catch let error as DrydockError {
      return try unreadable(place.path, error)
    }
    if names?.unstable.contains(place.path) ?? false { try unreadable(place.path, unsettled(place.path)) }
    for path in listing.unsettled { try unreadable(path, unsettled(path)) }
    for entry in listing.entries {
      let (name, status) = (entry.name, entry.status)
      let child = place.path.appending(unchecked: name.bytes)
      if place.directory.isGroupList(name) {
        let list = Place(
          directory: try place.directory.directory(name), path: child, place: child, decision: .none,
          leading: nil)
        try visit(list, mount, unreadable, body)
        continue
      }
      let kind = listing.kind(of: name, status, mount: mount)
      var decision: Decision
      var leading: Set<ContainerPath>?
      do {
        decision = try listing.decision(
          of: name, status, type: status.type, above: place.decision, rules)
        if kind == .directory {
          leading = try leadingDirectories(
            child, decision, known: place.leading, in: entry.directory, entry.localName, mount)
          if leading?.contains(child) == true { decision.inclusion = Self.above(child) }
        }
      } catch let error as DrydockError {
        try unreadable(child, error)
        continue
      }
      try body(
        ScannedEntry(path: child, place: entry.place, status: status, kind: kind, decision: decision))
      guard kind == .directory, decision.effective == nil || entersExcluded else { continue }
      guard child.components.count <= deepest else {
        try unreadable(child, DrydockError.tooDeep(child, deepest))
        continue
      }
      do {
        guard let (opened, now) = try open(entry, child) else { continue }
        try visit(
          Place(directory: opened, path: child, place: now, decision: decision, leading: leading),
          status.mount, unreadable, body)
      } catch let error as Unopened {
        try unreadable(child, error.reason)
      }
    }
  }

  /// A directory that could not be opened; what the visits throw is another matter.
  private struct Unopened: Error { var reason: DrydockError }

  private func unsettled(_ path: ContainerPath) -> DrydockError {
    DrydockError(
      .inUse, "renamed each time it was looked for; close the app that does it, and run it again",
      path: root.full(path))
  }

  /// Opens a directory, wherever it is now; nil when it is gone.
  private func open(
    _ entry: DirectoryListing.Entry, _ path: ContainerPath
  ) throws -> (Directory, ContainerPath)? {
    do {
      guard let names else { return (try entry.directory.directory(entry.localName), entry.place) }
      var (place, identity): (ContainerPath, FileIdentity?) = (entry.place, entry.status.identity)
      var opened = try? entry.directory.directory(entry.localName)
      for _ in 0..<10 {
        if let opened, try identity == nil || opened.status().identity == identity { return (opened, place) }
        switch try names.find(path, inode: entry.status.inode) {
        case .at(let now, let status):
          // Where it was is something else, or it may not be opened.
          if status.type != .directory || (opened == nil && now == place) { return try reopen(now) }
          (place, identity) = (now, status.identity)
        case .unmoved:
          if opened == nil { return try reopen(place) }
          identity = nil
        case .gone: return nil
        case .unsettled: throw unsettled(path)
        }
        opened = try? root.directory(place)
      }
      throw unsettled(path)
    } catch let error as DrydockError {
      if error.code == .notFound { return nil }
      throw Unopened(reason: error)
    }
  }

  private func reopen(_ place: ContainerPath) throws -> (Directory, ContainerPath) {
    (try root.directory(place), place)
  }

  // MARK: Includes below what is excluded

  private static func above(_ path: ContainerPath) -> Inclusion {
    Inclusion(rule: .above, origin: path, detail: "something below is included")
  }

  /// The directories from an excluded one down that lead to an included path: they are stored with it, so that a
  /// restore gives them their modes and times. Looked for once for each topmost excluded directory, and only where
  /// a pattern can match; nil for one that is not excluded.
  ///
  /// - Throws: ``DrydockError`` when that cannot be found out.
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

  /// What is decided for one path, which need not exist.
  package struct Explanation: Sendable {
    /// What was decided, or would be.
    package var decision: Decision
    /// What is there; nil when nothing is.
    package var kind: ScannedEntry.Kind?
  }

  /// Decides for one path alone, reading only the directories above it.
  ///
  /// - Parameter isDirectory: what to take a path for that does not exist.
  package func explain(_ path: ContainerPath, isDirectory: Bool) throws -> Explanation {
    var mount = try root.status().mount
    var directory: Directory? = root
    var explanation = Explanation(decision: .none, kind: .directory)
    var known: Set<ContainerPath>?
    var parent = ContainerPath.root
    let names = path.components
    for (number, bytes) in names.enumerated() {
      let name = ContainerPath(unchecked: bytes)
      let child = parent.appending(unchecked: bytes)
      let assumed: FileType = number < names.count - 1 || isDirectory ? .directory : .file
      let above = explanation.decision
      guard let current = directory,
        let listing = try? DirectoryListing(current, parent, databases: root.databases)
      else {
        let subject = ExclusionRules.Subject(
          path: child, type: assumed, isNoDump: false, attributeNames: { [] }, attributeValue: { _ in nil })
        explanation = Explanation(decision: try rules.decision(of: subject, above: above), kind: nil)
        (directory, parent) = (nil, child)
        continue
      }
      let status = listing.status(of: name)
      explanation.kind = status.map { listing.kind(of: name, $0, mount: mount) }
      explanation.decision = try listing.decision(
        of: name, status, type: status?.type ?? assumed, above: above, rules)
      if explanation.kind == .directory {
        known = try leadingDirectories(child, explanation.decision, known: known, in: current, name, mount)
        if known?.contains(child) == true { explanation.decision.inclusion = Self.above(child) }
      }
      directory = explanation.kind == .directory ? try current.directory(name) : nil
      mount = status?.mount ?? mount
      parent = child
    }
    return explanation
  }
}

extension DrydockError {
  fileprivate static func tooDeep(_ path: ContainerPath, _ deepest: Int) -> Self {
    Self(
      .unsupported, "is more than \(deepest) directories deep, where Drydock does not look; move it up",
      path: path.description)
  }
}
