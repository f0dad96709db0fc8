import TestSupport
import Testing

/// Runs each test of a suite in a directory, and with `FULL_TESTS=1` at every other kind of place, too, one after the other: `Lab`
/// puts its repository there. Tests that are ``AtEachPlace`` always run at every kind. An issue says at which remote place it was
/// found.
struct EveryPlace: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    let isEach = TestExtent.isFull || test.traits.contains { $0 is AtEachPlace }
    for kind in isEach ? PlaceKind.allCases : [.directory] {
      let naming = IssueHandlingTrait.compactMapIssues { issue in
        var issue = issue
        if kind != .directory { issue.comments.append("at a place of the kind \(kind)") }
        return issue
      }
      try await PlaceKind.$current.withValue(kind) {
        try await naming.provideScope(for: test, testCase: testCase) {
          // The other places get their turn, too.
          do { try await function() } catch is ExpectationFailedError {} catch {
            Issue.record(error, sourceLocation: test.sourceLocation)
          }
        }
      }
    }
  }
}

/// Runs a test of such a suite in a directory of this machine only.
struct Local: TestTrait, TestScoping {
  let comments: [Comment]

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    if case .directory = PlaceKind.current { try await function() }
  }
}

/// Of a suite of ``EveryPlace``, a test that stands for what a command does at a remote place.
struct AtEachPlace: TestTrait {}

extension Trait where Self == EveryPlace {
  static var everyPlace: Self { EveryPlace() }
}

extension Trait where Self == AtEachPlace {
  static var atEachPlace: Self { AtEachPlace() }
}

extension Trait where Self == Local {
  /// For a test that only has a meaning in a directory.
  static func local(_ reason: Comment) -> Self { Local(comments: [reason]) }
}
