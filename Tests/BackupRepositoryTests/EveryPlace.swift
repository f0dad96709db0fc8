import Testing

/// Runs each test of a suite at every kind of place, one after the other: `Lab` puts its repository there. An issue says at
/// which remote place it was found.
struct EveryPlace: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    for kind in PlaceKind.allCases {
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

extension Trait where Self == EveryPlace {
  static var everyPlace: Self { EveryPlace() }
}

extension Trait where Self == Local {
  /// For a test that only has a meaning in a directory.
  static func local(_ reason: Comment) -> Self { Local(comments: [reason]) }
}
