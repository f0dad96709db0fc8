import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats

/// One line of `check:` or `verify:`.
struct Assertion: Sendable {
  /// What can be looked at.
  enum Kind: Sendable {
    case sql(SQLAssertion)
    case defaults(DefaultsAssertion)
    case files(FilesAssertion)
    case vault(VaultAssertion)
  }

  /// Where it stands.
  let position: YAMLPosition
  let kind: Kind

  init(_ name: String, position: YAMLPosition, arguments: YAMLNode) throws {
    self.position = position
    switch name {
    case "sql":
      kind = .sql(try SQLAssertion(try YAMLReader(arguments, what: name, keys: SQLAssertion.keys)))
    case "defaults":
      let reader = try YAMLReader(arguments, what: name, keys: DefaultsAssertion.keys)
      kind = .defaults(try DefaultsAssertion(reader))
    case "files":
      kind = .files(try FilesAssertion(try YAMLReader(arguments, what: name, keys: FilesAssertion.keys)))
    case "vault":
      kind = .vault(try VaultAssertion(try YAMLReader(arguments, what: name, keys: VaultAssertion.keys)))
    default:
      throw position.error(
        "unknown check `\(name)`; "
          + NearestWord.hint(for: name, among: ["sql", "defaults", "files", "vault"]))
    }
  }

  /// What it sees in a container.
  func observe(_ stage: StagedContainer) throws -> Observation {
    switch kind {
    case .sql(let assertion): try assertion.observe(stage)
    case .defaults(let assertion): try assertion.observe(stage)
    case .files(let assertion): .count(try assertion.selection.matches(in: stage).count)
    case .vault(let assertion): try assertion.observe(stage)
    }
  }

  /// Where it compares with the state before the migration; nil when it does not.
  var before: YAMLPosition? {
    let expected: Expectation =
      switch kind {
      case .sql(let assertion): assertion.expected
      case .defaults(let assertion): assertion.expected
      case .files(let assertion): assertion.expected
      case .vault(let assertion): assertion.before.map { .before($0) } ?? .null
      }
    if case .before(let position) = expected { return position }
    return nil
  }

  /// What is wrong with it in `check:`.
  var problemAsCheck: DrydockError? {
    before?.error("`check` runs before the migration: `before` has nothing to compare with; use `verify`")
  }

  /// Whether it opens the vault, for which the device key is needed.
  var needsVault: Bool {
    if case .vault = kind { true } else { false }
  }

  /// Compares what is with what is expected.
  ///
  /// - Parameters:
  ///   - before: what it saw before the migration; nil in `check:`.
  ///   - redactor: what hides secrets in the verdict.
  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict {
    switch kind {
    case .sql(let assertion): assertion.judge(now, before: before, redactor)
    case .defaults(let assertion): assertion.judge(now, before: before, redactor)
    case .files(let assertion): assertion.judge(now, before: before)
    case .vault(let assertion): assertion.judge(now, before: before)
    }
  }
}

/// What an assertion compares with.
enum Expectation: Sendable {
  case values([PropertyListValue])
  /// SQL's NULL.
  case null
  case before(YAMLPosition)
  case exists(Bool)
  case type(ValueType)
  case count(Int64)
}

/// What an assertion saw.
enum Observation: Equatable, Sendable {
  /// The database is not in the container.
  case noDatabase(String)
  /// A query's rows, and the names of their columns.
  case rows([[PropertyListValue?]], columns: [String])
  /// A setting, nil when it is absent.
  case setting(PropertyListValue?)
  /// How many paths match.
  case count(Int)
  /// Vault items.
  case items([VaultItem])
}

/// What came of an assertion.
enum Verdict: Equatable, Sendable {
  case passed
  /// It could not run, before as after: that is reported, and is no failure.
  case notRun(String)
  case failed(String)
}

extension YAMLNode {
  /// Whether this is the plain word `before`; in quotes it is the text.
  package var meansBefore: Bool { scalar.map { $0.isPlain && $0.source == "before" } ?? false }
}
