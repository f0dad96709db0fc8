import AppContainer
import DrydockErrors
import FileSystem

/// The part of a container that a restore acts, and mirrors, inside of: some paths, some stores, or both.
struct RestoreScope {
  /// None means all.
  private let tops: [ContainerPath]
  private let stores: Set<ContainerStore>
  private let recorded: RecordedPaths
  private let live: LiveContainer
  private let container: Container

  /// - Throws: ``DrydockError`` with code `missing` for a path that the archive does not have.
  init(
    _ options: RestoreOptions, _ recorded: RecordedPaths, _ live: LiveContainer, _ container: Container
  ) throws {
    var tops = options.scope
    for path in options.scope {
      switch recorded.kinds[path] {
      case nil:  // rule 7
        throw DrydockError(
          .notInArchive, "the archive does not have it; `drydock show` lists what it has",
          path: path.description)
      // Rule 1: a database goes with its sidecars and external data.
      case .database?, .rawDatabase?:
        tops.append(DatabaseUnit.externalDataPath(of: path))
        tops += DatabaseFormat.sidecarSuffixes.map(path.withSuffix)
      default: break
      }
    }
    (self.tops, stores, self.recorded, self.live, self.container) = (
      tops, options.stores, recorded, live, container
    )
  }

  func contains(_ path: ContainerPath) -> Bool { isInTops(path) && isInStores(path) }

  private func isInTops(_ path: ContainerPath) -> Bool {
    tops.isEmpty || tops.contains { path == $0 || path.isInside($0) }
  }

  private func isInStores(_ path: ContainerPath) -> Bool {
    stores.isEmpty || stores.contains(store(of: path))
  }

  /// What the archive says a path is counts; of what the archive does not have, what it is now.
  private func store(of path: ContainerPath) -> ContainerStore {
    if path == container.vaultPath { return .vault }
    if isDatabase(path) || DatabaseUnit.main(ofSidecar: path).map(isDatabase) ?? false
      || isExternalData(path) || path.ancestors.contains(where: isExternalData)
    {
      return .databases
    }
    let isFile = recorded.kinds[path].map { $0 == .file } ?? (live.paths[path]?.kind == .file)
    return isFile && container.isSettings(path) ? .defaults : .files
  }

  private func isDatabase(_ path: ContainerPath) -> Bool {
    if let kind = recorded.kinds[path] { return kind == .database || kind == .rawDatabase }
    return live.paths[path].map { $0.isDatabase || $0.isSidecar } ?? false
  }

  /// Whether a path is the folder of external data of a database, `.<name>_SUPPORT`.
  private func isExternalData(_ path: ContainerPath) -> Bool {
    let name = path.nameString
    guard name.hasPrefix("."), name.hasSuffix("_SUPPORT") else { return false }
    return recorded.externalData.contains(path) || live.externalData.contains(path)
  }
}
