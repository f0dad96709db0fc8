import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// What a setting is: `defaults: {key, equals | one-of | exists}`, or a line of `settings` or `absent-settings`.
struct DefaultsAssertion: AssertionBody {
  static let keys = ["key", "equals", "was", "one-of", "exists"] + DefaultsTarget.keys

  fileprivate enum Expected: Sendable {
    case values([PropertyListValue])
    case exists(Bool)
    case type(SettingType)
    case before(YAMLPosition)
  }

  private let target: DefaultsTarget
  private let key: String
  private let expected: Expected
  /// The name that the setting had before.
  private var was: String?
  /// Whether a registered default counts as the value: in migrations, and not in fixtures.
  private var seesRegistered = true

  init(_ reader: YAMLReader) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    let (word, node) = try reader.only(
      ["equals", "one-of", "exists"], needs: "one of `equals`, `one-of` and `exists`")
    switch word {
    case "equals" where node.meansBefore: expected = .before(node.position)
    case "equals": expected = .values([try node.propertyListValue()])
    case "one-of":
      let values = try node.elements("`one-of`").map { try $0.propertyListValue() }
      if values.isEmpty { throw node.position.error("`one-of` is empty: nothing could pass") }
      expected = .values(values)
    default:
      if case .boolean(let exists) = node.scalar?.value {
        expected = .exists(exists)
      } else {
        expected = .type(try reader.choice("exists", of: SettingType.self) ?? .string)
      }
    }
    was = try Self.was(reader, expected)
  }

  private static func was(_ reader: YAMLReader, _ expected: Expected) throws -> String? {
    guard let node = reader["was"] else { return nil }
    guard case .before = expected else {
      throw node.position.error("`was` is the old name of a setting that `equals: before`")
    }
    return try node.text("`was`")
  }

  fileprivate init(_ target: DefaultsTarget, _ key: String, _ expected: Expected) {
    (self.target, self.key, self.expected, seesRegistered) = (target, key, expected, false)
  }

  var before: YAMLPosition? {
    if case .before(let position) = expected { position } else { nil }
  }

  var demandsSomething: Bool {
    if case .exists(false) = expected { false } else { true }
  }

  func observe(_ stage: StagedContainer) throws -> Observation? {
    .setting(try value(of: was ?? key, in: stage), file: try target.path(in: stage).description)
  }

  private func value(of key: String, in stage: StagedContainer) throws -> PropertyListValue? {
    var stored: PropertyListValue?
    do {
      stored = try target.read(stage)?.root[key]
    } catch let error as DrydockError where error.code == .malformed && !seesRegistered {
      throw AssertionFailure(try target.path(in: stage).description, "not a settings file: \(error.message)")
    }
    switch expected {
    // Only the value is that which the app reads: what exists is stored.
    case .exists, .type: break
    default: if seesRegistered { stored = stored ?? target.registered(in: stage.container)[key] }
    }
    return stored
  }

  func judge(_ stage: StagedContainer, before: Observation?) throws -> Verdict {
    let file = try target.path(in: stage).description
    let value = try value(of: key, in: stage)
    let passed: Bool
    var wanted = ""
    switch expected {
    case .values(let values):
      passed = value.map { value in values.contains { $0.matches(value) } } ?? false
    case .exists(let exists):
      passed = (value != nil) == exists
      wanted = exists ? "there" : "absent"
    case .type(let type):
      passed = value.map(type.includes) ?? false
      wanted = type.rawValue.withArticle
    case .before:
      passed = before == .setting(value, file: file)
      wanted = "what it was before"
    }
    if passed { return .passed }
    // The values of a fixture are made up.
    let redactor =
      seesRegistered ? stage.knowingRedactor(showing: [value].compactMap(\.self)) : stage.redactor
    if case .values(let values) = expected {
      wanted = values.map { redactor.typed($0, of: key) }.joined(separator: " or ")
    }
    let shown = value.map { redactor.typed($0, of: key) } ?? "absent"
    if case .before = expected, case .setting(let old, _)? = before, old == nil {
      return .failed(
        was.map {
          "the setting `\($0)` did not exist before, so that there is nothing to compare `\(key)` with"
        }
          ?? "the setting `\(key)` did not exist before: give the name that it had, as in `was: OLD_NAME`")
    }
    var failure = AssertionFailure(
      "\(file): \(redactor.shown(name: key))",
      value == nil ? "the setting is absent" : "the setting exists, expected none",
      found: value.map { redactor.shown($0, key: key) },
      sentence: "the setting `\(key)` is \(shown), not \(wanted)")
    if case .values(let values) = expected, let first = values.first {
      let isOtherType = value.map { !$0.isOfType(like: first) } ?? false
      func shown(_ value: PropertyListValue) -> String {
        (isOtherType ? "the \(value.typeName) " : "") + redactor.shown(value, key: key)
      }
      failure.message =
        value == nil ? "the setting is absent" : "the setting has another \(isOtherType ? "type" : "value")"
      (failure.expected, failure.found) = (shown(first), value.map(shown))
    }
    return .failed([failure])
  }
}

extension Assertion {
  /// What `settings` and `absent-settings` of a fixture say.
  ///
  /// - Parameter suite: the suite that they are in; nil for the app's own settings.
  package static func settings(_ reader: YAMLReader, suite: (name: String, position: YAMLPosition)?) throws
    -> [Assertion]
  {
    let target = DefaultsTarget(suite: suite?.name, at: suite?.position ?? reader.position)
    let pairs = try reader["settings"]?.pairs("`settings`")
    let values = try pairs?.propertyListValues() ?? [:]
    var assertions: [Assertion] = []
    for pair in pairs?.pairs ?? [] {
      let expected = DefaultsAssertion.Expected.values([values[pair.key.source]].compactMap(\.self))
      assertions.append(
        Assertion(DefaultsAssertion(target, pair.key.source, expected), at: pair.value.position))
    }
    for node in reader["absent-settings"].map({ $0.sequence ?? [$0] }) ?? [] {
      let key = try node.text("an element of `absent-settings`")
      guard values[key] == nil else {
        throw node.position.error("`\(key)` is in `settings` too: it cannot be both there and absent")
      }
      assertions.append(Assertion(DefaultsAssertion(target, key, .exists(false)), at: node.position))
    }
    return assertions
  }
}
