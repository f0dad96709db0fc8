/// Recognizes secrets by their form, anywhere in a text: keys and tokens with a known prefix, JSON Web Tokens, PEM blocks,
/// passwords in URLs, values assigned to a secret's name, card and account numbers. It is a single pass over the bytes, since
/// a text may be long and hostile.
struct SecretText {
  private let bytes: [UInt8]

  init(_ text: String) { bytes = Array(text.utf8) }

  static func isSecret(_ text: String) -> Bool {
    // No recognizable form is shorter.
    text.utf8.count >= 8 && SecretText(text).isSecret
  }

  private var isSecret: Bool {
    var isWordStart = true
    for index in bytes.indices {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "-") where has("-----BEGIN ", at: index): return true
      case UInt8(ascii: ":") where isURLPassword(index) || isAssignment(index): return true
      case UInt8(ascii: "="), UInt8(ascii: ">"): if isAssignment(index) { return true }
      default: break
      }
      let isWord = Self.isWord(byte)
      if isWord && isWordStart {
        if SecretToken.begins(at: index, in: bytes) || isScheme(index) { return true }
        if SecretNumber.begins(at: index, in: bytes) { return true }
      }
      isWordStart = !isWord
    }
    return false
  }

  static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte >= 0x80 || byte == UInt8(ascii: "_")
  }

  static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isSpace(_ byte: UInt8) -> Bool { byte <= 0x20 }

  private func has(_ text: StaticString, at index: Int) -> Bool {
    text.withUTF8Buffer { bytes[index...].starts(with: $0) }
  }

  // MARK: HTTP

  /// `Bearer …` and `Basic …`, as in a header.
  private func isScheme(_ index: Int) -> Bool {
    let length: Int
    switch bytes[index] | 0x20 {
    case UInt8(ascii: "b"):
      let word = bytes[index...].prefix(6).map { $0 | 0x20 }
      length = word.starts(with: "bearer".utf8) ? 6 : word.starts(with: "basic".utf8) ? 5 : 0
    default: return false
    }
    let start = index + length
    guard length > 0, start < bytes.count, bytes[start] == 0x20 else { return false }
    let value = bytes[start...].drop { $0 == 0x20 }.prefix { SecretToken.isTokenByte($0) }
    return value.count >= 8 && (value.contains(where: Self.isDigit) || value.count >= 20)
  }

  /// `user:password@` after `://`; the index is that of the first colon.
  private func isURLPassword(_ index: Int) -> Bool {
    guard has("://", at: index) else { return false }
    let authority = bytes[(index + 3)...].prefix { byte in
      !Self.isSpace(byte) && !"/?#\"'<>".utf8.contains(byte)
    }
    guard let at = authority.lastIndex(of: UInt8(ascii: "@")),
      let colon = authority[..<at].firstIndex(of: UInt8(ascii: ":"))
    else { return false }
    return at > colon + 1
  }

  // MARK: Assignments

  private static let longestName = 60

  /// `password=…`, `"token": "…"`, `Authorization: …`, `<secret>…`: a secret's name before the sign at an index, and a value
  /// after it.
  private func isAssignment(_ index: Int) -> Bool {
    var name = bytes[max(0, index - Self.longestName)..<index]
    while let last = name.last, last == 0x20 || "\"'\\]".utf8.contains(last) { name.removeLast() }
    let isQuoted = name.endIndex < index && bytes[index - 1] != 0x20
    let word = name.reversed().prefix {
      Self.isWord($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
    }
    guard word.count > 1, word.count < Self.longestName else { return false }
    let judged = SecretName(String(decoding: word.reversed(), as: UTF8.self))
    guard judged > .plain else { return false }
    if isQuoted, judged == .secret, opensDocument(behind: index) { return true }
    guard let value = value(behind: index) else { return false }
    let start = name.endIndex - word.count
    switch bytes[index] {
    case UInt8(ascii: ":") where !isQuoted:
      // In prose a colon means little: the assignment must be a separate line with one word after the colon.
      let header = String(decoding: word.reversed(), as: UTF8.self).lowercased()
      guard isLineStart(start), !value.isSpaced || Self.headers.contains(header) else { return false }
    case UInt8(ascii: ">"):
      guard start > 0, bytes[start - 1] == UInt8(ascii: "<") else { return false }
    default: break
    }
    return SecretPattern.isSecret(leaf: .string(value.text), name: judged, looksInside: false)
  }

  /// HTTP headers whose values have spaces.
  private static let headers: Set<String> = [
    "authorization", "proxy-authorization", "cookie", "set-cookie",
  ]

  /// Whether an index is the start of a line, after marks of list items, quotes and comments.
  private func isLineStart(_ index: Int) -> Bool {
    guard let before = bytes[..<index].last(where: { !Self.isBlank($0) && !"-*#/>|".utf8.contains($0) })
    else { return true }
    return before == 0x0A || before == 0x0D
  }

  /// Whether a list or an object follows, in truncated or corrupt JSON.
  private func opensDocument(behind index: Int) -> Bool {
    let next = bytes[(index + 1)...].first { !Self.isSpace($0) }
    return next == UInt8(ascii: "{") || next == UInt8(ascii: "[")
  }

  private struct Value {
    var text: String
    var isSpaced: Bool
  }

  private func value(behind index: Int) -> Value? {
    var start = index + 1
    while start < bytes.count, bytes[start] == 0x20 { start += 1 }
    while start < bytes.count, "\"'\\".utf8.contains(bytes[start]) { start += 1 }
    var end = start
    while end < bytes.count, end - start < 4096, !Self.isSpace(bytes[end]),
      !"\"'\\&;,<>{}[]()".utf8.contains(bytes[end])
    { end += 1 }
    // Not the `//` after a URL's scheme.
    guard end - start >= 3, !bytes[start...].starts(with: "//".utf8) else { return nil }
    let next = bytes[end...].first { !Self.isBlank($0) }
    return Value(
      text: String(decoding: bytes[start..<end], as: UTF8.self),
      isSpaced: next != nil && next != 0x0A && next != 0x0D)
  }
}

/// Keys and tokens with a known prefix.
enum SecretToken {
  private struct Form {
    var beginning: [UInt8]
    /// The minimum number of characters after the prefix.
    var length: Int

    init(_ beginning: String, _ length: Int) {
      (self.beginning, self.length) = (Array(beginning.utf8), length)
    }
  }

  private static let forms: [UInt8: [Form]] = Dictionary(grouping: list) { $0.beginning.first ?? 0 }

  private static let list: [Form] =
    ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"].map { Form($0, 20) }
    + [
      "glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glcbt-", "glimt-", "glagent-", "gloas-", "glsoat-",
      "glffct-",
    ].map { Form($0, 16) }
    + ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxe.", "xoxc-", "xoxd-", "xapp-"].map
  {
    Form($0, 10)
  }
    + ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"].map { Form($0, 10) }
    // Amazon's key identifiers, followed by sixteen capitals and digits.
    + ["AKIA", "ASIA", "ABIA", "ACCA"].map { Form($0, 16) }
    + [
      Form("AIza", 35), Form("ya29.", 20), Form("GOCSPX-", 20), Form("1//0", 30), Form("npm_", 30),
      Form("pypi-AgE", 30), Form("SG.", 40), Form("sk-ant-", 20), Form("sk-proj-", 20), Form("sk-", 32),
      Form("shpat_", 30), Form("shpss_", 30), Form("dop_v1_", 40), Form("hf_", 30), Form("sq0atp-", 20),
      Form("sq0csp-", 20), Form("EAACEdEose0cBA", 0), Form("AGE-SECRET-KEY-1", 10),
      Form("age-secret-key-1", 10),
      Form("AGE-PLUGIN-", 10), Form("PuTTY-User-Key-File", 0), Form("eyJ", 37),
    ]

  /// Whether a token starts at an index that starts a word.
  static func begins(at index: Int, in bytes: [UInt8]) -> Bool {
    guard let forms = forms[bytes[index]] else { return false }
    return forms.contains { form in
      guard bytes[index...].starts(with: form.beginning) else { return false }
      let rest = bytes[(index + form.beginning.count)...].prefix(4096).prefix(while: isTokenByte)
      if form.beginning.count == 4, form.length == 16 { return isKeyIdentifier(rest) }
      // Base64 of a JSON object; a short one is a JSON Web Token if it has dots.
      if form.beginning == Array("eyJ".utf8), isWebToken(rest) { return true }
      return rest.count >= form.length
    }
  }

  private static func isKeyIdentifier(_ rest: ArraySlice<UInt8>) -> Bool {
    rest.count == 16
      && rest.allSatisfy { SecretText.isDigit($0) || ($0 >= UInt8(ascii: "A") && $0 <= UInt8(ascii: "Z")) }
  }

  private static func isWebToken(_ rest: ArraySlice<UInt8>) -> Bool {
    let parts = rest.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count >= 3 && parts[0].count >= 8
      && parts[1].count + (parts.count > 3 ? parts[2].count : 0) >= 8
  }

  /// The bytes of base64 in both alphabets, and separators in tokens.
  static func isTokenByte(_ byte: UInt8) -> Bool {
    SecretText.isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || "-._~+/=".utf8.contains(byte)
  }

  /// Whether a whole text looks like a token of an unknown service: a long word of letters and digits.
  static func isLikely(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count >= 12, bytes.allSatisfy({ isTokenByte($0) || $0 == UInt8(ascii: ":") }) else {
      return false
    }
    let digits = bytes.count(where: SecretText.isDigit)
    let letters = bytes.count { ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) }
    // Excludes words, versions and dates (digits with a T).
    if digits >= 2 && letters >= 3 { return true }
    return bytes.count >= 24 && letters > 0 && mixesCases(bytes)
  }

  private static func mixesCases(_ bytes: [UInt8]) -> Bool {
    let changes = zip(bytes, bytes.dropFirst()).count { isUpper($0) != isUpper($1) }
    return changes * 3 > bytes.count
  }

  private static func isUpper(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
  }
}

/// Personal numbers: of payment cards, US social security, bank accounts.
enum SecretNumber {
  /// Whether such a number starts at an index that starts a word, without parts of another number around it.
  static func begins(at index: Int, in bytes: [UInt8]) -> Bool {
    if index > 0, "-.+#".utf8.contains(bytes[index - 1]) { return false }
    if SecretText.isDigit(bytes[index]) {
      return isCard(groups(from: index, in: bytes)) || isSocialSecurity(index, bytes)
    }
    return isAccount(index, bytes)
  }

  /// Whether a numeric value is a card number. Strict, since identifiers are as long.
  static func isCard(_ number: UInt64) -> Bool {
    let digits = String(number).utf8.map { Int($0) - 0x30 }
    return (15...16).contains(digits.count) && isCard([digits])
  }

  // MARK: Cards

  /// The groups of digits from an index on, separated by the same space or hyphen; none when adjacent to letters.
  private static func groups(from index: Int, in bytes: [UInt8]) -> [[Int]] {
    var groups: [[Int]] = [[]]
    var separator: UInt8?
    var at = index
    while at < bytes.count, at - index < 32 {
      let byte = bytes[at]
      if SecretText.isDigit(byte) {
        groups[groups.count - 1].append(Int(byte) - 0x30)
      } else if byte == 0x20 || byte == UInt8(ascii: "-"), separator == nil || separator == byte,
        at + 1 < bytes.count, SecretText.isDigit(bytes[at + 1])
      {
        separator = byte
        groups.append([])
      } else {
        break
      }
      at += 1
    }
    guard at < bytes.count else { return groups }
    let isInside =
      SecretText.isWord(bytes[at]) || (bytes[at] == UInt8(ascii: ".") && isDigit(after: at, bytes))
    return isInside ? [] : groups
  }

  private static func isDigit(after index: Int, _ bytes: [UInt8]) -> Bool {
    index + 1 < bytes.count && SecretText.isDigit(bytes[index + 1])
  }

  private static func isCard(_ groups: [[Int]]) -> Bool {
    let digits = groups.flatMap { $0 }
    guard (14...19).contains(digits.count), Set(digits).count > 1 else { return false }
    if groups.count > 1 {
      let sizes = groups.map(\.count)
      let isGrouped =
        sizes == [4, 6, 5] || sizes == [4, 6, 4]
        || sizes.dropLast().allSatisfy { $0 == 4 } && groups.count >= 4
      if !isGrouped { return false }
    }
    return isIssued(digits) && isLuhn(digits)
  }

  /// Whether an issuer uses numbers with this prefix and length.
  private static func isIssued(_ digits: [Int]) -> Bool {
    func beginning(_ count: Int) -> Int { digits.prefix(count).reduce(0) { $0 * 10 + $1 } }
    let (two, three, four) = (beginning(2), beginning(3), beginning(4))
    switch digits.count {
    case 14: return two == 36 || (38...39).contains(two) || (300...305).contains(three)
    case 15: return two == 34 || two == 37
    case 16, 19:
      if digits[0] == 4 || two == 62 || two == 65 { return true }
      if four == 6011 || (644...649).contains(three) || (3528...3589).contains(four) { return true }
      if [5018, 5020, 5038, 5893, 6304, 6759, 6761, 6762, 6763].contains(four) { return true }
      return digits.count == 16 && ((51...55).contains(two) || (2221...2720).contains(four))
    default: return false
    }
  }

  private static func isLuhn(_ digits: [Int]) -> Bool {
    let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
      let value = digit.offset.isMultiple(of: 2) ? digit.element : digit.element * 2
      return sum + (value > 9 ? value - 9 : value)
    }
    return sum.isMultiple(of: 10)
  }

  // MARK: Social security

  /// `078-05-1120`, with hyphens or spaces, without numbers that are never assigned.
  private static func isSocialSecurity(_ index: Int, _ bytes: [UInt8]) -> Bool {
    let form = Array(bytes[index...].prefix(12))
    guard form.count >= 11, form[3] == form[6], form[3] == 0x20 || form[3] == UInt8(ascii: "-") else {
      return false
    }
    if form.count == 12, SecretText.isWord(form[11]) || form[11] == UInt8(ascii: "-") { return false }
    func number(_ range: Range<Int>) -> Int? {
      form[range].reduce(0 as Int?) { sum, byte in
        SecretText.isDigit(byte) ? sum.map { $0 * 10 + Int(byte) - 0x30 } : nil
      }
    }
    guard let area = number(0..<3), let group = number(4..<6), let serial = number(7..<11) else {
      return false
    }
    return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
  }

  // MARK: Accounts

  /// An IBAN, in one piece or in groups of four, with correct check digits.
  private static func isAccount(_ index: Int, _ bytes: [UInt8]) -> Bool {
    func isUpper(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") }
    guard index + 15 <= bytes.count, isUpper(bytes[index]), isUpper(bytes[index + 1]),
      SecretText.isDigit(bytes[index + 2]), SecretText.isDigit(bytes[index + 3])
    else { return false }
    var compact: [UInt8] = []
    var at = index
    while at < bytes.count, compact.count < 34 {
      let byte = bytes[at]
      if isUpper(byte) || SecretText.isDigit(byte) {
        compact.append(byte)
      } else if byte == 0x20, at - index == compact.count + compact.count / 4 - 1,
        compact.count.isMultiple(of: 4)
      {
        // The end of a group of four, and maybe of the number.
        if isRight(compact) { return true }
      } else {
        break
      }
      at += 1
    }
    return (at == bytes.count || !SecretText.isWord(bytes[at])) && isRight(compact)
  }

  /// Whether the check digits are correct (ISO 7064).
  private static func isRight(_ account: [UInt8]) -> Bool {
    guard account.count >= 15 else { return false }
    let rotated = account.dropFirst(4) + account.prefix(4)
    let remainder = rotated.reduce(0) { sum, byte in
      SecretText.isDigit(byte)
        ? (sum * 10 + Int(byte) - 0x30) % 97 : (sum * 100 + Int(byte) - 0x41 + 10) % 97
    }
    return remainder == 1
  }
}
