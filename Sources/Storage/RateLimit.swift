import Foundation
import Synchronization

/// The bytes per second that all transfers of a store share.
final class RateLimit: Sendable {
  let bytesPerSecond: Double
  /// Until when the bytes that were already taken last, in seconds of the system's uptime.
  private let busyUntil = Mutex(0.0)

  init(bytesPerSecond: UInt64) {
    self.bytesPerSecond = Double(max(bytesPerSecond, 1))
  }

  /// The largest piece to move at once, so that a transfer never sleeps for long.
  var piece: Int { min(max(Int(bytesPerSecond / 8), 1024), 512 << 10) }

  /// Waits until these bytes are within the limit.
  func take(_ count: Int) {
    let now = ProcessInfo.processInfo.systemUptime
    let pause = busyUntil.withLock { until in
      // What was not used is not saved up.
      until = max(until, now) + Double(count) / bytesPerSecond
      return until - now
    }
    if pause > 0 { Thread.sleep(forTimeInterval: pause) }
  }
}
