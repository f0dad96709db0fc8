import DrydockErrors
import FileSystem
import SystemPackage

extension Directory {
  /// The database that a regular file is the main file of, or nil.
  ///
  /// It is one when it has SQLite's header, whatever its name, or a `-wal` or `-journal` with its magic beside
  /// it. A picture, a text or the like whose size is not a multiple of 512 (the smallest page) is not even opened, unless
  /// the configuration names it: most files of an app are such, and reading 8,000 of them would cost more than everything
  /// else a settings migration does.
  ///
  /// - Parameters:
  ///   - isNamed: whether the configuration names it, where the path says nothing of that.
  ///   - mayExist: whether a name is worth a look; one who has listed the directory knows, and saves three looks for
  ///     each of its files.
  package func databaseUnit(
    _ main: ContainerPath, status: FileStatus, isNamed: Bool? = nil,
    mayExist: (ContainerPath) -> Bool = { _ in true }
  ) throws -> DatabaseUnit? {
    guard status.type == .file else { return nil }
    let isCandidate = DatabaseFormat.sidecarSuffixes.contains { mayExist(main.withSuffix($0)) }
    let sidecars = isCandidate ? try DatabaseUnit(main: main).refreshed(in: self).sidecars : []
    let hasHeader =
      try DatabaseFormat.mayBeDatabase(
        size: status.size, name: isNamed ?? databases.contains(main) ? nil : main)
      && prefix(of: main, 16) == DatabaseFormat.headerMagic
    guard try hasHeader || sidecars.contains(where: isLogOrJournal) else { return nil }
    let external = DatabaseUnit.externalDataPath(of: main)
    let hasExternal = try self.status(external)?.type == .directory
    return DatabaseUnit(main: main, sidecars: sidecars, externalData: hasExternal ? external : nil)
  }

  private func isLogOrJournal(_ path: ContainerPath) throws -> Bool {
    let name = path.nameString
    if name.hasSuffix("-wal") { return try DatabaseFormat.walMagics.contains(prefix(of: path, 4)) }
    if name.hasSuffix("-journal") { return try prefix(of: path, 8) == DatabaseFormat.journalMagic }
    return false
  }

  /// The first bytes of a file, without closing a descriptor of one that this process has open.
  func prefix(of path: ContainerPath, _ count: Int) throws -> [UInt8] {
    if let status = try status(path), let bytes = try OpenHere.prefix(of: status, count) { return bytes }
    let file = try open(path, .readOnly, options: [.nonBlocking])
    defer { try? file.close() }
    var bytes = [UInt8](repeating: 0, count: count)
    do {
      let read = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
      return Array(bytes.prefix(read))
    } catch let error as Errno {
      throw DrydockError.system("cannot read", full(path), error)
    }
  }
}
