import DrydockErrors
import Formats

/// What the name of a setting, column or field implies about its value.
package enum SecretName: Int, Sendable, Comparable {
  case plain
  /// A value that looks like a token is secret: `key`, `auth`.
  case suspicious
  /// A short number or a value that looks like a token is secret: `pin`, `otp`, `cvv`.
  case code
  /// Any value is secret: `auth_token`, `userPassword`, `api-key`.
  case secret

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// Longer names are values rather than names.
  private static let lengthLimit = 200

  /// Classifies a name by its words, in camelCase, snake_case, kebab-case or with dots: `tokenizer` is one word, which is not
  /// secret.
  package init(_ name: String) {
    let words = name.utf8.count > Self.lengthLimit ? [] : Self.words(name)
    guard let last = words.last else {
      self = .plain
      return
    }
    self = Self.judge(words)
    // Several `sessions` may as well be of a sport.
    if self == .secret, last == "session", name.lowercased().hasSuffix("sessions") {
      self = .suspicious
    }
    let isAbout =
      words.count > 1 && (Self.aboutWords.contains(last) || Self.verbs.contains(words[0]))
    if isAbout && self > .suspicious { self = .suspicious }
  }

  /// The class of a name inside a classified one: everything in `credentials` is secret except properties such as `expiry`.
  package func inside(_ outer: SecretName, name: String) -> SecretName {
    guard outer > self else { return self }
    let isAbout = Self.words(name).last.map(Self.aboutWords.contains) ?? false
    return isAbout ? max(self, .suspicious) : outer
  }

  private static func judge(_ words: [String]) -> SecretName {
    if words.contains(where: isSecret) || has(words, Self.secretPairs) {
      return .secret
    }
    if words.last == "session" || words == ["pass"] { return .secret }
    // A pin may be on a map: its value must look like a code.
    if has(words, Self.codePairs) || words.contains(where: Self.codeWords.contains) {
      return .code
    }
    if has(words, Self.publicPairs) { return .plain }
    return words.contains(where: Self.suspiciousWords.contains) ? .suspicious : .plain
  }

  private static func has(_ words: [String], _ pairs: [String: Set<String>]) -> Bool {
    zip(words, words.dropFirst()).contains { pairs[$1]?.contains($0) == true }
  }

  private static func isSecret(_ word: String) -> Bool {
    secretWords.contains(word)
      // All endings have at least five letters.
      || word.utf8.count >= 5 && secretEndings.contains(where: word.hasSuffix)
  }

  /// The words of a name in lower case and singular, without numbers: `APIKeys2` is `api`, `key`.
  package static func words(_ name: String) -> [String] {
    var name = name
    return name.withUTF8 { bytes in
      bytes.allSatisfy { $0 < 0x80 }
        ? words(ascii: bytes) : words(characters: String(decoding: bytes, as: UTF8.self))
    }
  }

  /// The fast path for ASCII names.
  private static func words(ascii name: UnsafeBufferPointer<UInt8>) -> [String] {
    var words: [String] = []
    var start = 0
    func end(_ index: Int) {
      if start < index {
        words.append(singular(String(decoding: name[start..<index].lazy.map { $0 | 0x20 }, as: UTF8.self)))
      }
      start = index
    }
    for (index, byte) in name.enumerated() {
      guard byte.isLetter else {
        end(index)
        start = index + 1
        continue
      }
      if byte.isCapital, start < index {
        let startsWord = index + 1 < name.count && name[index + 1].isLetter && !name[index + 1].isCapital
        if !name[index - 1].isCapital || startsWord { end(index) }
      }
    }
    end(name.count)
    return words
  }

  private static func words(characters name: String) -> [String] {
    var words: [String] = []
    var word: [Character] = []
    func end() {
      if !word.isEmpty { words.append(singular(String(word).lowercased())) }
      word = []
    }
    let characters = Array(name)
    for (index, character) in characters.enumerated() {
      guard character.isLetter else {
        end()
        continue
      }
      if character.isUppercase, let previous = word.last {
        let startsWord = index + 1 < characters.count && characters[index + 1].isLowercase
        // `authToken` and the K of `APIKey` start a word, but no other letter of `TOKEN` does.
        if previous.isLowercase || startsWord { end() }
      }
      word.append(character)
    }
    end()
    return words
  }

  private static func singular(_ word: String) -> String {
    guard word.utf8.count > 3, word.utf8.last == UInt8(ascii: "s"), !word.hasSuffix("ss"), word.count > 3,
      !Self.aboutWords.contains(word)
    else { return word }
    return String(word.dropLast())
  }
}

/// Classifies the fields of a dictionary, or the columns of a row, by their names and by a name in another field, as in
/// `{name: auth_token, value: …}`.
package struct SecretFields {
  private static let nameKeys: Set<String> = [
    "name", "key", "id", "identifier", "field", "header", "title", "account",
  ]
  private static let valueKeys: Set<String> = [
    "value", "data", "content", "text", "string", "blob", "body", "payload", "val", "v",
  ]

  private var outer: SecretName
  private let hasValue: Bool
  private var beside = SecretName.plain

  /// Classifies the fields of a dictionary with a classified name.
  package init(_ values: PropertyListDictionary, inside outer: SecretName) {
    self.init(keys: values.keys.lazy.map(\.text), inside: outer)
    for (key, value) in values {
      if case .string(let text) = value { note(text, in: key) }
    }
    // The class of an object in a keyed archive names its fields.
    if case .string(let className)? = values["$class"] { self.outer = max(self.outer, SecretName(className)) }
  }

  /// Classifies the columns of a table. The table's name applies to columns with values; a table of sessions also has times.
  package init(columns: some Sequence<String>, of table: SecretName) {
    self.init(keys: columns, inside: min(table, .suspicious))
    if table > .suspicious { beside = table }
  }

  private init(keys: some Sequence<String>, inside outer: SecretName) {
    self.outer = outer
    hasValue = keys.contains { Self.valueKeys.contains($0.lowercased()) }
  }

  /// Takes into account the text of a field, which may name the value in another field.
  ///
  /// - Parameter isKey: whether it identifies the row: then it names all its values.
  /// - Returns: whether it changes anything.
  @discardableResult
  package mutating func note(_ text: String, in key: String, isKey: Bool = false) -> Bool {
    guard text.utf8.count < 100, isKey || Self.nameKeys.contains(key.lowercased()) else { return false }
    let name = SecretName(text)
    guard name > .suspicious else { return false }
    beside = max(beside, name)
    if isKey { outer = max(outer, name) }
    return true
  }

  package subscript(_ key: String) -> SecretName {
    let own = SecretName(key)
    let word = key.lowercased()
    if Self.valueKeys.contains(word) { return max(own.inside(outer, name: key), beside) }
    // Beside a value, a key or a name is not secret.
    if hasValue, Self.nameKeys.contains(word) { return outer == .secret ? .suspicious : .plain }
    return own.inside(outer, name: key)
  }

  /// Whether a key itself is a secret: a token, or something similar in a list of sessions.
  package func isSecret(key: String) -> Bool {
    SecretText.isSecret(key)
      || outer == .secret && SecretName(key) == .plain && SecretText.isLikelyToken(key)
  }
}

// The words.
extension SecretName {
  /// Any value of such a name is secret.
  private static let secretWords: Set<String> = [
    "token", "password", "passwd", "pwd", "passphrase", "passcode", "passkey", "passwort", "secret",
    "credential", "cred", "authorization", "jwt", "bearer", "cookie", "mnemonic", "ssn", "iban", "apikey",
    "apitoken", "authtoken", "accesstoken", "refreshtoken", "idtoken", "privatekey", "secretkey", "accesskey",
    "authkey", "masterkey", "sshkey", "encryptionkey", "signingkey", "licensekey", "recoverykey", "sessionid",
    "sessionkey", "sessiontoken", "clientsecret", "pincode", "cardnumber", "ccnumber", "creditcard",
    "seedphrase", "csrftoken", "xsrftoken", "passwordhash", "tokenvalue", "keymaterial",
  ]

  /// The same for words that end with these, such as `userpassword`.
  private static let secretEndings = ["token", "password", "passphrase", "secret", "apikey", "privatekey"]

  /// Adjacent words that together mean a secret.
  private static let secretPairs = byLast([
    ["api", "key"], ["private", "key"], ["secret", "key"], ["access", "key"], ["auth", "key"],
    ["encryption", "key"], ["master", "key"], ["signing", "key"], ["session", "key"], ["session", "id"],
    ["session", "data"], ["session", "value"], ["session", "hash"], ["session", "string"], ["ssh", "key"],
    ["license", "key"], ["licence", "key"], ["recovery", "key"], ["recovery", "phrase"],
    ["recovery", "code"],
    ["backup", "code"], ["seed", "phrase"], ["pass", "word"], ["pass", "phrase"], ["pass", "code"],
    ["card", "number"], ["credit", "card"], ["account", "number"], ["passport", "number"],
    ["social", "security"], ["key", "material"], ["symmetric", "key"], ["shared", "key"], ["storage", "key"],
    ["database", "key"], ["db", "key"], ["user", "pass"], ["db", "pass"], ["smtp", "pass"], ["imap", "pass"],
    ["ftp", "pass"], ["wifi", "pass"], ["admin", "pass"], ["login", "pass"], ["mail", "pass"],
  ])

  /// A short number under such a name is secret.
  private static let codeWords: Set<String> = [
    "pin", "otp", "totp", "hotp", "cvv", "cvc", "csc", "tan", "mfa",
  ]
  private static let codePairs = byLast([
    ["security", "code"], ["verification", "code"], ["pin", "code"], ["time", "code"], ["auth", "code"],
    ["login", "code"], ["sms", "code"], ["access", "code"], ["unlock", "code"], ["confirmation", "code"],
  ])
  /// Public values are not secret.
  private static let publicPairs = byLast([["public", "key"]])

  private static func byLast(_ pairs: [[String]]) -> [String: Set<String>] {
    pairs.reduce(into: [:]) { $0[$1[1], default: []].insert($1[0]) }
  }

  /// A value that looks like a token under such a name is secret.
  private static let suspiciousWords: Set<String> = [
    "key", "auth", "oauth", "session", "sid", "signature", "nonce", "salt", "seed", "hash", "login", "code",
    "access", "refresh", "certificate", "cert", "license", "licence", "pass", "csrf", "xsrf", "keychain",
    "recovery", "otpauth", "webhook", "invite", "verifier", "challenge",
  ]

  /// At the end of a name these mean a property of a secret: `tokenExpiry`.
  private static let aboutWords: Set<String> = [
    "count", "interval", "timeout", "ttl", "expiry", "expires", "expired", "expiration", "expire", "lifetime",
    "duration", "date", "time", "timestamp", "at", "on", "until", "since", "length", "size", "limit", "min",
    "max", "minimum", "maximum", "policy", "type", "kind", "format", "name", "label", "title", "enabled",
    "disabled", "required", "visible", "hidden", "shown", "consent", "banner", "accepted", "state", "status",
    "version", "index", "position", "order", "mode", "style", "color", "colour", "theme", "strength", "score",
    "attempt", "retry", "retries", "failure", "error", "url", "uri", "endpoint", "host", "path", "file",
    "filename", "page", "screen", "view", "button", "field", "placeholder", "prompt", "message", "provider",
    "manager", "storage", "location", "reset", "changed", "migrated", "issuer", "scheme", "algorithm",
    "scope", "audience", "method", "option", "email", "user", "username", "service", "domain", "locale",
    "language", "icon", "seconds", "minutes", "hours", "days", "budget", "usage", "used", "remaining", "cost",
  ]

  /// At the start of a name these mean an action or question: `showPassword`.
  private static let verbs: Set<String> = [
    "show", "hide", "has", "is", "should", "use", "uses", "needs", "require", "requires", "remember", "save",
    "did", "can", "enable", "disable", "allow", "num", "max", "min", "total", "ask", "prompt", "reset",
    "change", "clear",
  ]
}
