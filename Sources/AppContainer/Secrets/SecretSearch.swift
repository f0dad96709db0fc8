import Formats

/// Looks for secrets in values, with bounded work: a property list of a few megabytes can stand for a million times as
/// much, by references to one text.
struct SecretSearch {
  /// How many times text or data inside of a value is taken apart: JSON in a string of JSON in a string.
  static let depthLimit = 8
  /// Bytes that are looked at in a value by itself; more are nobody's setting.
  static let budget = 4 << 20

  /// What a name must say at least to make a value secret that has no secret's form.
  private let least: SecretName
  private var left: Int

  /// - Parameter budget: how many bytes are looked at.
  init(least: SecretName, budget: Int = Self.budget) { (self.least, left) = (least, budget) }

  /// Whether all was looked at that there was.
  var isComplete: Bool { left > 0 }

  /// Whether a value, or something inside of it, looks like a secret; also when nobody would write it in good faith: it
  /// is nested too deep, or too large.
  mutating func finds(in value: PropertyListValue, _ name: SecretName, depth: Int = 0) -> Bool {
    left -= Self.weight(of: value)
    guard isComplete else { return true }
    if SecretPattern.isSecret(leaf: value, name: name < least ? .plain : name, looksInside: true) {
      return true
    }
    switch value {
    case .array(let values):
      for value in values where finds(in: value, name, depth: depth) { return true }
      return false
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      for (key, value) in values {
        left -= key.utf8.count
        if names.isSecret(key: key) || finds(in: value, names[key], depth: depth) { return true }
      }
      return false
    default:
      guard let nested = NestedValue(value) else { return false }
      return depth >= Self.depthLimit || finds(in: nested.value, name, depth: depth + 1)
    }
  }

  /// Calls a body with each text and data in a value that is a secret.
  mutating func visit(_ value: PropertyListValue, _ name: SecretName, _ body: (PropertyListValue) -> Void) {
    left -= Self.weight(of: value)
    guard isComplete else { return }
    switch value {
    case .array(let values):
      for value in values { visit(value, name, body) }
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      for (key, value) in values { visit(value, names[key], body) }
    default: if SecretPattern.isSecret(leaf: value, name: name, looksInside: true) { body(value) }
    }
  }

  private static func weight(of value: PropertyListValue) -> Int {
    switch value {
    case .string(let text): text.utf8.count + 16
    case .data(let bytes): bytes.count + 16
    case .dictionary(let values): values.count * 32 + 16
    default: 16
    }
  }
}
