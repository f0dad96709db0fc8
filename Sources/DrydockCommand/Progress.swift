import Foundation
import Synchronization

/// A line on a terminal that tells how far a long command is; nothing elsewhere.
final class Progress: Sendable {
  private let isShown: Bool
  private let last = Mutex(Date.distantPast)

  init(isShown: Bool) {
    self.isShown = isShown && isatty(STDERR_FILENO) == 1
  }

  func show(_ bytes: UInt64) {
    guard isShown else { return }
    let isDue = last.withLock { last in
      let now = Date()
      guard now.timeIntervalSince(last) > 0.1 else { return false }
      last = now
      return true
    }
    if isDue { StandardStreams.note("\r\u{1B}[K\(Output.size(bytes)) stored …") }
  }

  func end() {
    if isShown { StandardStreams.note("\r\u{1B}[K") }
  }
}
