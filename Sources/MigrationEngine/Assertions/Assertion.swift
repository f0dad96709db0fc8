import AppContainer
import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import Formats

/// What an assertion looks at, and what it expects there.
protocol AssertionBody: Sendable {
  /// Where it compares with the state before the migration; nil when it does not.
  var before: YAMLPosition? { get }
  /// Whether it opens the vault, for which the device key is needed.
  var needsVault: Bool { get }
  /// Its query, which `validate` examines; nil of other assertions.
  var sql: SQLAssertion? { get }
  /// Whether something must exist, so that an empty container does not pass.
  var demandsSomething: Bool { get }
  /// - Parameter isBefore: whether this is the state before the migration that it will be compared with.
  func observe(_ stage: StagedContainer, isBefore: Bool) throws -> Observation
  /// - Parameters:
  ///   - before: the observation before the migration; nil in `check:`.
  ///   - redactor: hides secrets in the verdict.
  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict
}

extension AssertionBody {
  var before: YAMLPosition? { nil }
  var needsVault: Bool { false }
  var sql: SQLAssertion? { nil }
}

/// One thing that must be true of a container: a line of `check:` or `verify:` in a migration, or a part of `expect:` in a
/// fixture.
package struct Assertion: Sendable {
  package let position: YAMLPosition
  let body: any AssertionBody

  init(_ body: any AssertionBody, at position: YAMLPosition) { (self.body, self.position) = (body, position) }

  /// Decodes a line of a migration.
  ///
  /// - Parameter files: those that it may name; none in Swift.
  init(
    _ name: String, position: YAMLPosition, arguments: YAMLNode,
    files: MigrationFiles = MigrationFiles(directory: "", isDirectory: false)
  ) throws {
    func reader(_ keys: [String]) throws -> YAMLReader { try YAMLReader(arguments, what: name, keys: keys) }
    self.position = position
    switch name {
    case "sql": body = try SQLAssertion(reader(SQLAssertion.keys))
    case "defaults": body = try DefaultsAssertion(reader(DefaultsAssertion.keys))
    case "files": body = try FilesAssertion(reader(FilesAssertion.keys))
    case "vault": body = try VaultAssertion(reader(VaultAssertion.keys))
    case "room": body = try RoomAssertion(arguments, files)
    default:
      throw position.error(
        "unknown check `\(name)`; "
          + NearestWord.hint(for: name, among: ["sql", "defaults", "files", "vault", "room"]))
    }
  }

  package var before: YAMLPosition? { body.before }
  package var demandsSomething: Bool { body.demandsSomething }

  /// What is wrong with it in `check:`.
  var problemAsCheck: DrydockError? {
    before?.error("`check` runs before the migration: `before` has nothing to compare with; use `verify`")
  }
}

extension Assertion {
  /// What it compares with, in a container that is not migrated yet.
  ///
  /// - Returns: nil when it does not compare with that, or cannot; then with the reason.
  package func stateBefore(_ stage: StagedContainer) throws -> (
    before: Observation?, failures: [AssertionFailure]
  ) {
    guard before != nil else { return (nil, []) }
    do {
      let observation = try body.observe(stage, isBefore: true)
      if case .noDatabase(_, let place) = observation {
        return (nil, [AssertionFailure(place, "the database is absent before migrating")])
      }
      return (observation, [])
    } catch let failure as AssertionFailure {
      return (nil, [failure])
    }
  }

  /// What is not as asserted in a container.
  ///
  /// - Throws: what cannot be looked at at all, such as a suite that `drydock.yaml` does not have.
  package func failures(in stage: StagedContainer, before: Observation?) throws -> [AssertionFailure] {
    do {
      let now = try body.observe(stage, isBefore: false)
      if case .noDatabase(_, let place) = now { return [AssertionFailure(place, "the database is absent")] }
      guard case .failed(let failures) = body.judge(now, before: before, stage.redactor)
      else { return [] }
      return failures
    } catch let failure as AssertionFailure {
      return [failure]
    } catch let failure as StepFailure {
      throw position.error(failure.message)
    }
  }
}

package struct AssertionFailure: Error, Sendable, Equatable {
  /// Where in the container; secrets are hidden.
  package var place: String
  /// What is wrong, without the place, and the values; nil where the message says it all.
  package var message: String, expected: String?, found: String?
  /// Where it is asserted, when that is not the assertion's own line.
  package var position: YAMLPosition?
  /// All of it in a sentence, as a migration says it.
  var sentence: String

  init(
    _ place: String, _ message: String, expected: String? = nil, found: String? = nil,
    at position: YAMLPosition? = nil, sentence: String? = nil
  ) {
    (self.place, self.message, self.expected, self.found) = (place, message, expected, found)
    (self.position, self.sentence) = (position, sentence ?? "\(place): \(message)")
  }

  package static func == (left: Self, right: Self) -> Bool {
    (left.place, left.message, left.expected, left.found) == (
      right.place, right.message, right.expected, right.found
    )
  }
}

/// What an assertion saw in a container.
package enum Observation: Equatable, Sendable {
  /// The database is not in the container; its name, and where it would be.
  case noDatabase(String, place: String = "")
  /// A query's rows, the names of their columns, and where the database is.
  case rows([[PropertyListValue?]], columns: [String], place: String = "")
  /// A setting, nil when it is absent, and its file.
  case setting(PropertyListValue?, file: String)
  /// The paths that match; for each the text in it, where that is asked for.
  case paths([String], texts: [String?])
  /// Vault items, and where the vault is.
  case items([VaultItem], place: String)
  /// Whether a path has Apple's flag, and its protection; nil when it is absent.
  case marks(Marks?)
  /// What Room would refuse of a database, and its version.
  case room([SchemaDrift], version: Int)

  /// The values of settings and columns in it.
  var values: [PropertyListValue] {
    switch self {
    case .rows(let rows, _, _): rows.flatMap { $0.compactMap { $0 } }
    case .setting(let value, _): [value].compactMap { $0 }
    case .noDatabase, .paths, .items, .marks, .room: []
    }
  }

  package struct Marks: Equatable, Sendable {
    var isExcluded: Bool
    var protection: ProtectionClass?
  }
}

enum Verdict: Equatable, Sendable {
  case passed
  /// It could not run, neither before nor after: a note, not a failure.
  case notRun(String)
  case failed([AssertionFailure])

  static func failed(_ sentence: String) -> Verdict {
    .failed([AssertionFailure("", sentence, sentence: sentence)])
  }
}

extension YAMLNode {
  /// Whether this is the plain word `before`; in quotes it is the text.
  package var meansBefore: Bool { scalar.map { $0.isPlain && $0.source == "before" } ?? false }
}
