/// Keeps secrets out of what people and logs see.
public enum Redaction {
  private static let words = [
    "token", "password", "passwd", "passphrase", "secret", "credential", "apikey", "api_key", "privatekey",
    "private_key", "accesskey", "access_key", "authorization", "cookie", "session", "pincode", "jwt",
    "refresh",
  ]

  /// Whether a setting's key, or the form of its value, says that it is a secret: a credential's name, a JSON
  /// Web Token, a PEM block, an age identity.
  public static func isSecret(key: String, value: PropertyListValue? = nil) -> Bool {
    let lowered = key.lowercased()
    if words.contains(where: lowered.contains) { return true }
    guard case .string(let text) = value else { return false }
    return (text.hasPrefix("eyJ") && text.split(separator: ".").count == 3) || text.contains("-----BEGIN ")
      || text.hasPrefix("AGE-SECRET-KEY-")
  }

  /// A setting's value as it may be shown; what is secret inside of it is left out likewise.
  public static func shown(_ value: PropertyListValue, key: String) -> String {
    if isSecret(key: key, value: value) {
      let size =
        switch value {
        case .string(let text): "\(text.count) characters"
        case .data(let bytes): "\(bytes.count) bytes"
        default: value.typeName
        }
      return "(secret, \(size))"
    }
    switch value {
    case .array(let values): return "[" + values.map { shown($0, key: "") }.joined(separator: ", ") + "]"
    case .dictionary(let values):
      let pairs = values.sorted { $0.key < $1.key }.map { "\($0.key): \(shown($0.value, key: $0.key))" }
      return "{" + pairs.joined(separator: ", ") + "}"
    default: return value.description
    }
  }
}
