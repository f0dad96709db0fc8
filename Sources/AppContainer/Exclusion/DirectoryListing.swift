/// One directory of a container: what is in it, which of its names belong to which database, and whether it is
/// tagged as a cache.
struct DirectoryListing {
  let directory: Directory
  /// The directory's path in the container.
  let path: ContainerPath
  /// Names with what they are, in the order of their bytes.
  private(set) var entries: [(name: ContainerPath, status: FileStatus)] = []
  private let tag: Exclusion?
  private var units: [ContainerPath: DatabaseUnit] = [:]
  private var owners: [ContainerPath: ContainerPath] = [:]

  init(_ directory: Directory, _ path: ContainerPath) throws {
    self.directory = directory
    self.path = path
    var entries: [(name: ContainerPath, status: FileStatus)] = []
    var tag: Exclusion?
    for bytes in try directory.names() {
      let name = ContainerPath(unchecked: bytes)
      guard let status = try directory.status(name) else { continue }
      entries.append((name, status))
      // Whoever names a container wants it: a tag in its root says nothing.
      if name == CacheTag.name, !path.isRoot, path.inGroup?.path.isRoot != true,
        CacheTag.isValid(status, in: directory)
      {
        tag = Exclusion(rule: .cacheTag, origin: path, detail: "\(path) has a \(CacheTag.name)")
      }
    }
    self.entries = entries
    self.tag = tag
    let names = Set(entries.lazy.filter { $0.status.type == .file }.map(\.name))
    for (name, status) in entries where status.type == .file {
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
  func decision(
    of name: ContainerPath, _ status: FileStatus?, type: FileType, above: Decision, _ rules: ExclusionRules
  ) throws -> Decision {
    let sidecarOwner = DatabaseUnit.main(ofSidecar: name).flatMap { units[$0]?.main }
    let owner = owners[name] ?? (status == nil ? sidecarOwner : nil)
    let decisive = owner ?? name
    let present = owner.map { self.status(of: $0) } ?? status
    var above = above
    if above.exclusion == nil, above.unit == nil, name != CacheTag.name { above.exclusion = tag }
    let subject = ExclusionRules.Subject(
      path: path.appending(unchecked: decisive.bytes), type: owner == nil ? type : .file,
      isNoDump: present?.isNoDump ?? false,
      attributeNames: {
        guard present != nil else { return [] }
        return try tolerant { try directory.attributeNames(of: decisive) } ?? []
      },
      attributeValue: { attribute in
        try tolerant { try directory.attribute(attribute, of: decisive) } ?? nil
      })
    var decision = try rules.decision(of: subject, above: above)
    if owner != nil { decision.unit = subject.path }
    return decision
  }

  /// Who may not read a file may not read its attributes either: whoever reads it reports that.
  private func tolerant<T>(_ body: () throws -> T) throws -> T? {
    do {
      return try body()
    } catch let error as ContainerError where error.code == .permission || error.code == .notFound {
      return nil
    }
  }
}
