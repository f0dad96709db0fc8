import AppContainer
import ArchiveManifest
import ContainerTransaction
import FileSystem
import Foundation

/// When a container was captured, and so which paths are proved unchanged since by their status alone: a change of anything
/// about an inode sets its change time, and Drydock keeps a list of the files whose change time it has set by linking them. After
/// the end of the boot session nothing is proved.
struct CaptureTime {
  /// A path that was changed later than this (nanoseconds since 1970) could have been written to after the capture without
  /// another time: a clock ticks slowly, and a memory-mapped write sets none until it is written back.
  private let trustedUntil: Int64
  private let device: UInt64?
  private let committed: CommittedFiles

  /// - Parameters:
  ///   - header: of the archive that the capture made.
  ///   - root: the container's; paths on other file systems, and on one in memory, where a mapping's writes set no time, are
  ///     never trusted.
  ///   - committed: of the container.
  ///   - settling: seconds that must have passed between the last change of a path and the capture.
  init(_ header: Archive.Header, of root: Directory, _ committed: CommittedFiles, settling: Double) throws {
    self.committed = committed
    device = root.isInMemory() ? nil : try root.status().device
    guard let session = header.session, session == MachineIdentity.session else {
      trustedUntil = .min
      return
    }
    let captured = (try? Date(header.time, strategy: .iso8601))?.timeIntervalSince1970 ?? 0
    trustedUntil = Int64((captured - settling) * 1_000_000_000)
  }

  private init() { (trustedUntil, device, committed) = (.min, nil, .none) }

  /// Proves nothing unchanged.
  static let none = CaptureTime()

  /// Whether a path is as it was at the capture; of a database, only its main file.
  func isUnchanged(_ entry: ManifestEntry, _ status: FileStatus) -> Bool {
    guard entry.identity == status.identity, entry.metadata.modified == status.modified else { return false }
    // The entry's change time is the one that the capture saw.
    var seen = status
    if committed.explain(status, since: entry.changed) { seen.changed = entry.changed }
    return entry.changed == seen.changed && isOld(seen)
  }

  /// Whether what a scan found is as the snapshot has it, so that nothing of it need be read; of a file with several
  /// names, but for the other names.
  func isUnchanged(
    _ scanned: ScannedEntry, _ entry: ManifestEntry, in root: Directory, _ manifest: Manifest
  ) throws -> Bool {
    guard isUnchanged(entry, scanned.status) else { return false }
    switch (scanned.kind, entry.kind) {
    case (.directory, .directory), (.symbolicLink, .symbolicLink): return true
    case (.file, .file):
      return scanned.status.size == entry.size && (scanned.status.links > 1 || entry.hardLink == nil)
    case (.database, .database):
      return try isUnchangedDatabase(entry, scanned.status, in: root, manifest)
    default: return false
    }
  }

  /// Whether a database is as it was at the capture, with its log and journal.
  func isUnchangedDatabase(
    _ entry: ManifestEntry, _ status: FileStatus, in root: Directory, _ manifest: Manifest
  ) throws -> Bool {
    guard isUnchanged(entry, status), status.links == 1, entry.hardLink == nil,
      let state = try root.sidecarState(of: entry.path, isOld: isOld)
    else { return false }
    return try manifest.captureState(of: entry.path).sidecars == state
  }

  /// Whether a status is older than the capture by so much that it shows each later write.
  func isOld(_ status: FileStatus) -> Bool {
    max(status.changed, status.modified) < trustedUntil && status.device == device
  }
}
