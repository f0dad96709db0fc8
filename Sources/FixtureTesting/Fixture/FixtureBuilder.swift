import AppContainer
import DrydockErrors
import FileSystem
import Formats

extension Fixture {
  /// Makes the fixture's container, with its groups.
  ///
  /// The container is in the directory at a depth at which the groups' paths of `drydock.yaml` stay in it; nothing outside
  /// is touched, by the container's migrations neither.
  ///
  /// - Parameters:
  ///   - work: The directory to make; it must not exist, its parent must.
  ///   - configuration: What `drydock.yaml` says: the vault's place, and the groups'.
  ///   - deviceKeys: To whom the vault is sealed; needed when it has one.
  /// - Throws: `DrydockError`, `DrydockError`, `DrydockError` or `DrydockError`; what was made until then stays.
  package func build(
    in work: String, configuration: Configuration = Configuration(), deviceKeys: DeviceKeys? = nil
  ) throws -> Container {
    let place = try FixturePlace(making: work, configuration)
    let fixture = try Directory(directory)
    switch source {
    case .archive:
      try FixtureArchive(path: fixture.full(FixtureSource.archiveFile)).restore(
        to: place, configuration, replacesVault: setup.vault != nil)
    case .files, .nothing: try place.work.makeDirectories(place.root)
    }
    let target = try place.open(try groups(in: fixture), configuration)
    if case .files = source {
      try FixtureFiles(fixture, setup).copy(to: target)
    } else if let place = (setup.verbatim + setup.onlyInWAL).first {
      throw place.position.error("the fixture has no file that this could be about: it has no `container/`")
    }
    for directory in setup.directories {
      try setup.telling(directory) { try target.makeDirectories(directory.path) }
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
  /// - Throws: `DrydockError` with code `malformed` for a group that `drydock.yaml` does not have.
  fileprivate func open(_ ids: Set<String>, _ configuration: Configuration) throws -> Directory {
    for id in ids.sorted() {
      guard let path = groups[id] else {
        throw DrydockError(
          .badFixture,
          "the fixture has the group \(id), and drydock.yaml does not; "
            + NearestWord.hint(for: id, among: groups.keys.sorted()), path: configuration.file)
      }
      try work.makeDirectories(path)
    }
    var opened: [String: Directory] = [:]
    for (id, path) in groups where try work.status(path) != nil { opened[id] = try work.directory(path) }
    return try work.directory(root).showing(groups: opened)
  }
}

extension FixtureSetup {
  /// Every path that it names.
  fileprivate var places: [Place] { directories + marks.map(\.place) }

  /// Runs a change of a path; what it throws names the line that wants it.
  fileprivate func telling(_ place: Place, _ body: () throws -> Void) throws {
    do { try body() } catch let error as DrydockError {
      throw place.position.error(
        "`\(place.path)` cannot be made so: \(error.message)", code: error.code, cause: error)
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
    for mark in marks {
      let path = mark.place.path
      guard try target.status(path) != nil else {
        throw mark.place.position.error("the container has no `\(path)`")
      }
      try telling(mark.place) {
        switch mark.kind {
        case .attribute(let attribute): try target.setAttribute(attribute, of: path)
        case .mode(let mode): try target.setMode(mode, of: path)
        }
      }
    }
  }
}
