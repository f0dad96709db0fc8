import AppStores
import DrydockErrors
import FileSystem

/// A directory of a container that is being scanned: its entries, the databases that they belong to, and its cache tag.
final class DirectoryListing {
  /// A name, its status and its current path, if it was renamed since the names were listed.
  struct Entry {
    var name: ContainerPath
    var status: FileStatus
    /// The directory that contains it, its name there, and its path in the container.
    var directory: Directory, localName: ContainerPath, currentPath: ContainerPath
    var isMoved = false

    func attributeNames() throws -> [String] {
      try ifPresent { try directory.attributeNames(of: localName) } ?? []
    }

    func attribute(_ attribute: String) throws -> [UInt8]? {
      try ifPresent { try directory.attribute(attribute, of: localName) }
    }

    private func ifPresent<Value>(_ read: () throws -> Value?) throws -> Value? {
      do { return try read() } catch let error as DrydockError where error.code == .notFound { return nil }
    }
  }

  let directory: Directory
  let path: ContainerPath
  let decision: Decision
  /// Below an excluded directory: those that lead to an included path.
  let leading: Set<ContainerPath>?
  /// The mount that the directory is on.
  let mount: UInt64
  /// By the bytes of the names.
  let entries: [Entry]
  /// The number of the entry that a scan visits next.
  var nextEntry = 0
  /// Paths that moved during each search, with all paths where they were seen.
  let unsettled: [ContainerPath]
  private let tag: Exclusion?
  private var units: [ContainerPath: DatabaseUnit] = [:]
  private var owners: [ContainerPath: ContainerPath] = [:]
  /// By each of their names.
  let groups: [ContainerPath: FileGroup]

  /// - Parameters:
  ///   - currentPath: the directory's, if it was renamed.
  ///   - names: the names that it had at one moment; by default its current ones.
  ///   - databases: databases that the configuration names.
  init(
    _ directory: Directory, _ path: ContainerPath, at currentPath: ContainerPath? = nil, _ decision: Decision,
    leading: Set<ContainerPath>?, mount: UInt64, names: TreeNames? = nil, databases: Set<ContainerPath>
  ) throws {
    (self.directory, self.path, self.decision) = (directory, path, decision)
    (self.leading, self.mount) = (leading, mount)
    let currentPath = currentPath ?? path
    var entries: [Entry] = []
    var unsettled: [ContainerPath] = []
    var tag: Exclusion?
    let listed = try Self.names(directory, path, names).map {
      (name: ContainerPath(unchecked: $0), inode: $1)
    }
    let pairs = FileGroup.pairs(among: listed.map(\.name))
    let paired = Set(pairs.flatMap { [$0, $1] })
    for (name, inode) in listed {
      let found = try directory.status(name)
      let own = currentPath.appending(unchecked: name.bytes)
      var entry = found.map {
        Entry(name: name, status: $0, directory: directory, localName: name, currentPath: own)
      }
      // Sidecars come and go with their database, which is captured as a whole, and so are a file and its checksum.
      if let names, let inode, found?.inode != inode, try !directory.isSidecar(name), !paired.contains(name) {
        switch try names.find(path.appending(unchecked: name.bytes), inode: inode) {
        case .at(let now, let status):
          if let home = try? names.directory(of: now) {
            entry = Entry(
              name: name, status: status, directory: home, localName: ContainerPath(name: now.name),
              currentPath: now, isMoved: now != own)
          } else {
            entry = nil
            unsettled += names.reported(path.appending(unchecked: name.bytes), seenAt: [now])
          }
        case .unmoved(let status):
          entry = Entry(name: name, status: status, directory: directory, localName: name, currentPath: own)
        case .gone: break
        case .unsettled(let seen):
          entry = nil
          unsettled += names.reported(path.appending(unchecked: name.bytes), seenAt: seen)
        }
      }
      guard let entry else { continue }
      entries.append(entry)
      // A tag in the root of a container that the user names is ignored.
      if name == Exclusion.cacheTag, !path.isRoot, path.inGroup?.path.isRoot != true,
        try Exclusion.isCacheTag(entry.status, entry.localName, in: entry.directory)
      {
        tag = Exclusion(rule: .cacheTag, origin: path, detail: "\(path) has a \(Exclusion.cacheTag)")
      }
    }
    self.tag = tag
    let files = Set(entries.lazy.filter { $0.status.type == .file }.map(\.name))
    for entry in entries where entry.status.type == .file {
      let name = entry.name
      // A file that is removed or cannot be opened is reported when it is read.
      guard
        let unit = try? entry.directory.databaseUnit(
          entry.localName, status: entry.status,
          isNamed: !databases.isEmpty && databases.contains(path.appending(unchecked: name.bytes)),
          among: entry.isMoved ? nil : files)
      else { continue }
      // The files of a moved database may or may not have been moved yet.
      if entry.isMoved { unsettled += [path.appending(unchecked: name.bytes), entry.currentPath] }
      units[name] = unit
      // By name, not by existence: a sidecar that the app removes and recreates must not be stored as a separate file, which
      // would corrupt the captured main file.
      for sidecar in DatabaseFormat.sidecarSuffixes.map(name.withSuffix) where files.contains(sidecar) {
        owners[sidecar] = name
      }
      if let external = unit.externalData { owners[external] = name }
    }
    groups = FileGroup.find(pairs, files: files, found: Set(entries.map(\.name))) {
      [units, owners] in units[$0] != nil || owners[$0] != nil
    }
    let lost = Set(unsettled)
    self.entries = entries.filter { !$0.isMoved || !lost.contains($0.currentPath) }
    self.unsettled = unsettled
  }

  /// The names, and the inodes that they had.
  private static func names(
    _ directory: Directory, _ path: ContainerPath, _ names: TreeNames?
  ) throws -> [([UInt8], UInt64?)] {
    // The files of a directory that is one group are captured when it is listed.
    guard let listed = names?.names(in: path), !FileGroup.isDirectory(listed.lazy.map(\.name)) else {
      return try directory.names().map { ($0, nil) }
    }
    var items: [([UInt8], UInt64?)] = listed.map { ($0.name, $0.inode) }
    if directory.isGroupList(.groups) {
      items.append((ContainerPath.groups.bytes, nil))
      items.sort { $0.0.lexicographicallyPrecedes($1.0) }
    }
    return items
  }

  subscript(name: ContainerPath) -> Entry? { entries.first { $0.name == name } }

  func kind(of entry: Entry) -> ScannedEntry.Kind {
    let prefix = { [path] (name: ContainerPath) in path.appending(unchecked: name.bytes) }
    switch entry.status.type {
    case .directory:
      // A group's root is part of the container on any mount.
      return entry.status.mount == mount || directory.isGroupList(.root) ? .directory : .mount
    case .symbolicLink: return .symbolicLink
    case .other: return .special
    case .file:
      if let owner = owners[entry.name] { return .sidecar(of: prefix(owner)) }
      guard let unit = units[entry.name] else { return .file }
      return .database(
        DatabaseUnit(
          main: prefix(unit.main), sidecars: unit.sidecars.map(prefix),
          externalData: unit.externalData.map(prefix)))
    }
  }

  /// The decision for a name. The decision for a main file applies to its sidecars and external data.
  ///
  /// - Parameters:
  ///   - entry: nil when it does not exist.
  ///   - type: its type, or the assumed one.
  /// - Throws: ``DrydockError`` when an attribute that a rule needs cannot be read.
  func decision(
    of name: ContainerPath, _ entry: Entry?, type: FileType, _ rules: ExclusionRules
  ) throws -> Decision {
    let sidecarOwner = DatabaseUnit.main(ofSidecar: name).flatMap { units[$0]?.main }
    let owner = owners[name] ?? (entry == nil ? sidecarOwner : nil)
    var above = decision
    if above.exclusion == nil, above.unit == nil, name != Exclusion.cacheTag { above.exclusion = tag }
    guard let owner else {
      return try rules.decision(of: path.appending(unchecked: name.bytes), type, entry, above: above)
    }
    let main = path.appending(unchecked: owner.bytes)
    var decision = try rules.decision(of: main, .file, self[owner], above: above)
    decision.unit = main
    return decision
  }
}
