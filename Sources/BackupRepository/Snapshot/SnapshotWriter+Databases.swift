import AppContainer
import FileSystem

extension SnapshotWriter {
  private static let copy: ContainerPath = "database"

  func storeDatabase(_ unit: DatabaseUnit, _ scanned: ScannedEntry) throws {
    guard let metadata = try metadata(of: scanned) else { return }
    var entry = entry(unit.main, .database, scanned.status, metadata)
    for attempt in 1...StableReader.largeAttempts {
      // Also what a capture left that ended in the middle.
      defer { try? scratch.removeDatabase(Self.copy) }
      let image = try root.capture(
        unit, into: scratch, as: Self.copy, busyTimeout: options.busyTimeout,
        held: options.locked?.databases[unit.main], certainly: attempt > 1)
      try expectSame(root.status(unit.main), scanned)
      switch image {
      case .inPlace(let pages):
        // The lock of an idle database lets an app in. When that wrote pages of its log into the main file meanwhile,
        // this is half of something.
        if try storePages(pages, &entry) { return try add(entry) }
      case .copy(let copy):
        if try storePages(DatabasePages(ofCopy: copy, in: scratch), &entry) { return try add(entry) }
      case .raw(let reason):
        raw[unit.main] = reason
        return try storeFile(scanned, kind: .rawDatabase)
      }
    }
    try skip(unit.main, .unstable)
  }

  /// A sidecar is stored only with a main file that SQLite could not open.
  func storeSidecar(_ scanned: ScannedEntry, of main: ContainerPath) throws {
    if raw[main] != nil { try storeFile(scanned, kind: .rawDatabase) }
  }

  private func storePages(_ pages: DatabasePages, _ entry: inout ManifestEntry) throws -> Bool {
    entry.size = pages.size
    let offset = try archive.beginMember(member(entry, .file(size: pages.size)))
    let (digest, isWhole) = try reader.stream(pages) { try archive.write($0) }
    _ = try archive.endMember(padding: true)
    if isWhole {
      (entry.digest, entry.offset) = (digest, offset)
      return true
    }
    try manifest.addSuperseded(entry.path, offset: offset, length: pages.size)
    return false
  }
}
