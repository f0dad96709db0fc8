import AppContainer

extension StagedContainer {
  /// What the stage changes. Rows are compared where the stage kept what a database was before (a dry run does).
  public func difference() throws -> ContainerDifference {
    var difference = ContainerDifference()
    for path in overlay.nodes.keys.sorted() {
      guard let node = overlay[path] else { continue }
      let before = try live.status(path)
      switch node {
      case .removed:
        if try origins.values.contains(path) || live.isSidecar(path) { continue }
        try addRemoval(of: path, before, to: &difference)
      case .directory:
        guard before?.type != .directory else { continue }
        difference.files.append(
          .init(path: path, movedFrom: origins[path], type: .directory, change: change(before)))
      case .inode(let inode):
        try addInode(inode, at: path, before, to: &difference)
      }
    }
    return difference
  }

  private func change(_ before: FileStatus?) -> ContainerDifference.Change {
    before == nil ? .added : .changed
  }

  private func addRemoval(
    of path: ContainerPath, _ before: FileStatus?, to difference: inout ContainerDifference
  ) throws {
    guard let before else { return }
    if container.isSettings(path), before.type == .file {
      difference.settings += try settings(path, old: liveSettings(path), new: [:])
    }
    if try live.databaseUnit(path, status: before) != nil {
      difference.databases.append(
        .init(path: path, movedFrom: nil, change: .removed, schema: [], tables: []))
    } else {
      difference.files.append(
        .init(path: path, movedFrom: nil, type: before.type, change: .removed, sizeBefore: before.size))
    }
  }

  private func addInode(
    _ inode: StagedInode, at path: ContainerPath, _ before: FileStatus?,
    to difference: inout ContainerDifference
  ) throws {
    // What is no settings file is compared as a whole.
    if container.isSettings(path), inode.type == .file, let new = try? defaults(path)?.root {
      difference.settings += try settings(
        path, old: before?.type == .file ? liveSettings(path) : [:], new: new)
      if before == nil {
        difference.files.append(
          .init(path: path, type: .file, change: .added, sizeAfter: try status(of: path)?.size))
      }
      return
    }
    if try isDatabase(path) {
      let compared = try befores[path].map {
        try DatabaseComparison(before: stage.full($0), after: stage.full(inode.name)).run()
      }
      difference.databases.append(
        .init(
          path: path, movedFrom: origins[path], change: change(before), schema: compared?.schema ?? [],
          tables: compared?.tables ?? []))
      return
    }
    difference.files.append(
      .init(
        path: path, movedFrom: origins[path], type: inode.type, change: change(before),
        sizeBefore: before?.size, sizeAfter: try status(of: path)?.size))
  }

  private func liveSettings(_ path: ContainerPath) throws -> [String: PropertyListValue] {
    // A settings file that is damaged is replaced as a whole: there are no keys to compare.
    (try? PropertyListFile(bytes: live.contents(path)).root) ?? [:]
  }

  private func settings(
    _ file: ContainerPath, old: [String: PropertyListValue], new: [String: PropertyListValue]
  ) throws -> [ContainerDifference.Setting] {
    Set(old.keys).union(new.keys).sorted().compactMap { key in
      let (before, after) = (old[key], new[key])
      if before == after { return nil }
      return .init(
        file: file, key: key, change: before == nil ? .added : after == nil ? .removed : .changed,
        before: before.map { Redaction.shown($0, key: key) },
        after: after.map { Redaction.shown($0, key: key) })
    }
  }
}
