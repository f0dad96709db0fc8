import DrydockErrors
import FileSystem

/// A path of a container, its kind, and whether a backup includes it.
package struct ScannedEntry: Sendable {
  /// The kind of a path in a backup.
  package enum Kind: Sendable, Hashable {
    case file, directory, symbolicLink
    /// The main file of a database.
    case database(DatabaseUnit)
    /// A `-wal`, `-shm` or `-journal` of a database, which is not stored by itself.
    case sidecar(of: ContainerPath)
    /// A mount point.
    case mount
    /// A socket, FIFO or device.
    case special
  }

  /// The path in the container.
  package let path: ContainerPath
  /// Its current path, if it was renamed during the walk.
  package var place: ContainerPath
  package var status: FileStatus
  package let kind: Kind
  package let decision: Decision

  /// Why a backup excludes it; nil when it is included.
  package var exclusion: Exclusion? { decision.effective }
}

/// A walk over a container that recognizes databases and applies exclusion rules.
package struct ContainerScan {
  package let root: Directory
  package let rules: ExclusionRules
  /// Whether to enter excluded directories, of which otherwise only the topmost is visited.
  package var entersExcluded = false
  /// The maximum depth of directories; deeper ones are unreadable. A walk keeps all directories above open.
  package var deepest = Int.max
  /// The names to visit; by default those that each directory has when the walk reaches it.
  package var names: TreeNames?

  package init(_ root: Directory, rules: ExclusionRules, entersExcluded: Bool = false) {
    self.root = root
    self.rules = rules
    self.entersExcluded = entersExcluded
  }

  /// A directory that the walk enters.
  private struct Place {
    var directory: Directory
    var path: ContainerPath
    /// Its current path, if it was renamed.
    var place: ContainerPath
    var decision: Decision
    /// Below an excluded directory: those that lead to an included path.
    var leading: Set<ContainerPath>?
  }

  /// Visits every path, parents first, names in the order of their bytes, including the groups' roots but not the list of
  /// groups.
  ///
  /// - Parameter unreadable: handles a directory that cannot be listed, a path with an unreadable attribute that a rule
  ///   needs, and (`inUse`) one that was renamed during each search. Nothing below is visited. By default the error is
  ///   thrown.
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

  /// A directory that could not be opened, as opposed to an error of a visit.
  private struct Unopened: Error { var reason: DrydockError }

  private func unsettled(_ path: ContainerPath) -> DrydockError {
    DrydockError(
      .inUse, "renamed during each search for it; close the app and run the command again",
      path: root.full(path))
  }

  /// Opens a directory at its current place; nil when it was removed.
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
          // Its name is taken by something else, or it cannot be opened.
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

  /// The decision for a path, which need not exist.
  package struct Explanation: Sendable {
    package var decision: Decision
    /// Nil when the path does not exist.
    package var kind: ScannedEntry.Kind?
  }

  /// Decides for one path, reading only the directories above it.
  ///
  /// - Parameter isDirectory: whether to treat a missing path as a directory.
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
      .unsupported, "more than \(deepest) directories deep, which is not supported; move it up",
      path: path.description)
  }
}
