import Foundation

/// How much of what can be tried without end is tried.
public enum TestExtent {
  /// Whether everything is, as `FULL_TESTS=1` asks for: every single move of a commit, more random moments, more files.
  /// Else it is a spread in which each kind still occurs.
  public static let isFull = ProcessInfo.processInfo.environment["FULL_TESTS"] == "1"
}
