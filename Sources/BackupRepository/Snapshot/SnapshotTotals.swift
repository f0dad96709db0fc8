import AppContainer
import Dispatch
import FileSystem
import Foundation
import Synchronization

/// Counts what a snapshot will store, for whoever watches its progress: on a second thread, as the snapshot itself learns it
/// only at its end, and only once it has taken a second.
final class SnapshotTotals: Sendable {
  private let isOver = Atomic(false)
  private let end = DispatchSemaphore(value: 0)

  init(_ progress: WorkProgress, _ container: Container, _ root: Directory, includesExcluded: Bool) {
    let thread = Thread { [self] in
      guard end.wait(timeout: .now() + 1) == .timedOut,
        let (bytes, files) = try? count(container, root, includesExcluded)
      else { return }
      progress.expect(.snapshot, totalBytes: bytes, totalFiles: files)
    }
    thread.start()
  }

  func stop() {
    isOver.store(true, ordering: .relaxed)
    end.signal()
  }

  /// Bytes and paths, as far as a scan shows them; nil if it was stopped.
  private func count(
    _ container: Container, _ root: Directory, _ includesExcluded: Bool
  ) throws -> (UInt64, Int)? {
    var (bytes, files) = (UInt64(0), 1)
    var linked: Set<FileIdentity> = []
    var scan = ContainerScan(root, rules: ExclusionRules(container), entersExcluded: includesExcluded)
    while let entry = try scan.nextEntry() {
      if isOver.load(ordering: .relaxed) { return nil }
      if let exclusion = entry.exclusion, exclusion.rule == .state || !includesExcluded { continue }
      switch entry.kind {
      case .file, .database:
        files += 1
        if entry.status.links < 2 || linked.insert(entry.status.identity).inserted {
          bytes &+= entry.status.size
        }
      case .directory, .symbolicLink: files += 1
      // Not stored, or with its database.
      case .sidecar, .mount, .special: break
      }
    }
    return (bytes, files)
  }
}
