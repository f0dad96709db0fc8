import AppContainer
import BackupRepository
import ContainerTransaction
import DeviceBackups
import DrydockErrors
import FileSystem

/// Makes a container, or an archive of one, of an app's data in a backup of a device.
package struct ContainerImport {
  private let app: any ImportedApp
  private let configuration: ContainerConfiguration
  private let instance: String

  /// - Parameter instance: the name of the instance; by default the backup's.
  package init(_ app: any ImportedApp, configuration: ContainerConfiguration, instance: String?) {
    self.app = app
    var own = configuration
    // The configuration is of the place where the command runs; the app and its groups are the backup's.
    (own.app, own.layout, own.groups) = (app.app, app.layout, [:])
    self.configuration = own
    let name = app.source.split(separator: "/").last.map(String.init) ?? "backup"
    self.instance = instance ?? (name.hasSuffix(".ab") ? String(name.dropLast(3)) : name)
  }

  /// Where the groups of a container are, beside it or its bundle: each in a directory named by its id.
  package static func groupsDirectory(of anchor: String) -> String { anchor + ".groups" }

  /// Creates a container at a path where nothing is yet, or an empty directory, with the groups beside it; one transaction.
  ///
  /// - Throws: ``DrydockError``: `exists` for a container with data; `damaged`, `unsafeName`, `noSpace`. Nothing is left then.
  package func create(
    at path: String, options: TransactionOptions
  ) throws -> (outcome: TransactionOutcome<ImportReport>, container: Container) {
    let planned = try Container.planned(at: path, configuration: configuration, instance: instance)
    let anchor = try planned?.anchor ?? Container(at: path, configuration: configuration).anchor
    try requireOutside(anchor)
    let places = try GroupPlaces(app.groups, beside: anchor)
    do {
      var own = configuration
      own.groups = places.roots
      let container =
        try planned == nil
        ? Container(at: path, configuration: own, instance: instance)
          .assuming(layout: app.layout, app: app.app, instance: instance)
        : Container.planned(at: path, configuration: own, instance: instance)
      guard let container else {
        throw DrydockError(.changedMeanwhile, "something was created here; nothing was imported", path: path)
      }
      return (try stage(container, options), container)
    } catch {
      places.removeEmpty()
      throw error
    }
  }

  /// A backup is never changed, and so nothing is written into its directory.
  private func requireOutside(_ path: String) throws {
    var trimmed = Substring(path)
    while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
    let parent = trimmed.lastIndex(of: "/").map { $0 == trimmed.startIndex ? "/" : trimmed[..<$0] } ?? "."
    let above = realPath(String(trimmed)) ?? realPath(String(parent))
    guard let source = realPath(app.source), let above, above == source || above.hasPrefix(source + "/")
    else {
      return
    }
    throw DrydockError(.overlap, "is in the backup, which is not changed; name another place", path: path)
  }

  private func stage(
    _ container: Container, _ options: TransactionOptions
  ) throws -> TransactionOutcome<ImportReport> {
    let summary = "imported \(app.app) from \(app.source)"
    let change = { (staged: StagedContainer) throws -> ImportReport in
      for root in [ContainerPath.root] + container.groups.map(\.path) {
        guard try staged.children(of: root).allSatisfy({ $0 == .groups }) else {
          throw DrydockError(
            .exists, "has data already; import into a path where nothing is, or an empty directory",
            path: root.isRoot ? container.root : container.groups.first { $0.path == root }?.root)
        }
      }
      // The backup's databases come as they were, damaged ones too.
      staged.checksResult = false
      return try app.stage(into: staged)
    }
    return container.isPlanned
      ? try Transaction.create(container, .restore, summary: summary, options: options, body: change)
      : try Transaction.run(on: container, .restore, summary: summary, options: options, body: change)
  }

  /// Takes a snapshot of the imported container into a repository or a file. The container is in a private directory,
  /// which is removed afterwards.
  package func snapshot(
    into repository: Repository?, orTo file: String, options: SnapshotOptions, transaction: TransactionOptions
  ) throws -> (report: ImportReport, snapshot: SnapshotReport) {
    if repository?.isRemote != true { try requireOutside(repository?.path ?? file) }
    try repository?.createIfNeeded()
    let scratch = try ScratchDirectory.temporary()
    let root = scratch.directory.full("container")
    do {
      let places = try GroupPlaces(app.groups, beside: root)
      var own = configuration
      own.groups = places.roots
      guard var planned = try Container.planned(at: root, configuration: own, instance: instance) else {
        throw DrydockError(.exists, "exists already", path: root)
      }
      planned.isScratch = true
      let report = try stage(planned, transaction).value
      let container = try Container(at: root, configuration: own, instance: instance)
      let snapshot =
        if let repository { try container.snapshot(into: repository, options: options) } else {
          try container.snapshot(to: file, options: options)
        }
      return (report, snapshot)
    } catch var error as DrydockError {
      // The private directory's path says nothing to the user.
      if let path = error.path, path.hasPrefix(scratch.directory.path) { error.path = app.source }
      if error.code == .noSpace {
        error.message += "; it is imported below TMPDIR first: set it to a directory with more space"
      }
      throw error
    }
  }
}

/// The directories of groups, made empty before the transaction that fills them together with the container.
private struct GroupPlaces {
  /// Their paths by id.
  let roots: [String: String]
  private let parent: String
  /// What this made.
  private var made: [String] = []
  private var madeParent = false

  init(_ groups: [String], beside root: String) throws {
    parent = ContainerImport.groupsDirectory(of: root)
    roots = Dictionary(uniqueKeysWithValues: groups.map { [parent] in ($0, parent + "/" + $0) })
    guard !groups.isEmpty else { return }
    for path in [parent] + roots.values.sorted() {
      guard let real = realPath(path), real != path else { continue }
      throw DrydockError(
        .exists, "is a symbolic link, but groups are imported into directories; remove it", path: path)
    }
    do {
      madeParent = FollowedStatus.identity(parent) == nil
      // As the container itself: open to its user only.
      if madeParent { try Self.above(parent).createDirectory(Self.name(of: parent)) }
      let directory = try Directory(parent)
      for group in groups where try directory.status(ContainerPath(group)) == nil {
        try directory.createDirectory(ContainerPath(group))
        made.append(group)
      }
    } catch {
      removeEmpty()
      throw error
    }
  }

  /// Removes what was made and is still empty, after a failure.
  func removeEmpty() {
    guard let directory = try? Directory(parent) else { return }
    for group in made { try? directory.removeDirectory(ContainerPath(group)) }
    if madeParent { try? Self.above(parent).removeDirectory(Self.name(of: parent)) }
  }

  private static func above(_ path: String) throws -> Directory {
    try Directory(path.split(separator: "/").dropLast().reduce("/") { $0 + $1 + "/" })
  }

  private static func name(of path: String) throws -> ContainerPath {
    try ContainerPath(String(path.split(separator: "/").last ?? ""))
  }
}
