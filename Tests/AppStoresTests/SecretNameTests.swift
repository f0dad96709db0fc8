@testable import AppStores
import Formats
import Testing

@Suite("Names of secrets") struct SecretNameTests {
  static let names = [
    "token", "Token", "TOKEN", "tokens", "auth_token", "authToken", "authtoken", "AUTH_TOKEN", "auth-token",
    "com.example.authToken", "accessToken", "access_token2", "refreshToken", "idToken", "pushToken",
    "deviceToken", "password", "Passwords", "userPassword", "userpassword", "user_password_hash", "PASSWORD",
    "db.password", "dbPass", "smtp_pass", "pass", "passwd", "pwd", "passphrase", "passPhrase", "passcode",
    "pass_code", "secret", "clientSecret", "client_secret", "clientsecret", "my_secret_value", "credentials",
    "credential", "awsCredentials", "creds", "apiKey", "api_key", "api-key", "API Key", "APIKey", "APIKeys",
    "apikey", "x-api-key", "privateKey", "private_key", "PrivateKeys", "secretKey", "signingKey",
    "encryption_key", "dbKey", "authorization", "Authorization", "authorizationHeader", "cookie", "cookies",
    "sessionCookie", "Set-Cookie", "session", "userSession", "session_id", "sessionId", "sessionKey", "jwt",
    "userJWT", "bearer", "iban", "IBAN", "ssn", "userSSN", "cardNumber", "card_number", "creditCard",
    "seedPhrase", "mnemonic", "recoveryPhrase", "recovery_codes", "backupCodes", "socialSecurityNumber",
    "license_key",
  ]

  static let codes = [
    "pin", "PIN", "userPin", "user_pin", "pinCode2", "otp", "otp_code", "cvv", "cvc", "CVV2", "tan",
    "securityCode", "verification_code", "smsCode", "oneTimeCode",
  ]

  static let others = [
    "", "theme", "fontSize", "tokenizer", "tokenizerModel", "tokenExpiry", "token_type", "tokenCount",
    "maxTokens", "max_tokens", "tokensUsed", "sessionCount", "session_timeout", "sessionTimeout",
    "lastSessionDate", "keyboard", "keyboardType", "hotkey", "monkey", "publicKey", "lastSearch",
    "refreshInterval", "pinnedNotes", "pinned", "spinner", "opinion", "shopping", "showPassword",
    "show_password", "rememberPassword", "passwordPolicy", "passwordStrength", "passwordChangedAt",
    "cookieConsent", "hasToken", "secretName", "username", "email", "dark_mode", "launchCount",
    "recentSearches", "zoom", "lastOpened", "dataSchemaVersion", "compass", "passenger", "bypass", "author",
    "authors", "authorName", "secretary", "obsession", "possession", "discussion", "cookieBanner", "cookbook",
    "tangent", "island", "standard", "kitten", "AppleLanguages", "NSNavLastRootDirectory",
    "WebKitDiskImageCacheSavedCacheDirectory", "pinLength", "otpExpires", "🔑", "日本語", "12345", "___", "...",
  ]

  @Test(arguments: names) func `Secrets' names are recognized`(_ name: String) {
    #expect(SecretName(name) == .secret)
    #expect(SecretPattern.isSecret(.string("x1"), key: name))
    #expect(SecretPattern.isSecret(.string("correct horse"), key: name))
    #expect(SecretPattern.isSecret(.integer(48_213), key: name))
    #expect(SecretPattern.isSecret(.data([1]), key: name))
  }

  @Test(arguments: codes) func `Names of codes are recognized`(_ name: String) {
    #expect(SecretName(name) == .code || SecretName(name) == .secret)
    #expect(SecretPattern.isSecret(.string("4821"), key: name))
    #expect(SecretPattern.isSecret(.integer(4821), key: name))
    #expect(SecretPattern.isSecret(.string("JBSWY3DPEHPK3PXP42"), key: name))
  }

  @Test(arguments: others) func `What is named after a secret is none`(_ name: String) {
    #expect(SecretName(name) < .code, "\(SecretName(name))")
    for value in [
      PropertyListValue.string("dark"), .string("every five minutes"), .integer(48_213), .integer(-1),
      .real(0.25), .boolean(true), .string("Bearer"), .string("https://example.com/a?page=2"),
    ] { #expect(!SecretPattern.isSecret(value, key: name), "\(value)") }
  }

  @Test(arguments: ["password", "session", "token", "pin"])
  func `Of a secret's name what is no secret is shown`(_ name: String) {
    let shown: [PropertyListValue] = [
      .boolean(true), .boolean(false), .string(""), .string("true"), .string("none"), .integer(0),
      .integer(3), .integer(12), .real(0.5), .real(-.infinity), .data([]), .array([]), .dictionary([:]),
      .date(.init(timeIntervalSince1970: 1.8e9)), .string("7"),
    ]
    for value in shown { #expect(!SecretPattern.isSecret(value, key: name), "\(value)") }
  }

  @Test func `Under a word that may mean anything only what looks like a token is hidden`() {
    for name in ["key", "auth", "signature", "salt", "code", "refresh", "tokenType", "sessions", "license"] {
      #expect(SecretName(name) == .suspicious, "\(name)")
      for text in [
        "9f86d081884c7d659a2feaa0c55ad015", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90",
        "dGhpcyBpcyBhIHRlc3Q0Mg==", "qWeRtYuIoPaSdFgHjKlZxCvBnM",
      ] { #expect(SecretPattern.isSecret(.string(text), key: name), "\(name) \(text)") }
      for text in [
        "dark", "DE", "F4", "up-arrow", "com.example.notes", "every day", "2026", "1.2.3",
        "error 404 of 2026",
      ] {
        #expect(!SecretPattern.isSecret(.string(text), key: name), "\(name) \(text)")
      }
      // Said aloud only when it is clear.
      #expect(!isClearlySecret(.string("9f86d081884c7d659a2feaa0c55ad015"), key: name))
    }
  }
}

/// Whether a value deserves a warning, as in `ContainerWarning`: a name like `key` alone is not enough.
func isClearlySecret(_ value: PropertyListValue, key: String) -> Bool {
  var budget = SecretPattern.budget
  return SecretPattern.isSecret(value, named: SecretName(key), least: .code, within: &budget)
}
