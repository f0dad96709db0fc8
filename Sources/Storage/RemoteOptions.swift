import DrydockErrors
import Foundation

/// How a remote place is reached. The credentials come from the environment only.
package struct RemoteOptions: Sendable {
  /// The environment variables that places on servers read: credentials, endpoint, keys.
  package var variables: [String: String]
  /// Bytes per second, for all transfers of the store together, in both directions; nil for no limit.
  package var rateLimit: UInt64?
  /// How often one request is sent before it fails, at least 1. A transfer that moved data is tried anew as often.
  package var attempts = 10
  /// Seconds from a request's first attempt, or from its last progress, after which it is not sent again.
  package var deadline = 300.0
  /// Seconds before the second attempt; it doubles with each further one, up to 20 seconds.
  package var firstPause = 0.5
  /// Seconds without a single byte after which a connection counts as broken.
  package var noProgressLimit = 30.0
  /// How many parts of one upload are sent at the same time.
  package var parallelTransfers = 4

  package init(
    variables: [String: String] = ProcessInfo.processInfo.environment, rateLimit: UInt64? = nil
  ) {
    (self.variables, self.rateLimit) = (variables, rateLimit)
  }

  /// A variable's value; an empty one counts as absent.
  func variable(_ name: String) -> String? {
    variables[name].flatMap { $0.isEmpty ? nil : $0 }
  }
}
