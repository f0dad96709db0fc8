import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// What a setting is: `defaults: {key, equals | one-of | exists}`, or a line of `settings` or `absent-settings`.
struct DefaultsAssertion: Sendable {
  static let keys = ["key", "equals", "one-of", "exists"] + DefaultsTarget.keys

  let target: DefaultsTarget
  let key: String
  let expected: Expectation
  /// Whether a registered default counts as the value.
  var seesRegistered = true

  init(_ reader: YAMLReader) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    let given = ["equals", "one-of", "exists"].compactMap { reader[$0] }
    guard given.count == 1 else {
      throw reader.position.error("`defaults` has one of `equals`, `one-of` and `exists`, not \(given.count)")
    }
    if let node = reader["equals"] {
      expected = node.meansBefore ? .before(node.position) : .values([try node.propertyListValue()])
    } else if let node = reader["one-of"] {
      let values = try node.elements("`one-of`").map { try $0.propertyListValue() }
      if values.isEmpty { throw node.position.error("`one-of` is empty: nothing could pass") }
      expected = .values(values)
    } else if case .boolean(let exists) = reader["exists"]?.scalar?.value {
      expected = .exists(exists)
    } else {
      expected = .type(try reader.choice("exists", of: SettingValueType.self) ?? .string)
    }
  }

  fileprivate init(_ target: DefaultsTarget, _ key: String, _ expected: Expectation) {
    (self.target, self.key, self.expected, seesRegistered) = (target, key, expected, false)
  }

  func observe(_ stage: StagedContainer) throws -> Observation {
    let path = try target.path(in: stage.container)
    var stored: PropertyListValue?
    do {
      stored = try target.read(stage)?.root[key]
    } catch let error as DrydockError where error.code == .malformed && !seesRegistered {
      throw AssertionFailure(path.description, "not a settings file: \(error.message)")
    }
    switch expected {
    // Whether it exists is about what is stored, what it is about what a reader sees.
    case .exists, .type: break
    default: if seesRegistered { stored = stored ?? target.registered(in: stage.container)[key] }
    }
    return .setting(stored, file: path.description)
  }

  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict {
    guard case .setting(let value, let file) = now else {
      return .failed("the setting `\(key)` could not be read")
    }
    let passed: Bool
    let wanted: String
    switch expected {
    case .values(let values):
      passed = value.map { value in values.contains { $0.matches(value) } } ?? false
      wanted = values.map { redactor.typed($0, of: key) }.joined(separator: " or ")
    case .exists(let exists):
      passed = (value != nil) == exists
      wanted = exists ? "there" : "absent"
    case .type(let type):
      passed = value.map { type.isType(of: $0) } ?? false
      wanted = "a \(type.rawValue)"
    case .before:
      passed = before == now
      wanted = "what it was before"
    case .null, .count, .rows:
      passed = false
      wanted = "comparable"
    }
    if passed { return .passed }
    let shown = value.map { redactor.typed($0, of: key) } ?? "absent"
    var failure = AssertionFailure(
      "\(file): \(redactor.shown(name: key))",
      value == nil ? "the setting is absent" : "the setting exists, expected none",
      found: value.map { redactor.shown($0, key: key) },
      sentence: "the setting `\(key)` is \(shown), not \(wanted)")
    if case .values(let values) = expected, let first = values.first {
      let isOtherType = value.map { $0.typeName != first.typeName } ?? false
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
      let expected = Expectation.values([values[pair.key.source]].compactMap(\.self))
      assertions.append(
        Assertion(.defaults(DefaultsAssertion(target, pair.key.source, expected)), at: pair.value.position))
    }
    for node in reader["absent-settings"].map({ $0.sequence ?? [$0] }) ?? [] {
      let key = try node.text("an element of `absent-settings`")
      guard values[key] == nil else {
        throw node.position.error("`\(key)` is in `settings` too: it cannot be both there and absent")
      }
      assertions.append(
        Assertion(.defaults(DefaultsAssertion(target, key, .exists(false))), at: node.position))
    }
    return assertions
  }
}

extension SettingValueType {
  fileprivate func isType(of value: PropertyListValue) -> Bool {
    switch (self, value) {
    case (.string, .string), (.integer, .integer), (.integer, .unsigned), (.real, .real), (.real, .single),
      (.boolean, .boolean), (.date, .date), (.data, .data):
      true
    default: false
    }
  }
}
