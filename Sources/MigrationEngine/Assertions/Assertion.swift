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
  /// What it compares with, in the state before the migration; nil when it does not.
  func observe(_ stage: StagedContainer) throws -> Observation?
  /// - Parameter before: the observation before the migration; nil in `check:`.
  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict
}

extension AssertionBody {
  var before: YAMLPosition? { nil }
  var needsVault: Bool { false }
  var sql: SQLAssertion? { nil }
  func observe(_ stage: StagedContainer) throws -> Observation? { nil }
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

  /// What it compares with, in a container that is not migrated yet.
  ///
  /// - Returns: nil when it does not compare with that, or cannot; then with the reason.
  package func stateBefore(_ stage: StagedContainer) throws -> (
    before: Observation?, failures: [AssertionFailure]
  ) {
    guard before != nil else { return (nil, []) }
    do {
      return (try body.observe(stage), [])
    } catch let failure as AssertionFailure {
      return (nil, [failure])
    }
  }

  /// What is not as asserted in a container.
  ///
  /// - Throws: what cannot be looked at at all, such as a suite that `drydock.yaml` does not have.
  package func failures(in stage: StagedContainer, before: Observation?) throws -> [AssertionFailure] {
    do {
      guard case .failed(let failures) = try body.judge(stage, before: before) else { return [] }
      return failures
    } catch let failure as AssertionFailure {
      return [failure]
    } catch let failure as StepFailure {
      throw position.error(failure.message)
    }
  }
}

package struct AssertionFailure: Error, Sendable {
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
}

/// What an assertion saw before the migration.
package enum Observation: Equatable, Sendable {
  /// A query's rows; nil when the database did not exist.
  case rows([[PropertyListValue?]]?)
  /// A setting, nil when it was absent, and its file.
  case setting(PropertyListValue?, file: String)
  /// How many paths matched.
  case count(Int)
  case items([VaultItem])
}

enum Verdict: Sendable {
  case passed
  /// It could not run, neither before nor after: a note, not a failure.
  case notRun(String)
  case failed([AssertionFailure])

  static func notRun(missing database: NamedDatabase) -> Verdict {
    .notRun("the database \(database.name) is not in the container, so this could not be checked")
  }

  static func failed(_ sentence: String) -> Verdict {
    .failed([AssertionFailure("", sentence, sentence: sentence)])
  }
}

extension YAMLNode {
  /// Whether this is the plain word `before`; in quotes it is the text.
  package var meansBefore: Bool { scalar.map { $0.isPlain && $0.source == "before" } ?? false }
}
