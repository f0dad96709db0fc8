/// One path of a container, with what it is and whether a backup takes it.
public struct ScannedEntry: Sendable {
  /// What a path is to a backup.
  public enum Kind: Sendable, Hashable {
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
  public let path: ContainerPath
  /// Its status, of a link itself.
  public let status: FileStatus
  /// What it is.
  public let kind: Kind
  /// What was decided for it.
  public let decision: Decision

  /// Why a backup does not take it; nil when it does.
  public var exclusion: Exclusion? { decision.effective }
}

/// A walk over a container that knows databases and exclusion rules.
public struct ContainerScan {
  /// The container's root.
  public let root: Directory
  /// The rules that decide.
  public let rules: ExclusionRules
  /// Whether to go into excluded directories; without, only their top is visited.
  public var entersExcluded = false

  /// A scan of a container.
  public init(_ root: Directory, rules: ExclusionRules, entersExcluded: Bool = false) {
    self.root = root
    self.rules = rules
    self.entersExcluded = entersExcluded
  }

  /// What the walk knows when it enters a directory.
  private struct Place {
    var directory: Directory
    var path: ContainerPath
    var decision: Decision
    /// Below an excluded directory: the directories in it that lead to an included path.
    var leading: Set<ContainerPath>?
  }

  /// Visits every path, parents first and names in the order of their bytes; the list of groups is none, the root of each
  /// group is.
  ///
  /// - Parameter unreadable: takes a directory that cannot be listed; by default it is thrown.
  public func visit(
    unreadable: (ContainerPath, ContainerError) throws -> Void = { throw $1 },
    _ body: (ScannedEntry) throws -> Void
  ) throws {
    let top = Place(directory: root, path: .root, decision: .none, leading: nil)
    try visit(top, root.status().mount, unreadable, body)
  }

  private func visit(
    _ place: Place, _ mount: UInt64,
    _ unreadable: (ContainerPath, ContainerError) throws -> Void, _ body: (ScannedEntry) throws -> Void
  ) throws {
    let listing: DirectoryListing
    do {
      listing = try DirectoryListing(place.directory, place.path)
    } catch let error as ContainerError {
      return try unreadable(place.path, error)
    }
    for (name, status) in listing.entries {
      let child = place.path.appending(unchecked: name.bytes)
      if place.directory.isGroupList(name) {
        let list = Place(
          directory: try place.directory.directory(name), path: child, decision: .none, leading: nil)
        try visit(list, mount, unreadable, body)
        continue
      }
      let kind = listing.kind(of: name, status, mount: mount)
      var decision = try listing.decision(
        of: name, status, type: status.type, above: place.decision, rules)
      var leading: Set<ContainerPath>?
      if kind == .directory {
        leading = leadingDirectories(child, decision, known: place.leading, in: place.directory, name, mount)
        if leading?.contains(child) == true { decision.inclusion = Self.above(child) }
      }
      try body(ScannedEntry(path: child, status: status, kind: kind, decision: decision))
      guard kind == .directory, decision.effective == nil || entersExcluded else { continue }
      let opened: Directory
      do {
        opened = try place.directory.directory(name)
      } catch let error as ContainerError {
        if error.code != .notFound { try unreadable(child, error) }
        continue
      }
      try visit(
        Place(directory: opened, path: child, decision: decision, leading: leading), status.mount, unreadable,
        body)
    }
  }

  // MARK: Includes below what is excluded

  private static func above(_ path: ContainerPath) -> Inclusion {
    Inclusion(rule: .above, origin: path, detail: "something below is included")
  }

  /// The directories from an excluded one down that lead to an included path: they are stored with it, so that a
  /// restore gives them their modes and times. Looked for once for each topmost excluded directory, and only where
  /// a pattern can match; nil for one that is not excluded.
  private func leadingDirectories(
    _ path: ContainerPath, _ decision: Decision, known: Set<ContainerPath>?, in parent: Directory,
    _ name: ContainerPath, _ mount: UInt64
  ) -> Set<ContainerPath>? {
    guard let rule = decision.effective?.rule, rule != .state, decision.unit == nil else { return nil }
    if let known { return known }
    var found: Set<ContainerPath> = []
    _ = isLeading(path, in: parent, name, mount, &found)
    return found
  }

  private func isLeading(
    _ path: ContainerPath, in parent: Directory, _ name: ContainerPath, _ mount: UInt64,
    _ found: inout Set<ContainerPath>
  ) -> Bool {
    // What cannot be listed is reported by whoever reads it, if anything in it is to be read.
    guard rules.mayInclude(below: path), let directory = try? parent.directory(name),
      let names = try? directory.names()
    else { return false }
    var leads = false
    for name in names.map(ContainerPath.init(unchecked:)) {
      guard let status = try? directory.status(name) else { continue }
      let child = path.appending(unchecked: name.bytes)
      if rules.includes(child, type: status.type) {
        leads = true
      } else if status.type == .directory, status.mount == mount,
        isLeading(child, in: directory, name, mount, &found)
      {
        leads = true
      }
    }
    if leads { found.insert(path) }
    return leads
  }

  // MARK: One path

  /// What is decided for one path, which need not exist.
  public struct Explanation: Sendable {
    /// What was decided, or would be.
    public var decision: Decision
    /// What is there; nil when nothing is.
    public var kind: ScannedEntry.Kind?
  }

  /// Decides for one path alone, reading only the directories above it.
  ///
  /// - Parameter isDirectory: what to take a path for that does not exist.
  public func explain(_ path: ContainerPath, isDirectory: Bool) throws -> Explanation {
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
      guard let current = directory, let listing = try? DirectoryListing(current, parent) else {
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
        known = leadingDirectories(child, explanation.decision, known: known, in: current, name, mount)
        if known?.contains(child) == true { explanation.decision.inclusion = Self.above(child) }
      }
      directory = explanation.kind == .directory ? try current.directory(name) : nil
      mount = status?.mount ?? mount
      parent = child
    }
    return explanation
  }
}
