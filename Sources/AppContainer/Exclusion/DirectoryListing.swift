import DrydockErrors
import FileSystem

/// One directory of a container: what is in it, which of its names belong to which database, and whether it is
/// tagged as a cache.
struct DirectoryListing {
  /// One name, with what it is and where that is: elsewhere when it was renamed since the names were listed.
  struct Entry {
    var name: ContainerPath
    var status: FileStatus
    /// The directory that it is in, its name there, and both as a path in the container.
    var directory: Directory, localName: ContainerPath, place: ContainerPath
    var isMoved = false
  }

  let directory: Directory
  /// The directory's path in the container.
  let path: ContainerPath
  /// In the order of the names' bytes.
  private(set) var entries: [Entry] = []
  /// What moved each time it was looked for, with all places where it was seen.
  private(set) var unsettled: [ContainerPath] = []
  private var moved: [ContainerPath: Entry] = [:]
  private let tag: Exclusion?
  private var units: [ContainerPath: DatabaseUnit] = [:]
  private var owners: [ContainerPath: ContainerPath] = [:]

  /// - Parameters:
  ///   - place: where the directory is, when that is elsewhere than at its path.
  ///   - names: the names that it had at one moment; by default those that it has.
  ///   - databases: paths of databases that the configuration names.
  init(
    _ directory: Directory, _ path: ContainerPath, at place: ContainerPath? = nil, names: TreeNames? = nil,
    databases: Set<ContainerPath> = []
  ) throws {
    self.directory = directory
    self.path = path
    let place = place ?? path
    var entries: [Entry] = []
    var unsettled: [ContainerPath] = []
    var tag: Exclusion?
    for (bytes, inode) in try Self.names(directory, path, names) {
      let name = ContainerPath(unchecked: bytes)
      let found = try directory.status(name)
      let own = place.appending(unchecked: bytes)
      var entry = found.map {
        Entry(name: name, status: $0, directory: directory, localName: name, place: own)
      }
      // A sidecar comes and goes with its database, which is captured as a whole.
      if let names, let inode, found?.inode != inode, try !directory.isSidecar(name) {
        switch try names.find(path.appending(unchecked: bytes), inode: inode) {
        case .at(let now, let status):
          if let home = try? names.directory(of: now) {
            entry = Entry(
              name: name, status: status, directory: home, localName: ContainerPath(name: now.name),
              place: now,
              isMoved: now != own)
          } else {
            entry = nil
            unsettled += [path.appending(unchecked: bytes), now]
          }
        case .unmoved(let status):
          entry = Entry(name: name, status: status, directory: directory, localName: name, place: own)
        case .gone: break
        case .unsettled(let places):
          entry = nil
          unsettled += places
        }
      }
      guard let entry else { continue }
      if entry.isMoved { moved[name] = entry }
      entries.append(entry)
      // Whoever names a container wants it: a tag in its root says nothing.
      if name == CacheTag.name, !path.isRoot, path.inGroup?.path.isRoot != true,
        try CacheTag.isValid(entry.status, entry.localName, in: entry.directory)
      {
        tag = Exclusion(rule: .cacheTag, origin: path, detail: "\(path) has a \(CacheTag.name)")
      }
    }
    self.tag = tag
    let files = Set(entries.lazy.filter { $0.status.type == .file }.map(\.name))
    for entry in entries where entry.status.type == .file {
      let name = entry.name
      // A file that vanishes or cannot be opened is left to whoever reads it.
      guard
        let unit = try? entry.directory.databaseUnit(
          entry.localName, status: entry.status,
          isNamed: !databases.isEmpty && databases.contains(path.appending(unchecked: name.bytes)),
          mayExist: { entry.isMoved || files.contains($0) })
      else { continue }
      // A database goes with files that may have been moved, too, or not yet.
      if entry.isMoved { unsettled += [path.appending(unchecked: name.bytes), entry.place] }
      units[name] = unit
      // By their names: one that an app has just removed, and makes again, must not be taken for a file of its own,
      // which beside the captured main file would undo half of it.
      for sidecar in DatabaseFormat.sidecarSuffixes.map(name.withSuffix) where files.contains(sidecar) {
        owners[sidecar] = name
      }
      if let external = unit.externalData { owners[external] = name }
    }
    let lost = Set(unsettled)
    self.entries = entries.filter { !$0.isMoved || !lost.contains($0.place) }
    self.unsettled = unsettled
  }

  /// The names to look at, and the inodes that they had.
  private static func names(
    _ directory: Directory, _ path: ContainerPath, _ names: TreeNames?
  ) throws -> [([UInt8], UInt64?)] {
    guard let listed = names?.names(in: path) else { return try directory.names().map { ($0, nil) } }
    var items: [([UInt8], UInt64?)] = listed.map { ($0.name, $0.inode) }
    if directory.isGroupList(.groups) {
      items.append((ContainerPath.groups.bytes, nil))
      items.sort { $0.0.lexicographicallyPrecedes($1.0) }
    }
    return items
  }

  func status(of name: ContainerPath) -> FileStatus? { entries.first { $0.name == name }?.status }

  /// What a name is; `mount` is the mount that the container is on.
  func kind(of name: ContainerPath, _ status: FileStatus, mount: UInt64) -> ScannedEntry.Kind {
    let prefix = { (name: ContainerPath) in path.appending(unchecked: name.bytes) }
    switch status.type {
    case .directory:
      // A group's root is part of the container wherever it is.
      return status.mount == mount || directory.isGroupList(.root) ? .directory : .mount
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

  /// The decision for one name; the decision for a main file holds for its sidecars and external data.
  ///
  /// - Parameters:
  ///   - status: nil for one that is not there.
  ///   - type: what it is, or would be.
  /// - Throws: ``DrydockError`` when an attribute that a rule asks for cannot be read: then nobody knows.
  func decision(
    of name: ContainerPath, _ status: FileStatus?, type: FileType, above: Decision, _ rules: ExclusionRules
  ) throws -> Decision {
    let sidecarOwner = DatabaseUnit.main(ofSidecar: name).flatMap { units[$0]?.main }
    let owner = owners[name] ?? (status == nil ? sidecarOwner : nil)
    let moved = moved[owner ?? name]
    let (directory, decisive) = (moved?.directory ?? directory, moved?.localName ?? owner ?? name)
    let present = owner.map { self.status(of: $0) } ?? status
    var above = above
    if above.exclusion == nil, above.unit == nil, name != CacheTag.name { above.exclusion = tag }
    let subject = ExclusionRules.Subject(
      path: path.appending(unchecked: (owner ?? name).bytes), type: owner == nil ? type : .file,
      isNoDump: present?.isNoDump ?? false,
      attributeNames: {
        guard present != nil else { return [] }
        return try unlessGone { try directory.attributeNames(of: decisive) } ?? []
      },
      attributeValue: { attribute in
        try unlessGone { try directory.attribute(attribute, of: decisive) } ?? nil
      })
    var decision = try rules.decision(of: subject, above: above)
    if owner != nil { decision.unit = subject.path }
    return decision
  }

  private func unlessGone<T>(_ body: () throws -> T) throws -> T? {
    do {
      return try body()
    } catch let error as DrydockError where error.code == .notFound {
      return nil
    }
  }
}
