/// The words that say in a name what kind of value it has.
enum SecretWords {
  /// A value under such a word is a secret, whatever it looks like.
  static let secret: Set<String> = [
    "token", "password", "passwd", "pwd", "passphrase", "passcode", "passkey", "passwort", "secret",
    "credential", "cred", "authorization", "jwt", "bearer", "cookie", "mnemonic", "ssn", "iban", "apikey",
    "apitoken", "authtoken", "accesstoken", "refreshtoken", "idtoken", "privatekey", "secretkey", "accesskey",
    "authkey", "masterkey", "sshkey", "encryptionkey", "signingkey", "licensekey", "recoverykey", "sessionid",
    "sessionkey", "sessiontoken", "clientsecret", "pincode", "cardnumber", "ccnumber", "creditcard",
    "seedphrase", "csrftoken", "xsrftoken", "passwordhash", "tokenvalue", "keymaterial",
  ]

  /// The same for what ends like these, run together: `userpassword`.
  static let secretEndings = ["token", "password", "passphrase", "secret", "apikey", "privatekey"]

  /// Neighbours that only together mean a secret.
  static let secretPairs = byLast([
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

  /// A short number under such a word is a secret.
  static let code: Set<String> = ["pin", "otp", "totp", "hotp", "cvv", "cvc", "csc", "tan", "mfa"]
  static let codePairs = byLast([
    ["security", "code"], ["verification", "code"], ["pin", "code"], ["time", "code"], ["auth", "code"],
    ["login", "code"], ["sms", "code"], ["access", "code"], ["unlock", "code"], ["confirmation", "code"],
  ])
  /// What is public is not a secret.
  static let publicPairs = byLast([["public", "key"]])

  /// The first words of pairs by the last one.
  private static func byLast(_ pairs: [[String]]) -> [String: Set<String>] {
    pairs.reduce(into: [:]) { $0[$1[1], default: []].insert($1[0]) }
  }

  /// What looks like a token under such a word is one.
  static let suspicious: Set<String> = [
    "key", "auth", "oauth", "session", "sid", "signature", "nonce", "salt", "seed", "hash", "login", "code",
    "access", "refresh", "certificate", "cert", "license", "licence", "pass", "csrf", "xsrf", "keychain",
    "recovery", "otpauth", "webhook", "invite", "verifier", "challenge",
  ]

  /// At the end of a name these say something about a secret and are none: `tokenExpiry`.
  static let about: Set<String> = [
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

  /// In front of a name these ask or command: `showPassword`.
  static let verbs: Set<String> = [
    "show", "hide", "has", "is", "should", "use", "uses", "needs", "require", "requires", "remember", "save",
    "did", "can", "enable", "disable", "allow", "num", "max", "min", "total", "ask", "prompt", "reset",
    "change", "clear",
  ]
}
