import AppContainer
import Formats

extension Redactor {
  /// A setting in a message, with its type: Bools and numbers as they are, short text in quotes, the rest by its type;
  /// secrets by their length.
  func typed(_ value: PropertyListValue, of key: String) -> String {
    switch value {
    case .array, .dictionary: value.nounPhrase
    // A migration may have given it another name: what could be a token is hidden under any.
    case _ where SecretPattern.isSecret(value, key: key) || SecretPattern.isSecret(value, named: .suspicious):
      "\(value.nounPhrase) \(shown(value, key: key))"
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
