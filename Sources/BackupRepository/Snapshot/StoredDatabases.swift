import AppContainer
import AppStores
import ArchiveManifest
import Cryptography
import FileSystem

/// Databases in a snapshot: each is captured, and stored as one consistent file, or with its sidecars as it is.
extension SnapshotWriter {
  private static let databaseCopy: ContainerPath = "database"

  func storeDatabase(_ unit: DatabaseUnit, _ scanned: ScannedEntry) throws {
    if container.configuration.opaque.contains(unit.main) {
      // A transaction's lock holds it already.
      let isHeld = lock.databases[unit.main] != nil
      let hold = try isHeld ? nil : root.hold(unit, busyTimeout: options.busyTimeout)
      opaque.updateValue(hold, forKey: unit.main)
      return try storeFile(scanned, kind: .rawDatabase)
    }
    var entry = entry(unit.main, .database, scanned.status, try metadata(of: scanned))
    let state = try root.sidecarState(of: unit.main)
    for attempt in 1...StableReader.largeAttempts {
      // Also what an interrupted capture left.
      defer { try? draft.work.removeDatabase(Self.databaseCopy) }
      let image = try root.capture(
        unit, into: draft.work, as: Self.databaseCopy, busyTimeout: options.busyTimeout,
        held: lock.databases[unit.main], requiresStable: attempt > 1)
      try expectSame(root.status(unit.main), scanned)
      switch image {
      case .inPlace(let pages):
        // The lock does not keep an app out of an idle database. If the app has checkpointed since, the image is
        // inconsistent.
        let behind = try pages.bytesBehind()
        if try storePages(pages, &entry) { return try addDatabase(entry, state, pages.logPosition(), behind) }
      case .copy(let copy, let behind):
        if try storePages(DatabasePages(ofCopy: copy, in: draft.work), &entry) {
          return try addDatabase(entry, state, nil, behind)
        }
      case .raw(let reason):
        report.raw[unit.main] = reason
        return try storeFile(scanned, kind: .rawDatabase)
      }
    }
    skip(unit.main, .unstable)
  }

  /// Adds a database, with the state of its sidecars if that was the same before and after the capture.
  private func addDatabase(
    _ entry: ManifestEntry, _ sidecars: SHA256.Digest?, _ log: LogPosition?, _ bytesBehind: UInt64
  ) throws {
    if bytesBehind > 0 { report.behind[entry.path] = bytesBehind }
    let isSettled =
      try root.sidecarState(of: entry.path) == sidecars
      && root.status(entry.path)?.changed == entry.changed
    try add(entry, capture: DatabaseCaptureState(sidecars: isSettled ? sidecars : nil, log: log))
  }

  private func storePages(_ pages: DatabasePages, _ entry: inout ManifestEntry) throws -> Bool {
    entry.size = pages.size
    var hasSameMain = false
    if let earlier, let status = try root.status(entry.path) {
      hasSameMain = capture.isUnchanged(earlier, status)
    }
    return try contents.store(
      .database(pages), of: &entry, since: earlier, hasSameMain: hasSameMain)
  }
}

extension Directory {
  /// What identifies the state of a database's log and journal: their inodes, sizes and times. Nil when one of them is
  /// too young to be sure.
  func sidecarState(
    of main: ContainerPath, isOld: (FileStatus) -> Bool = { _ in true }
  ) throws -> SHA256.Digest? {
    var text = ""
    for suffix in ["-journal", "-wal"] {
      guard let status = try status(main.withSuffix(suffix)) else { continue }
      guard isOld(status) else { return nil }
      text +=
        "\(suffix) \(status.device) \(status.inode) \(status.size) \(status.modified) \(status.changed)\n"
    }
    return try SHA256.hash(Array(text.utf8))
  }
}
