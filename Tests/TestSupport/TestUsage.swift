import Foundation
import Synchronization
import Testing

/// What a test costs beyond what the test runner reports: processor time of its thread while it has a temporary directory, and of
/// each program that it runs. Lines of a table, in the file that `TEST_USAGE` names; `Scripts/timing` reads them.
struct TestUsage {
  private let thread: UInt
  private let processor: Double
  private let clock: Double

  /// -1 if nothing is recorded.
  private static let file: Int32 = {
    guard let path = ProcessInfo.processInfo.environment["TEST_USAGE"] else { return -1 }
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
  }()
  private static let measured = Mutex<Set<UInt>>([])

  /// Starts to measure; nil if nothing is recorded, or this thread is measured already.
  static func start() -> TestUsage? {
    let thread = currentThread
    guard file >= 0, measured.withLock({ $0.insert(thread).inserted }) else { return nil }
    return TestUsage(
      thread: thread, processor: seconds(CLOCK_THREAD_CPUTIME_ID), clock: seconds(CLOCK_MONOTONIC))
  }

  /// Records the time since the start.
  func end() {
    Self.measured.withLock { _ = $0.remove(thread) }
    Self.record(
      "thread",
      processor: Self.currentThread == thread ? Self.seconds(CLOCK_THREAD_CPUTIME_ID) - processor : 0,
      clock: Self.seconds(CLOCK_MONOTONIC) - clock)
  }

  /// Records a program that has ended.
  static func record(program usage: rusage) {
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    record("program", processor: seconds(usage.ru_utime) + seconds(usage.ru_stime), clock: 0)
  }

  private static func record(_ kind: String, processor: Double, clock: Double) {
    guard file >= 0, let test = Test.current else { return }
    let line = "\(kind)\t\(String(format: "%.4f\t%.4f", processor, clock))\t\(test.id)\n"
    _ = line.withCString { write(file, $0, strlen($0)) }
  }

  private static var currentThread: UInt {
    #if canImport(Darwin)
      UInt(bitPattern: pthread_self())
    #else
      pthread_self()
    #endif
  }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
