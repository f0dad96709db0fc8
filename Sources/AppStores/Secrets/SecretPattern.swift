import DrydockErrors
import Formats

/// Decides which values are probably secrets, by name, form and content.
///
/// It prefers false positives: redacted values can still be distinguished by their fingerprints, but a secret that was shown
/// stays known.
package enum SecretPattern {
  /// Whether a value, or a part of it, looks like a secret.
  ///
  /// - Parameter key: the name of the value, or empty.
  package static func isSecret(_ value: PropertyListValue, key: String = "") -> Bool {
    isSecret(value, named: SecretName(key))
  }

  package static func isSecret(_ value: PropertyListValue, named name: SecretName) -> Bool {
    var budget = Self.budget
    return isSecret(value, named: name, least: .suspicious, within: &budget)
  }

  /// Whether a text without a name contains a secret's form: a token, a private key, a card number.
  package static func isSecret(text: String) -> Bool {
    isSecret(.string(text), named: .plain)
  }

  /// Whether a value as a whole is a secret under a classified name.
  ///
  /// - Parameter looksInside: whether to search for a secret's form as well.
  package static func isSecret(leaf value: PropertyListValue, name: SecretName, looksInside: Bool) -> Bool {
    switch value {
    case .string(let text):
      return isSecret(text, name) || looksInside && SecretText.isSecret(text)
    case .data(let bytes):
      switch name {
      case .secret: return !bytes.isEmpty
      case .code, .suspicious: return bytes.count >= 8
      case .plain: return false
      }
    case .integer(let number), .long(let number): return isSecret(number.magnitude, name)
    case .int(let number): return isSecret(UInt64(number.magnitude), name)
    case .set(let values):
      return values.strings.contains { isSecret(leaf: .string($0), name: name, looksInside: looksInside) }
    case .unsigned(let number): return isSecret(number, name)
    case .real(let number): return isSecret(number, name)
    case .single(let number): return isSecret(Double(number), name)
    case .boolean, .date, .unknown, .array, .dictionary: return false
    }
  }

  private static let answers: Set<String> = [
    "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "default", "auto", "always", "never",
    "ask",
  ]

  private static func isSecret(_ text: String, _ name: SecretName) -> Bool {
    switch name {
    case .plain: return false
    case .suspicious: return SecretText.isLikelyToken(text)
    case .code: return isCode(text) || SecretText.isLikelyToken(text)
    case .secret:
      // A count is shorter than any code.
      let isNumber = text.utf8.allSatisfy(\.isDigit)
      return !(isNumber && text.utf8.count < 3) && !answers.contains(text.lowercased())
    }
  }

  private static func isCode(_ text: String) -> Bool {
    let isPlain = text.utf8.allSatisfy { $0.isDigit || $0 == 0x20 || $0 == UInt8(ascii: "-") }
    return isPlain && text.utf8.count(where: \.isDigit) >= 3
  }

  private static func isSecret(_ number: UInt64, _ name: SecretName) -> Bool {
    switch name {
    case .plain, .suspicious: SecretText.isCard(number)
    case .code: number >= 100
    case .secret: number >= 1000
    }
  }

  private static func isSecret(_ number: Double, _ name: SecretName) -> Bool {
    guard number.isFinite, number.magnitude < 1e19, number == number.rounded() else { return false }
    return isSecret(UInt64(number.magnitude), name)
  }
}

// The search in values, with bounded work: by references to one text, a property list of a few megabytes can expand to a
// million times as much.
extension SecretPattern {
  /// The most levels of documents in text or data, such as JSON in a string of JSON.
  static let depthLimit = 8
  /// The most bytes to inspect in a single value.
  package static let budget = 4 << 20

  /// Whether a value, or a part of it, looks like a secret, or is too large or too deeply nested to decide.
  ///
  /// - Parameters:
  ///   - least: the minimum class of a name that makes a value without a secret's form secret.
  ///   - budget: the bytes that are left to inspect; none when the search ended early.
  package static func isSecret(
    _ value: PropertyListValue, named name: SecretName, least: SecretName, within budget: inout Int,
    depth: Int = 0
  ) -> Bool {
    budget -= weight(of: value)
    guard budget > 0 else { return true }
    if isSecret(leaf: value, name: name < least ? .plain : name, looksInside: true) { return true }
    switch value {
    case .array(let values):
      for value in values
      where isSecret(value, named: name, least: least, within: &budget, depth: depth) { return true }
      return false
    case .set(let values):
      for text in values.strings
      where isSecret(.string(text), named: name, least: least, within: &budget, depth: depth) { return true }
      return false
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      for (key, value) in values {
        budget -= key.utf8.count
        if names.isSecret(key: key)
          || isSecret(value, named: names[key], least: least, within: &budget, depth: depth)
        {
          return true
        }
      }
      return false
    default:
      guard let document = value.document else { return false }
      return depth >= depthLimit
        || isSecret(document, named: name, least: least, within: &budget, depth: depth + 1)
    }
  }

  /// Calls a body with each secret text or data in a value.
  static func visit(
    _ value: PropertyListValue, _ name: SecretName, within budget: inout Int,
    _ body: (PropertyListValue) -> Void
  ) {
    budget -= weight(of: value)
    guard budget > 0 else { return }
    switch value {
    case .array(let values):
      for value in values { visit(value, name, within: &budget, body) }
    case .set(let values):
      for text in values.strings { visit(.string(text), name, within: &budget, body) }
    case .dictionary(let values):
      let names = SecretFields(values, inside: name)
      for (key, value) in values { visit(value, names[key], within: &budget, body) }
    default: if isSecret(leaf: value, name: name, looksInside: true) { body(value) }
    }
  }

  private static func weight(of value: PropertyListValue) -> Int {
    switch value {
    case .string(let text): text.utf8.count + 16
    case .data(let bytes): bytes.count + 16
    case .set(let values): values.strings.reduce(16) { $0 + $1.utf8.count + 16 }
    case .dictionary(let values): values.count * 32 + 16
    default: 16
    }
  }
}
