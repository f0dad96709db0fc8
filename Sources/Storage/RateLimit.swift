import Foundation
import Synchronization

/// The bytes per second that all transfers of a store share.
///
/// It is taken where bytes come and go, not around a place as a cache is: one call there moves megabytes, which would
/// pass at full speed before a pause, and listings and further attempts would not count.
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
