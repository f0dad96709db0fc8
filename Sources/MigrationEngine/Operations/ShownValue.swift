import AppContainer

/// Settings in messages, with their types and without what may be a secret.
enum ShownValue {
  /// Bools and numbers as they are, short text in quotes; the rest, and all secrets, by their type.
  static func text(_ value: PropertyListValue, of key: String) -> String {
    switch value {
    case _ where Redaction.isSecret(key: key, value: value): value.nounPhrase
    case .boolean(let bool): "the Bool \(bool)"
    case .integer, .unsigned: "the integer \(value)"
    case .real, .single: "the real \(value)"
    case .string(let text) where text.count <= 40: "the text `\(text)`"
    case .string: "a long text"
    default: value.nounPhrase
    }
  }
}

extension PropertyListValue {
  /// The type's name with its article.
  var nounPhrase: String { (typeName == "integer" || typeName == "array" ? "an " : "a ") + typeName }
}
