import AppStores
import DrydockErrors
import FileSystem

/// A directory of a container that is being scanned: its entries, the databases that they belong to, and its cache tag.
final class DirectoryListing {
  /// A path, its name, its status and where it is now, if it was renamed since the names were listed.
  struct Entry {
    var path: ContainerPath, name: ContainerPath
    var status: FileStatus
    /// The directory that contains it and its name there; and its path there, if that is another one.
    var directory: Directory, localName: ContainerPath, renamed: ContainerPath?
    var isMoved = false
    var currentPath: ContainerPath { renamed ?? path }
    /// Its extended attributes, where they are known without a system call.
    var attributes: [ExtendedAttribute]?

    func attributeNames() throws -> [String] {
      try attributes?.map(\.name) ?? ifPresent { try directory.attributeNames(of: localName) } ?? []
    }

    func attribute(_ attribute: String) throws -> [UInt8]? {
      if let attributes { return attributes.first { $0.name == attribute }?.value }
      return try ifPresent { try directory.attribute(attribute, of: localName) }
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
  /// The decisions for main files. What belongs to one is visited before or after it, and has the same one, also when
  /// a flag is set meanwhile: a database must not be stored without its log.
  private var decided: [ContainerPath: Decision] = [:]
  /// By each of their names.
  let groups: [ContainerPath: FileGroup]

  /// - Parameters:
  ///   - currentPath: the directory's, if it was renamed.
  ///   - names: the names that it had at one moment; by default its current ones.
  ///   - databases: databases that the configuration names.
  ///   - status: the statuses of files that are known, by what the listing says of a path.
  init(
    _ directory: Directory, _ path: ContainerPath, at currentPath: ContainerPath? = nil, _ decision: Decision,
    leading: Set<ContainerPath>?, mount: UInt64, names: TreeNames? = nil, databases: Set<ContainerPath>,
    status: ContainerScan.KnownStatus? = nil
  ) throws {
    (self.directory, self.path, self.decision) = (directory, path, decision)
    (self.leading, self.mount) = (leading, mount)
    let renamed = currentPath == path ? nil : currentPath
    var entries: [Entry] = []
    var unsettled: [ContainerPath] = []
    var tag: Exclusion?
    let (items, areCurrent) = try Self.items(directory, path, names)
    let listed = items.map { (name: ContainerPath(unchecked: $0.name), item: $0) }
    let pairs = FileGroup.pairs(among: listed.map(\.name))
    let paired = Set(pairs.flatMap { [$0, $1] })
    let statuses = try Self.statuses(of: listed, in: directory, renamed ?? path, known: status)
    for ((name, item), found) in zip(listed, statuses) {
      let path = path.appending(unchecked: name.bytes)
      let own = renamed?.appending(unchecked: name.bytes)
      var entry = found.map {
        Entry(path: path, name: name, status: $0, directory: directory, localName: name, renamed: own)
      }
      // Sidecars come and go with their database, which is captured as a whole, and so are a file and its checksum.
      if let names, !areCurrent, item.inode != 0, found?.inode != item.inode, try !directory.isSidecar(name),
        !paired.contains(name)
      {
        switch try names.find(path, inode: item.inode) {
        case .at(let now, let status):
          if let home = try? names.directory(of: now) {
            entry = Entry(
              path: path, name: name, status: status, directory: home,
              localName: ContainerPath(name: now.name),
              renamed: now, isMoved: now != own ?? path)
          } else {
            entry = nil
            unsettled += names.reported(path, seenAt: [now])
          }
        case .unmoved(let status):
          entry = Entry(
            path: path, name: name, status: status, directory: directory, localName: name, renamed: own)
        case .gone: break
        case .unsettled(let seen):
          entry = nil
          unsettled += names.reported(path, seenAt: seen)
        }
      }
      guard let entry else { continue }
      entries.append(entry)
      // A tag in the root of a container that the user names is ignored.
      if name == Exclusion.cacheTag, !self.path.isRoot, self.path.inGroup?.path.isRoot != true,
        try Exclusion.isCacheTag(entry.status, entry.localName, in: entry.directory)
      {
        tag = Exclusion(
          rule: .cacheTag, origin: self.path, detail: "\(self.path) has a \(Exclusion.cacheTag)")
      }
    }
    self.tag = tag
    let files = entries.lazy.filter { $0.status.type == .file }
    // By name, not by existence: a sidecar that the app removes and recreates must not be stored as a separate file, which
    // would corrupt the captured main file.
    let sidecars = Dictionary(
      grouping: files.compactMap { file in
        DatabaseUnit.main(ofSidecar: file.name).map { (name: file.name, main: $0) }
      }, by: \.main)
    for entry in files {
      let name = entry.name
      // A file that is removed or cannot be opened is reported when it is read.
      guard
        let unit = try? entry.directory.databaseUnit(
          entry.localName, status: entry.status,
          isNamed: !databases.isEmpty && databases.contains(entry.path),
          mayHaveSidecars: entry.isMoved || sidecars[name] != nil)
      else { continue }
      // The files of a moved database may or may not have been moved yet.
      if entry.isMoved { unsettled += [entry.path, entry.currentPath] }
      units[name] = unit
      for sidecar in sidecars[name] ?? [] { owners[sidecar.name] = name }
      if let external = unit.externalData { owners[external] = name }
    }
    groups = FileGroup.find(
      pairs, files: Array(files.map(\.name)), found: Set(entries.map(\.name))
    ) {
      [units, owners] in units[$0] != nil || owners[$0] != nil
    }
    let lost = Set(unsettled)
    self.entries = entries.filter { !$0.isMoved || !lost.contains($0.currentPath) }
    self.unsettled = unsettled
  }

  /// The names, and whether they are those that the directory has now.
  private static func items(
    _ directory: Directory, _ path: ContainerPath, _ names: TreeNames?
  ) throws -> (items: [NameList.Item], areCurrent: Bool) {
    // The files of a directory that is one group are captured when it is listed.
    guard var items = names?.names(in: path), !FileGroup.isDirectory(items.lazy.map(\.name)) else {
      return (try directory.items(), true)
    }
    if directory.isGroupList(.groups) {
      items.append(.groupList)
      items.sort { $0.name.lexicographicallyPrecedes($1.name) }
    }
    return (items, false)
  }

  private static func statuses(
    of listed: [(name: ContainerPath, item: NameList.Item)], in directory: Directory, _ path: ContainerPath,
    known: ContainerScan.KnownStatus?
  ) throws -> [FileStatus?] {
    guard let known else { return try directory.statuses(listed.map(\.name)) }
    var statuses = listed.map { known(path.appending(unchecked: $0.name.bytes), $0.item) }
    let others = statuses.indices.filter { statuses[$0] == nil }
    for (index, status) in zip(others, try directory.statuses(others.map { listed[$0].name })) {
      statuses[index] = status
    }
    return statuses
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
    let owner =
      owners[name]
      ?? (entry == nil ? DatabaseUnit.main(ofSidecar: name).flatMap { units[$0]?.main } : nil)
    var above = decision
    if above.exclusion == nil, above.unit == nil, name != Exclusion.cacheTag { above.exclusion = tag }
    guard let owner else {
      if let known = decided[name] { return known }
      let path = entry?.path ?? path.appending(unchecked: name.bytes)
      let decision = try rules.decision(of: path, type, entry, above: above)
      if units[name] != nil { decided[name] = decision }
      return decision
    }
    let main = path.appending(unchecked: owner.bytes)
    var decision = try decided[owner] ?? rules.decision(of: main, .file, self[owner], above: above)
    decided[owner] = decision
    decision.unit = main
    return decision
  }
}
