import Formats

/// Tells which values are probably secrets: by the name that they have, by their form, and by what is in them.
///
/// It guesses, and rather once too often: a value that is hidden for nothing can still be told from another by its
/// fingerprint, and a secret that was shown cannot be taken back.
package enum SecretPattern {
  /// Whether a value, or something inside of it, looks like a secret.
  ///
  /// - Parameter key: the name that it has; empty when it has none.
  package static func isSecret(_ value: PropertyListValue, key: String = "") -> Bool {
    isSecret(value, named: SecretName(key))
  }

  /// Whether a value, or something inside of it, looks like a secret under a name that was judged.
  package static func isSecret(_ value: PropertyListValue, named name: SecretName) -> Bool {
    var search = SecretSearch(least: .suspicious)
    return search.finds(in: value, name)
  }

  /// Whether it looks so much like one that its owner should be told: a name like `key` alone is not enough.
  package static func isClearlySecret(_ value: PropertyListValue, key: String = "") -> Bool {
    var search = SecretSearch(least: .code)
    return search.finds(in: value, SecretName(key))
  }

  /// Whether a text without a name has a secret's form somewhere: a token, a private key, a card number.
  package static func isSecret(text: String) -> Bool {
    isSecret(.string(text), named: .plain)
  }

  /// Whether a value as a whole is a secret, under a name that was judged.
  ///
  /// - Parameter looksInside: looks for a secret's form, too.
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
    case .integer(let number): return isSecret(number.magnitude, name)
    case .unsigned(let number): return isSecret(number, name)
    case .real(let number): return isSecret(number, name)
    case .single(let number): return isSecret(Double(number), name)
    case .boolean, .date, .unknown, .array, .dictionary: return false
    }
  }

  /// Words that are settings, not secrets, whatever their name.
  private static let answers: Set<String> = [
    "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "default", "auto", "always", "never",
    "ask",
  ]

  private static func isSecret(_ text: String, _ name: SecretName) -> Bool {
    switch name {
    case .plain: return false
    case .suspicious: return SecretToken.isLikely(text)
    case .code: return isCode(text) || SecretToken.isLikely(text)
    case .secret:
      // A count is shorter than any code.
      let isNumber = text.utf8.allSatisfy(SecretText.isDigit)
      return !(isNumber && text.utf8.count < 3) && !answers.contains(text.lowercased())
    }
  }

  private static func isCode(_ text: String) -> Bool {
    let isPlain = text.utf8.allSatisfy { SecretText.isDigit($0) || $0 == 0x20 || $0 == UInt8(ascii: "-") }
    return isPlain && text.utf8.count(where: SecretText.isDigit) >= 3
  }

  private static func isSecret(_ number: UInt64, _ name: SecretName) -> Bool {
    switch name {
    case .plain, .suspicious: SecretNumber.isCard(number)
    case .code: number >= 100
    case .secret: number >= 1000
    }
  }

  private static func isSecret(_ number: Double, _ name: SecretName) -> Bool {
    guard number.isFinite, number.magnitude < 1e19, number == number.rounded() else { return false }
    return isSecret(UInt64(number.magnitude), name)
  }
}
