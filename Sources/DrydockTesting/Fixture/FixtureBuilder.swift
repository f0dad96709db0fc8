import AppContainer
import AppStores
import BackupRepository
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

extension Fixture {
  /// Makes the fixture's container, with its groups.
  ///
  /// The container is in the directory at a depth at which the groups' paths of `drydock.yaml` stay in it; nothing
  /// outside is touched, by the container's migrations neither.
  ///
  /// - Parameters:
  ///   - work: The directory to make; it must not exist, its parent must.
  ///   - configuration: What `drydock.yaml` says: the vault's place, and the groups'.
  ///   - deviceKeys: To whom the vault is sealed; needed when it has one.
  /// - Throws: `DrydockError`; what was made until then stays.
  package func build(
    in work: String, configuration: ContainerConfiguration = ContainerConfiguration(),
    deviceKeys: DeviceKeys? = nil
  ) throws -> Container {
    let place = try FixturePlace(making: work, configuration)
    let fixture = try Directory(directory)
    switch source {
    case .archive:
      let archive = try Archive(path: fixture.full(FixtureSource.archiveFile))
      var options = RestoreOptions()
      options.includeExcluded = true
      try place.removeVault(
        of: place.restore(archive, configuration, options), isReplaced: setup.vault != nil,
        archive: archive.path)
    case .files, .nothing: try place.work.makeDirectories(place.root)
    }
    let target = try place.open(try groups(in: fixture), configuration)
    if case .files = source {
      try FixtureFiles(fixture: fixture, setup: setup, configuration: configuration).copy(to: target)
    } else if let place = (setup.verbatim + setup.onlyInWAL).first {
      throw place.position.error("the fixture has no `container/` and so no such file")
    }
    for directory in setup.directories {
      try setup.positioned(directory) { try target.makeDirectories(directory.path) }
    }
    let container = try Container(at: place.work.full(place.root), configuration: configuration)
    try setup.makeVault(in: target, at: container.vaultPath, deviceKeys)
    try setup.mark(target)
    return try Container(at: container.root, configuration: configuration)
  }

  /// The groups that the container has: what `groups/` holds, and what `fixture.yaml` names.
  private func groups(in fixture: Directory) throws -> Set<String> {
    var ids = Set(setup.places.compactMap { $0.path.inGroup?.id })
    guard try fixture.status(FixtureSource.groups) != nil else { return ids }
    for name in try fixture.directory(FixtureSource.groups).names() where name.first != UInt8(ascii: ".") {
      ids.insert(String(decoding: name, as: UTF8.self))
    }
    return ids
  }
}

extension FixturePlace {
  /// Opens the container with its groups, of which those that it has are made.
  ///
  /// - Throws: `DrydockError` with code `badFixture` for a group that `drydock.yaml` does not have.
  fileprivate func open(_ ids: Set<String>, _ configuration: ContainerConfiguration) throws -> Directory {
    for id in ids.sorted() { try makeGroup(id, of: "fixture", path: configuration.file) }
    var opened: [String: Directory] = [:]
    for (id, path) in groups where try work.status(path) != nil { opened[id] = try work.directory(path) }
    return try work.directory(root).showing(groups: opened)
  }

  private func makeGroup(_ id: String, of source: String, path: String?) throws {
    guard let group = groups[id] else {
      throw DrydockError(
        .badFixture,
        "the \(source) has the group \(ContainerPath.printable(Array(id.utf8))), and drydock.yaml does not; "
          + NearestWord.hint(for: id, among: groups.keys.sorted()), path: path)
    }
    try work.makeDirectories(group)
  }
}

extension FixtureSetup {
  fileprivate var places: [Place] { directories + attributes.map(\.place) + modes.map(\.place) }

  /// Runs a change of a path; what it throws names the line that wants it.
  fileprivate func positioned(_ place: Place, _ body: () throws -> Void) throws {
    do { try body() } catch let error as DrydockError {
      throw place.position.error(
        "`\(place.path)` cannot be set up: \(error.message)", code: error.code, cause: error)
    }
  }

  fileprivate func makeVault(in target: Directory, at path: ContainerPath, _ keys: DeviceKeys?) throws {
    guard let items = vault else { return }
    guard let keys else {
      throw DrydockError(
        .notBuilt, "the fixture has a vault, and no device key is given to seal it to", path: target.path)
    }
    guard try target.status(path) == nil else {
      throw DrydockError(
        .badFixture, "`vault` makes the file \(path), and the container has one already", path: target.path)
    }
    var vault = try Vault(new: keys)
    for item in items { vault.put(item.item) }
    try target.makeDirectories(path.parent)
    try target.create(path, vault.sealed(), mode: 0o600)
  }

  fileprivate func mark(_ target: Directory) throws {
    func mark(_ place: Place, _ body: () throws -> Void) throws {
      guard try target.status(place.path) != nil else {
        throw place.position.error("the container has no `\(place.path)`")
      }
      try positioned(place, body)
    }
    for (place, attribute) in attributes {
      try mark(place) { try target.setAttribute(attribute, of: place.path) }
    }
    for (place, mode) in modes { try mark(place) { try target.setMode(mode, of: place.path) } }
  }
}

/// Where a fixture's container and its groups are in a directory that nothing else is in.
///
/// `drydock.yaml` names groups by paths from the container's root, such as `../Shared/notes`: the container is nested
/// so deep that all of them stay inside of the directory, and the same `drydock.yaml` serves.
struct FixturePlace {
  let work: Directory
  let root: ContainerPath
  /// The groups' roots in it, by id.
  let groups: [String: ContainerPath]

  /// Makes the directory.
  ///
  /// - Parameter path: must not exist; its parent must.
  /// - Throws: `DrydockError` with code `notBuilt` when it exists, `badFixture` for a group at an absolute path.
  init(making path: String, _ configuration: ContainerConfiguration) throws {
    let names = try configuration.groups.sorted { $0.key < $1.key }.map { id, path in
      (id: id, names: try Self.names(id, path, configuration))
    }
    let depth = names.map { $0.names.count { $0.elementsEqual("..".utf8) } }.max() ?? 0
    let nest = (0..<max(0, depth - 1)).map { _ in Array("nest".utf8) } + [Array("container".utf8)]
    work = try Self.make(path)
    root = nest.reduce(.root) { $0.appending(name: $1) }
    var groups: [String: ContainerPath] = [:]
    for (id, names) in names {
      let path = names.reduce(root) { $1.elementsEqual("..".utf8) ? $0.parent : $0.appending(name: $1) }
      // In the container a link could lead out.
      guard path != root, !path.isInside(root), !root.isInside(path) else {
        throw DrydockError(
          .badFixture, "the roots of the group \(id) and of the container overlap; correct `groups:`",
          path: configuration.file)
      }
      groups[id] = path
    }
    self.groups = groups
    try work.makeDirectories(root.parent)
  }

  private static func make(_ path: String) throws -> Directory {
    let (parent, name) = try ContainerPath.split(path)
    let directory = try Directory(parent)
    guard try directory.status(name) == nil else {
      throw DrydockError(.notBuilt, "the path exists; name a new directory", path: path)
    }
    try directory.createDirectory(name)
    return try Directory(path)
  }

  /// The names in a group's path from the container's root; `..` among them.
  private static func names(
    _ id: String, _ path: String, _ configuration: ContainerConfiguration
  ) throws -> [[UInt8]] {
    guard !path.hasPrefix("/") else {
      throw DrydockError(
        .badFixture,
        "the group \(id) is at an absolute path, and a check of a fixture would change what is really there; write it "
          + "relative to the container's root (`../…`), or check with another drydock.yaml",
        path: configuration.file)
    }
    let names = path.utf8.split(separator: UInt8(ascii: "/")).map(Array.init)
      .filter { !$0.elementsEqual(".".utf8) }
    let up = Array("..".utf8)
    guard !names.drop(while: { $0 == up }).contains(up) else {
      throw DrydockError(
        .badFixture, "the group \(id) is at \(path), which is not plain: write `..` only at its beginning",
        path: configuration.file)
    }
    return names
  }
}

extension Directory {
  /// Makes directories as apps do, whatever this process's umask takes away.
  func makeDirectories(_ path: ContainerPath) throws {
    for path in (path.isRoot ? [] : [path] + path.ancestors.dropLast()).reversed()
    where try status(path)?.type != .directory {
      try createDirectory(path)
      try setMode(0o755, of: path)
    }
  }
}

extension FixturePlace {
  /// Makes the container of an archive, and its groups. What the restore itself noted beside them is removed: the
  /// container's log begins with what is checked.
  ///
  /// - Throws: `DrydockError` with code `badFixture` for an archive with a group that the configuration lacks; what
  ///   restoring it throws.
  func restore(
    _ archive: Archive, _ configuration: ContainerConfiguration, _ options: RestoreOptions
  ) throws -> Container {
    let header = archive.header
    for id in header.groups ?? [] { try makeGroup(id, of: "archive", path: archive.path) }
    let container = Container(
      planned: work.full(root), layout: configuration.layout ?? header.layout,
      app: configuration.app ?? header.app, instance: header.instance, configuration: configuration)
    _ = try Restore.run(archive, container, options.forCopy())
    for state in try StateDirectory.all(of: container) {
      guard let name = state.directory.path.split(separator: "/").last else { continue }
      try state.parent.removeTree(ContainerPath(String(name)))
    }
    return container
  }

  /// Removes the vault of an archive, which only its own device can open.
  fileprivate func removeVault(of container: Container, isReplaced: Bool, archive: String) throws {
    let root = try work.directory(root)
    guard try root.status(container.vaultPath) != nil else { return }
    guard isReplaced else {
      throw DrydockError(
        .badFixture,
        "the archive has a vault, which only its own device can open; say what is in it, with made-up values, in "
          + "fixture.yaml (`container: {vault: …}`)", path: archive)
    }
    try root.removeFile(container.vaultPath)
  }
}
