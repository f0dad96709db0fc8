import AppStores
import Formats
import Foundation

/// Why a value counts as a secret. It is stricter than what output hides: a report with false alarms is not read twice.
enum SecretEvidence {
  /// The kind of secret in a text, such as `a GitHub token`, by its form alone; nil for none.
  ///
  /// - Parameter withAssignments: whether `password=…` counts, as in logs and configuration files.
  static func form(in bytes: [UInt8], withAssignments: Bool = false) -> String? {
    let found = SecretText(bytes: bytes).first { form in
      switch form {
      case .token(let service, let value): service != SecretText.encodedJSON && isReal(value)
      case .block(let label): label.contains("PRIVATE KEY")
      case .urlPassword: true
      case .authorization(let value): isReal(value)
      case .assignment(let value): withAssignments && isStrong(value)
      // Identifiers are as long as card numbers.
      case .number: false
      }
    }
    return found.map(name)
  }

  static func form(in text: String, withAssignments: Bool = false) -> String? {
    // No form is shorter.
    text.utf8.count < 12 ? nil : form(in: Array(text.utf8), withAssignments: withAssignments)
  }

  private static func name(_ form: SecretText.Form) -> String {
    switch form {
    case .token(let service, _): ("AEIOU".contains(service.prefix(1)) ? "an " : "a ") + service
    case .block: "a private key in PEM form"
    case .urlPassword: "a URL with a password"
    case .authorization: "an authorization header"
    case .assignment: "a value assigned to a secret's name"
    case .number: "a card or account number"
    }
  }

  /// Documentation and tests have tokens like `AKIAIOSFODNN7EXAMPLE` and `ghp_xxxxxxxxxxxx`.
  private static func isReal(_ value: String) -> Bool {
    !value.uppercased().contains("EXAMPLE") && Set(value.dropFirst(4)).count >= 8
  }

  /// Whether a value has the entropy of a password or token: two kinds of characters, and no sentence, path or URL.
  static func isStrong(_ value: String) -> Bool {
    guard (6...8192).contains(value.utf8.count), !value.contains(where: \.isWhitespace),
      !value.contains("://"), !value.hasPrefix("/"), !value.hasPrefix("file:")
    else { return false }
    var kinds: Set<Int> = []
    for (index, character) in value.enumerated() {
      if character.isNumber {
        kinds.insert(0)
      } else if character.isUppercase {
        // A capital at the start is spelling.
        if index > 0 { kinds.insert(1) }
      } else if character.isLetter {
        kinds.insert(2)
      } else if !"_-.:,/".contains(character) {
        kinds.insert(3)
      }
    }
    guard Set(value).count >= 5 else { return false }
    // A long word without digits is a token, unless it is an identifier such as `com.example.notes`.
    return kinds.count >= 2 || value.utf8.count >= 16 && !value.contains(".")
  }

  /// Whether a name means a secret, which the names of many harmless tokens do not.
  static func isSecret(name: String) -> Bool {
    guard SecretName(name) == .secret else { return false }
    let words = Set(SecretName.words(name))
    if !words.isDisjoint(with: harmless) { return false }
    let isToken = words.contains { $0.hasSuffix("token") }
    // Analytics count sessions.
    let isSession = words.contains("session") || words.contains { $0.hasPrefix("session") }
    return !(isToken && !words.isDisjoint(with: harmlessTokens)) && !(isSession && !isToken)
  }

  /// Words that make a secret's name harmless: what is sealed already, and what is public.
  private static let harmless: Set<String> = [
    "encrypted", "sealed", "wrapped", "ciphertext", "hint", "public", "consent", "policy", "banner", "length",
    "keychain", "reference", "alia", "alias", "fingerprint", "element",
  ]
  /// Tokens that open nothing by themselves: for push, paging, synchronization and analytics.
  private static let harmlessTokens: Set<String> = [
    "device", "push", "fcm", "apns", "apn", "gcm", "registration", "page", "pagination", "cursor", "sync",
    "history", "change", "continuation", "next", "previous", "server", "last", "query", "search", "text",
    "instance", "installation", "analytics", "observer", "notification", "cancel", "count", "max", "limit",
    "usage", "design", "color", "syntax", "word",
    "voip", "firebase", "messaging",
  ]

  /// Whether a value under a secret's name is one.
  static func isSecret(value: PropertyListValue, name: String) -> Bool {
    switch value {
    case .string(let text): isStrong(text) || isCode(text, name)
    case .integer, .int, .long: isCode(value.description, name)
    case .data(let bytes): bytes.count >= 16 && bytes.count <= 8192 && Set(bytes).count >= 10
    default: false
    }
  }

  /// Four to eight digits under the name of a code.
  private static func isCode(_ text: String, _ name: String) -> Bool {
    guard let last = SecretName.words(name).last,
      codes.contains(last) || codes.contains(where: last.hasSuffix)
    else { return false }
    return (4...8).contains(text.utf8.count) && text.allSatisfy(\.isNumber)
  }

  private static let codes = ["password", "passcode", "pincode", "passwd"]
}

/// Searches a value of a setting or document for a secret: by names of keys, by forms of texts, and in documents inside texts
/// and data.
struct SecretValueSearch {
  /// The app may have encrypted data itself, which their bytes do not show.
  static let data = "data under a secret's name, unless the app encrypts them"

  /// The bytes that are still examined: references to one text can expand a small file.
  private(set) var left: Int

  init(budget: Int) { left = budget }

  /// Why a value has a secret, such as `a GitHub token`; nil for none.
  mutating func evidence(in value: PropertyListValue, name: String, depth: Int = 0) -> String? {
    evidence(in: value, name: name, isSecret: SecretEvidence.isSecret(name: name), depth)
  }

  private mutating func evidence(
    in value: PropertyListValue, name: String, isSecret: Bool, _ depth: Int
  ) -> String? {
    left -= 16
    guard left > 0, depth < 40 else { return nil }
    switch value {
    case .set(let values):
      return evidence(in: .array(values.strings.map { .string($0) }), name: name, isSecret: isSecret, depth)
    case .array(let values):
      for value in values {
        if let found = evidence(in: value, name: name, isSecret: isSecret, depth + 1) { return found }
      }
    case .dictionary(let values):
      // `{name: auth_token, value: …}`
      let named = ["name", "Name", "key"].lazy.compactMap { key -> String? in
        if case .string(let text)? = values[key], SecretEvidence.isSecret(name: text) { text } else { nil }
      }.first
      for (key, value) in values {
        left -= key.utf8.count
        let isAbout = isSecret && SecretName(key).inside(.secret, name: key) == .suspicious
        let isValue = named != nil && ["value", "data"].contains(key.lowercased())
        let own = SecretEvidence.isSecret(name: key) || isValue || isSecret && !isAbout
        if let found = evidence(in: value, name: own && !isSecret ? key : name, isSecret: own, depth + 1) {
          return found
        }
      }
    case .string(let text):
      left -= text.utf8.count
      if let document = value.document {
        return evidence(in: document, name: name, isSecret: isSecret, depth + 10)
      }
      if isSecret, SecretEvidence.isSecret(value: value, name: name) {
        return "a value under a secret's name"
      }
      return SecretEvidence.form(in: text, withAssignments: false)
    case .data(let bytes):
      left -= bytes.count
      if let document = value.document {
        return evidence(in: document, name: name, isSecret: isSecret, depth + 10)
      }
      if isSecret, SecretEvidence.isSecret(value: value, name: name) { return Self.data }
    default:
      if isSecret, SecretEvidence.isSecret(value: value, name: name) { return "a code under a secret's name" }
    }
    return nil
  }
}

extension SecretValueSearch {
  /// Whether a text in a value is an absolute path to a container.
  mutating func findsPath(in value: PropertyListValue) -> Bool {
    var isFound = false
    _ = value.contains { value in
      left -= 16
      if left > 0, case .string(let text) = value {
        left -= text.utf8.count
        isFound = ContainerPaths.isIn(text)
      }
      return isFound || left <= 0
    }
    return isFound
  }
}

/// Absolute paths to a container: they change with every installation and restore.
enum ContainerPaths {
  private static let marks =
    [
      "/var/mobile/Containers/", "/var/mobile/Applications/", "/var/containers/", "/CoreSimulator/Devices/",
    ].map { Array($0.utf8) } + [users]
  private static let users = Array("/data/user/".utf8)

  static func isIn(_ text: String) -> Bool {
    var text = text
    return text.utf8.count < 12 ? false : text.withUTF8 { isIn(UnsafeRawBufferPointer($0)) }
  }

  private static func isIn(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard var place = bytes.baseAddress else { return false }
    let end = place + bytes.count
    while let slash = memchr(place, Int32(UInt8(ascii: "/")), end - place) {
      let rest = UnsafeRawBufferPointer(start: slash, count: end - UnsafeRawPointer(slash))
      if let mark = marks.first(where: { rest.starts(with: $0) }) {
        // After Android's directory of users comes the number of one.
        if mark != users { return true }
        if rest.count > users.count, (0x30...0x39).contains(rest[users.count]) { return true }
      }
      place = UnsafeRawPointer(slash) + 1
    }
    return false
  }
}
