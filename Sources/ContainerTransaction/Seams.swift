import FileSystem
import Foundation
import Synchronization

/// The moments of a transaction at which tests interrupt it: one after every step that a crash could separate
/// from the next.
package enum FaultPoint: String, Sendable, CaseIterable {
  case staged, checked
  /// By exchange: the new tree is built. In place: the plan of all moves is written.
  case treeBuilt = "tree-built"
  case synced, rewalked, committed
  /// By exchange, where roots of groups change too: after each exchange but the last.
  case partlyExchanged = "partly-exchanged"
  /// By exchange only.
  case exchanged
  /// In place only: after each single move.
  case moved
  /// What was replaced is marked (each main file right after its exchange or move), and it is not known yet whether it is
  /// in use.
  case marked
  /// No process has any of it open.
  case foundUnused = "found-unused"
  /// A process had, and everything is reverted.
  case reverted
  /// In place only: all is moved, directories have their metadata, and it is on disk.
  case placed
  case merged
  case undoKept = "undo-kept"
  /// Where a secret was moved into the vault: after each kept file was sealed, and after its plain one was removed.
  case sealed
  case oldRemoved = "old-removed"
  case done
}

/// What only tests change of a transaction, a snapshot or a restore.
package struct Seams: Sendable {
  /// Whether to search for processes with open files. If false, none is found, as in another namespace.
  let searchesOpenFiles: Bool
  /// What happens at the fault points: nothing, outside of tests.
  let reach: @Sendable (FaultPoint) throws -> Void
  /// Whether names that differ only in case or Unicode form count as one, as on some file systems.
  package var foldsNames = false
  /// Seconds after which a path counts as unchanged when its status is.
  package var settling: Double = 60
  /// The boot session, and the time, for an archive's header.
  package var session = MachineIdentity.session, now: @Sendable () -> Date = { Date() }
  /// Called for each directory that a snapshot is about to list, and for each path that it has stored: moments to change
  /// something.
  package var lists: (@Sendable (ContainerPath) -> Void)?, stores: (@Sendable () -> Void)?

  package static let none = Seams { _ in }

  package init(searchesOpenFiles: Bool = true, _ reach: @escaping @Sendable (FaultPoint) throws -> Void) {
    (self.searchesOpenFiles, self.reach) = (searchesOpenFiles, reach)
  }

  /// The process dies, as in a power cut, when it reaches a point for the `count`th time.
  package static func kill(at point: FaultPoint, count: Int = 1) -> Seams {
    let reached = Atomic(0)
    return Seams {
      if $0 == point, reached.add(1, ordering: .relaxed).newValue == count { killOwnProcess() }
    }
  }
}
