import AppStores
import TestSupport
import Formats
import Testing

/// Made-up secrets, put together here so that no scanner of repositories takes them for real ones.
enum MadeUp {
  static let tail = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7d"

  static let tokens: [String] = [
    "gh" + "p_\(tail)", "gh" + "o_\(tail)", "github" + "_pat_11ABCDEFG0_\(tail)",
    "gl" + "pat-\(tail.prefix(20))", "xox" + "b-123456789012-123456789012-abcdefABCDEF",
    "xa" + "pp-1-A0123-456-abcdef", "sk_" + "live_\(tail)", "rk_" + "test_\(tail)", "wh" + "sec_\(tail)",
    "AKI" + "AABCDEFGHIJKLMNOP", "ASI" + "A0123456789ABCDEF", "AI" + "za\(tail.prefix(35))",
    "ya" + "29.\(tail)", "GOC" + "SPX-\(tail.prefix(28))", "np" + "m_\(tail)",
    "S" + "G.abcdefghijklmnopqrstuv.\(tail)", "sk-" + "ant-api03-\(tail)", "sk-" + "proj-\(tail)",
    "h" + "f_\(tail)", "sh" + "pat_0123456789abcdef0123456789abcdef",
    "dop" + "_v1_0123456789abcdef0123456789abcdef0123456789abcdef",
    "AGE-SECRET-" + "KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ",
    "age-secret-" + "key-1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq",
    "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "ey" + "JhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.",
    "-----BEGIN " + "PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA " + "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED", "PuTTY-User-" + "Key-File-3: ssh-ed25519",
  ]

  static let others: [String] = [
    "Bearer abc123def456", "bearer \(tail)", "Authorization: Digest username=\"ada\", nonce=\"x\"",
    "Basic YWRhOmh1bnRlcjI=", "https://ada:hunter2@example.com/",
    "postgres://ada:p%40ss@db.example.com:5432/notes", "see https://ada:hunter2@example.com for it",
    "https://example.com/cb?code=1&access_token=hunter2x", "https://example.com/?page=2#token=hunter2",
    "otpauth://totp/Notes:ada?secret=JBSWY3DPEHPK3PXP", "Server=db;User Id=ada;Password=hunter2;",
    "DB_PASSWORD=hunter2", "export API_KEY='hunter22'", "password: hunter2", "user: ada\npassword: hunter2\n",
    "<password>hunter2</password>", "- password: hunter2", "notes\n  * PIN: 4821\n",
    "{\"user\": \"ada\", \"password\": \"hunter2\"", "{\"token\":\"hunter2\",",
    "[{\"a\": 1, \"secret\": \"hunter2\"}]", "{\\\"token\\\":\\\"hunter2\\\"}",
    "Cookie: sid=abc123; theme=dark", "2026-01-02 10:15 D/OkHttp: X-Api-Key: hunter22 (cached)",
    "INFO refresh_token: hunter22", "[net] > Cookie: sid=abc123; theme=dark", "sent accessToken: \(tail)",
  ]

  static let cards = [
    "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "5555555555554444", "2223003122003222",
    "378282246310005", "3782 822463 10005", "6011111111111117", "3530111333300000", "30569309025904",
    "3056 930902 5904", "6200000000000005", "6759649826438453", "card 4111 1111 1111 1111, exp. 12/30",
    "4242424242424242.",
  ]

  static let noCards = [
    "4111111111111112", "4111 1111 1111 1112", "41111111111111111", "411111111111111", "1234567890123452",
    "0000000000000000", "4444444444444444x", "a4111111111111111", "4111-1111 1111 1111",
    "4111.1111.1111.1111", "1767323045125", "20260102030405000", "41 11 11 11 11 11 11 11",
    "4111111111111111.5", "0.4111111111111111", "9999999999999995", "-4111111111111111",
  ]

  static let socialSecurity = [
    "078-05-1120", "SSN 219-09-9999", "001-01-0001 is it", "899-99-9999", "123 45 6789",
  ]
  static let noSocialSecurity = [
    "000-12-3456", "666-12-3456", "900-12-3456", "999-99-9999", "123-00-4567", "123-45-0000", "123-45 6789",
    "1123-45-6789", "123-45-67890", "123-45-678", "12-345-6789", "2026-01-02", "123456789", "+49-123-45-6789",
    "123-45-6789-0",
  ]

  static let accounts = [
    "DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "pay to NL91ABNA0417164300, please",
    "iban de89370400440532013000", "gb82 west 1234 5698 7654 32", "be68 5390 0754 7034 and more",
    "pay to Nl91abna0417164300, please",
  ]
  static let noAccounts = [
    "DE89370400440532013001", "GB82 WEST 1234 5698 7654 33", "DE8937", "xDE89370400440532013000",
    "DE89370400440532013000x", "de89370400440532013001", "de89370400440532013000x",
    // Hashes with correct check digits.
    "ab86c0ffee0123456789abcdef0123", "de97ad0123456789abcdef0123456789",
  ]

  static let plain = [
    "", "dark", "Buy milk 🥛", "An 'old' task", "the bearer of bad news", "Bearer of",
    "Basic training is over", "a basic understanding", "https://example.com/a/b?page=2&sort=title#top",
    "https://ada@example.com/", "mailto:ada@example.com", "http://[::1]:8080/", "ratio 16:9 at 12:30",
    "see: password rules", "Password: ask Ada for it", "note: the token is gone", "tokens = none", "a=b; c=d",
    "key=ctrl+k", "2026-01-02T03:04:05.125Z", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90",
    "/Users/ada/Library/Preferences", "com.example.notes.plist", "{\"theme\": \"dark\", \"tokenCount\": 3}",
    "[1, 2, 3]", "{not json}", "<b>bold</b>",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "eyJ", "eyJust a word", "AKIA",
    "ghp_short", "sk-8 is a skate park", "SG. Hamburg", "AIza is a prefix", "task-force",
    "risk_live_and_well", "npm_modules", "hf_radio", "+49 30 123456", "030-1234-5678", "192.168.178.1:8080",
    "1/2/3", "-----", "----- BEGIN -----", "Cookies: yes please, two of them", "AGE-SECRET-KEY-1…",
    "passwordless=true", "session=on", "日本語 📝 テスト テスト テスト",
  ]
}

@Suite("Forms of secrets") struct SecretFormTests {
  @Test(arguments: MadeUp.tokens + MadeUp.others) func `A token tells what it is`(_ text: String) {
    #expect(SecretPattern.isSecret(text: text))
    for around in [
      "see \(text) there", "\"\(text)\"", "{\"a\": [\"\(text)\"]}", "(\(text))", "x\n\(text)\ny",
    ] {
      // What says something by the line it stands on may stand there alone.
      let isLine = text.contains(": ") && !text.contains("Bearer") && !text.contains("BEGIN")
      if isLine && !around.hasPrefix("x\n") { continue }
      #expect(SecretPattern.isSecret(text: around), "\(around)")
    }
  }

  @Test(arguments: MadeUp.cards + MadeUp.socialSecurity + MadeUp.accounts)
  func `Cards, numbers and accounts`(_ text: String) { #expect(SecretPattern.isSecret(text: text)) }

  @Test(arguments: MadeUp.plain + MadeUp.noCards + MadeUp.noSocialSecurity + MadeUp.noAccounts)
  func `What has the form of none is shown`(_ text: String) {
    #expect(!SecretPattern.isSecret(text: text))
    #expect(Redactor().shown(.string(text), key: "note") == "\"\(text)\"")
  }

  @Test func `The number of a card as a number`() {
    #expect(SecretPattern.isSecret(.integer(4_111_111_111_111_111), key: "n"))
    #expect(SecretPattern.isSecret(.unsigned(4_111_111_111_111_111), key: "n"))
    #expect(SecretPattern.isSecret(.real(4_111_111_111_111_111), key: "n"))
    for number: Int64 in [4_111_111_111_111_112, 1_767_323_045_125, .max, .min, 0, -1] {
      #expect(!SecretPattern.isSecret(.integer(number), key: "n"), "\(number)")
    }
    #expect(
      !SecretPattern.isSecret(.real(.nan), key: "pin") && !SecretPattern.isSecret(.real(1e300), key: "pin"))
    #expect(
      SecretPattern.isSecret(.real(4821), key: "pin") && !SecretPattern.isSecret(.real(48.5), key: "pin"))
  }

  @Test(arguments: 0..<20) func `Wherever a token stands in a text, it is found`(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let fillers = [
      "milk ", "🥛", "\n", "-", "  ", "(", "12 ", "ä, ", "\"", "https://example.com/ ", "\t", ": ", "= ",
    ]
    for _ in 0..<200 {
      let before = (0..<Int.random(in: 0...20, using: &random)).map { _ in
        fillers.randomElement(using: &random) ?? ""
      }.joined()
      let after = (0..<Int.random(in: 0...20, using: &random)).map { _ in
        fillers.randomElement(using: &random) ?? ""
      }.joined()
      let token = try #require(MadeUp.tokens.randomElement(using: &random))
      // A letter in front would make it another word.
      let text = before + " " + token + " " + after
      #expect(SecretPattern.isSecret(text: text), "\(text)")
      let shown = Redactor().shown(.dictionary(["a": .array([.string(text)])]), key: "b")
      #expect(!shown.contains(token) && shown.hasPrefix("{a: [(secret, "), "\(shown)")
    }
  }

  private static let pieces = [
    "-----BEGIN ", "eyJ", "://", ":", "=", "@", "4111", " ", "\"", "\\", "<", ">", "password", "DE89",
    "password: on x ", "a://b:c ", "\"token\":  ", "Basic ",
  ]

  @Test(arguments: 0..<10) func `Any bytes are looked at without a crash`(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for _ in 0..<300 {
      let text = (0..<Int.random(in: 0...40, using: &random)).map { _ in
        Bool.random(using: &random)
          ? Self.pieces.randomElement(using: &random) ?? ""
          : String(UnicodeScalar(UInt8.random(in: 0...255, using: &random)))
      }.joined()
      _ = SecretPattern.isSecret(text: text)
      _ = Redactor().shown(.data(Array(text.utf8)), key: text)
    }
  }

  @Test func `A secret is found under each of two spellings of one key`() {
    let token = "ghp_" + String(repeating: "a1", count: 20)
    let nested = PropertyListValue.string("{\"caf\u{E9}\": \"\(token)\", \"cafe\u{301}\": \"x\"}").document
    #expect(nested.map { SecretPattern.isSecret($0) } == true)
  }
}
