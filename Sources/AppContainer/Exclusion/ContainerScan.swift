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
  /// Why a backup does not take it; nil when it does.
  public let exclusion: Exclusion?
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

  /// Visits every path, parents first and names in the order of their bytes.
  ///
  /// - Parameter unreadable: takes a directory that cannot be listed; by default it is thrown.
  public func visit(
    unreadable: (ContainerPath, ContainerError) throws -> Void = { throw $1 },
    _ body: (ScannedEntry) throws -> Void
  ) throws {
    try visit(root, .root, root.status().mount, nil, unreadable, body)
  }

  private func visit(
    _ directory: Directory, _ path: ContainerPath, _ mount: UInt64, _ inherited: Exclusion?,
    _ unreadable: (ContainerPath, ContainerError) throws -> Void, _ body: (ScannedEntry) throws -> Void
  ) throws {
    let names: [[UInt8]]
    do {
      names = try directory.names()
    } catch let error as ContainerError {
      return try unreadable(path, error)
    }
    var listing: [(ContainerPath, FileStatus)] = []
    for bytes in names {
      let name = ContainerPath(unchecked: bytes)
      if let status = try directory.status(name) { listing.append((name, status)) }
    }
    let units = try DirectoryUnits(directory, listing)

    for (name, status) in listing {
      let child = path.appending(unchecked: name.bytes)
      let kind = units.kind(of: name, status, in: path, mount: mount)
      let exclusion = try exclusion(of: name, kind, units, in: directory, path, inherited, status.type)
      let own = rules.alwaysTakes(child) ? nil : exclusion
      try body(ScannedEntry(path: child, status: status, kind: kind, exclusion: own))
      guard kind == .directory, own == nil || entersExcluded || rules.hasIncludes else { continue }
      let opened: Directory
      do {
        opened = try directory.directory(name)
      } catch let error as ContainerError {
        if error.code != .notFound { try unreadable(child, error) }
        continue
      }
      try visit(opened, child, mount, exclusion, unreadable, body)
    }
  }

  /// The decision for one path; the decision for a main file holds for its sidecars and external data.
  private func exclusion(
    of name: ContainerPath, _ kind: ScannedEntry.Kind, _ units: DirectoryUnits, in directory: Directory,
    _ path: ContainerPath, _ inherited: Exclusion?, _ type: FileType
  ) throws -> Exclusion? {
    let decisive = units.owner(of: name) ?? name
    return try rules.exclusion(
      of: path.appending(unchecked: decisive.bytes), type: decisive == name ? type : .file,
      inherited: inherited
    ) { name in
      do {
        return try directory.attribute(name, of: decisive)
      } catch let error as ContainerError where error.code == .permission || error.code == .notFound {
        // Who may not read a file may not read its attributes either: whoever reads it reports that.
        return nil
      }
    }
  }
}

/// The databases of one directory, and which of its names belong to which.
private struct DirectoryUnits {
  private var units: [ContainerPath: DatabaseUnit] = [:]
  private var owners: [ContainerPath: ContainerPath] = [:]

  init(_ directory: Directory, _ listing: [(ContainerPath, FileStatus)]) throws {
    let names = Set(listing.lazy.filter { $1.type == .file }.map(\.0))
    for (name, status) in listing where status.type == .file {
      // A file that vanishes or cannot be opened is left to whoever reads it.
      guard let unit = try? directory.databaseUnit(name, status: status, mayExist: names.contains) else {
        continue
      }
      units[name] = unit
      // By their names: one that an app has just removed, and makes again, must not be taken for a file of its own,
      // which beside the captured main file would undo half of it.
      for sidecar in DatabaseFormat.sidecarSuffixes.map(name.withSuffix) where names.contains(sidecar) {
        owners[sidecar] = name
      }
      if let external = unit.externalData { owners[external] = name }
    }
  }

  func owner(of name: ContainerPath) -> ContainerPath? { owners[name] }

  func kind(
    of name: ContainerPath, _ status: FileStatus, in path: ContainerPath, mount: UInt64
  ) -> ScannedEntry.Kind {
    let prefix = { (name: ContainerPath) in path.appending(unchecked: name.bytes) }
    switch status.type {
    case .directory: return status.mount == mount ? .directory : .mount
    case .symbolicLink: return .symbolicLink
    case .other: return .special
    case .file:
      if let owner = owners[name] { return .sidecar(of: prefix(owner)) }
      guard let unit = units[name] else { return .file }
      return .database(
        DatabaseUnit(
          main: prefix(unit.main), sidecars: unit.sidecars.map(prefix),
          externalData: unit.externalData.map(prefix)))
    }
  }
}
