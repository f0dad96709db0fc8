import AppContainer
import ContainerTransaction
import Formats

/// `defaults: {key, equals | one-of | exists}`: what a setting is.
struct DefaultsAssertion: Sendable {
  static let keys = ["key", "equals", "one-of", "exists"] + DefaultsTarget.keys

  let target: DefaultsTarget
  let key: String
  let expected: Expectation

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
      expected = .type(try reader.choice("exists", of: ValueType.self) ?? .string)
    }
  }

  func observe(_ stage: StagedContainer) throws -> Observation {
    let stored = try target.read(stage)?.root[key]
    switch expected {
    // Whether it is there is about what is stored, what it is about what a reader sees.
    case .exists, .type: return .setting(stored)
    default: return .setting(stored ?? target.registered(in: stage.container)[key])
    }
  }

  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict {
    guard case .setting(let value) = now else { return .failed("the setting `\(key)` could not be read") }
    let shown = value.map { redactor.typed($0, of: key) } ?? "absent"
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
    case .null, .count:
      passed = false
      wanted = "comparable"
    }
    return passed ? .passed : .failed("the setting `\(key)` is \(shown), not \(wanted)")
  }
}

extension ValueType {
  /// Whether a value has this type.
  fileprivate func isType(of value: PropertyListValue) -> Bool {
    switch (self, value) {
    case (.string, .string), (.integer, .integer), (.integer, .unsigned), (.real, .real), (.real, .single),
      (.boolean, .boolean), (.date, .date), (.data, .data):
      true
    default: false
    }
  }
}
