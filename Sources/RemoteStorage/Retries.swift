import DrydockErrors
import Foundation

/// One request of a store, for messages: what it does, to which file.
struct RequestLabel {
  /// What is not possible, as `cannot be read`.
  var failure: String
  /// The method, as `GET` or `rename`.
  var method: String
  /// The URL of the file or place.
  var url: String
}

/// Sends a request again while it fails for a time.
struct Retries: Sendable {
  var attempts: Int
  var deadline: Double
  var firstPause: Double
  private let longestPause = 20.0
  /// A server that asks for more patience than this is given up.
  private let longestRetryAfter = 120.0

  init(_ options: RemoteOptions) {
    attempts = max(options.attempts, 1)
    deadline = options.deadline
    firstPause = options.firstPause
  }

  /// What an attempt knows of those before it, and says of itself.
  struct Attempt {
    /// From 1.
    fileprivate(set) var number = 1
    fileprivate var hasProgress = false

    /// Data arrived: the next attempt counts as the first.
    mutating func progressed() { hasProgress = true }
  }

  /// Runs a body until it succeeds, fails for good, or the attempts or the time are used up.
  ///
  /// - Throws: `DrydockError`; errors of the body other than `RemoteFailure` as they are.
  func run<Value>(_ label: RequestLabel, _ body: (inout Attempt) throws -> Value) throws -> Value {
    let start = ProcessInfo.processInfo.systemUptime
    var lastProgress = start
    var attempt = Attempt()
    var tried = 0
    while true {
      do {
        tried += 1
        return try body(&attempt)
      } catch let failure as RemoteFailure {
        let now = ProcessInfo.processInfo.systemUptime
        if attempt.hasProgress { (attempt.number, attempt.hasProgress, lastProgress) = (1, false, now) }
        let pause = pause(after: attempt.number, failure.retryAfter)
        guard failure.isTransient, attempt.number < min(attempts, failure.attemptLimit ?? .max),
          now + pause - lastProgress <= deadline,
          (failure.retryAfter ?? 0) <= longestRetryAfter
        else { throw failure.error(label, attempts: tried, seconds: now - start) }
        attempt.number += 1
        Thread.sleep(forTimeInterval: pause)
      }
    }
  }

  private func pause(after attempt: Int, _ retryAfter: Double?) -> Double {
    let doubled = firstPause * Double(1 << min(attempt - 1, 16))
    // Clients that failed together do not come back together.
    return max(min(doubled, longestPause) * Double.random(in: 0.5...1), retryAfter ?? 0)
  }
}
