import AppContainer

/// Keeps what may be a secret out of messages.
enum SecretNames {
  private static let words = [
    "token", "secret", "passw", "passphrase", "credential", "session", "apikey", "api_key", "auth", "private",
    "pin",
  ]

  /// Whether a setting of this name may hold a secret.
  static func mayBeSecret(_ key: String) -> Bool {
    let name = key.lowercased()
    return words.contains { name.contains($0) }
  }

  /// A value for a message: Bools and numbers as they are, short text in quotes; the rest by its type.
  static func shown(_ value: PropertyListValue, of key: String) -> String {
    switch value {
    case _ where mayBeSecret(key): "a \(value.typeName)"
    case .boolean(let bool): "the Bool \(bool)"
    case .integer, .unsigned: "the integer \(value)"
    case .real, .single: "the real \(value)"
    case .string(let text) where text.count <= 40: "the text `\(text)`"
    case .string: "a long text"
    default: "a \(value.typeName)"
    }
  }
}
