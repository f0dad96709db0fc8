import FileSystem
import Storage
import TestSupport
import Testing

@testable import BackupRepository

enum PlaceKind: CaseIterable, Sendable {
  case directory, s3, sftp

  /// Where a new lab has its repository; see ``EveryPlace``.
  @TaskLocal static var current = PlaceKind.directory

  func make() throws -> TestSupport.RemotePlace {
    switch self {
    case .directory: throw SystemFailure("a directory has no server")
    case .s3: try RemoteServers.s3()
    case .sftp: try RemoteServers.sftp()
    }
  }

  func use(for lab: Lab) throws {
    if case .directory = self { return }
    try use(make(), for: lab)
  }

  func use(_ place: TestSupport.RemotePlace, for lab: Lab) throws {
    (lab.place, lab.repository) = (place, "\(place.url)/backups")
    Places.use(try Places.connect(lab.repository, place.options), for: lab.repository)
    try Repository(lab.repository).createIfNeeded()
  }
}

extension TestSupport.RemotePlace {
  /// With short pauses. A server that nothing disturbs may be slow beside other tests.
  var options: RemoteOptions {
    var options = RemoteOptions(variables: environment)
    (options.firstPause, options.noProgressLimit, options.attempts) = (0.01, isDisturbed ? 3 : 30, 40)
    return options
  }

  func store(_ folder: String = "") throws -> any Place {
    try Places.connect(folder.isEmpty ? url : "\(url)/\(folder)", options)
  }
}

extension Place {
  func files(_ folder: ContainerPath) throws -> [PlaceFile] {
    let listing = try list(folder)
    return try listing.names.compactMap { try listing.file(folder.appending(name: $0)) }
  }
}

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
