import Foundation

/// The processor time that a body takes on its thread. Time by the clock says little: tests run side by side, and a disk
/// that is busy with another test's files can stop any of them for a second.
public func processorTime(_ body: () throws -> Void) rethrows -> Duration {
  func now() -> Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(Int(time.tv_sec)) + .nanoseconds(Int(time.tv_nsec))
  }
  let start = now()
  try body()
  return now() - start
}
