import DrydockErrors

/// Recognizes secrets by their form, anywhere in a text: keys and tokens with a known prefix, JSON Web Tokens, PEM blocks,
/// passwords in URLs, values assigned to a secret's name, card and account numbers. It is a single pass over the bytes, since
/// a text may be long and hostile.
package struct SecretText {
  /// The kind of a secret that was recognized, with what distinguishes false positives. The texts are secret.
  package enum Form: Sendable {
    /// A key or token of a known service, such as `GitHub token`.
    case token(service: String, value: String)
    /// A PEM block, by its label, such as `RSA PRIVATE KEY`.
    case block(label: String)
    case urlPassword
    /// `Bearer …` or `Basic …`.
    case authorization(value: String)
    /// A value assigned to a secret's name; an empty one if it is a list or an object.
    case assignment(value: String)
    /// The number of a payment card or an account, or a social security number.
    case number
  }

  private let bytes: [UInt8]

  init(_ text: String) { bytes = Array(text.utf8) }

  package init(bytes: [UInt8]) { self.bytes = bytes }

  package static func isSecret(_ text: String) -> Bool {
    // No recognizable form is shorter.
    text.utf8.count >= 8 && SecretText(text).first { _ in true } != nil
  }

  /// The first form in the text that is accepted.
  package func first(where accepts: (Form) -> Bool) -> Form? {
    var isWordStart = true
    for index in bytes.indices {
      let byte = bytes[index]
      var found: [Form?] = []
      switch byte {
      case UInt8(ascii: "-") where has("-----BEGIN ", at: index): found = [block(at: index)]
      case UInt8(ascii: ":"): found = [isURLPassword(index) ? .urlPassword : nil, assignment(index)]
      case UInt8(ascii: "="), UInt8(ascii: ">"): found = [assignment(index)]
      default: break
      }
      let isWord = Self.isWord(byte)
      if isWord && isWordStart {
        if let token = Self.token(at: index, in: bytes), accepts(token) { return token }
        if let scheme = scheme(index), accepts(scheme) { return scheme }
        if Self.isNumber(at: index, in: bytes), accepts(.number) { return .number }
      }
      isWordStart = !isWord
      if let form = found.lazy.compactMap({ $0 }).first(where: accepts) { return form }
    }
    return nil
  }

  private func block(at index: Int) -> Form {
    let label = bytes[(index + 11)...].prefix(64).prefix { $0 != UInt8(ascii: "-") && $0 != 0x0A }
    return .block(label: String(decoding: label, as: UTF8.self))
  }

  static func isWord(_ byte: UInt8) -> Bool {
    byte.isDigit || byte.isLetter || byte >= 0x80 || byte == UInt8(ascii: "_")
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isSpace(_ byte: UInt8) -> Bool { byte <= 0x20 }

  private func has(_ text: StaticString, at index: Int) -> Bool {
    text.withUTF8Buffer { bytes[index...].starts(with: $0) }
  }

  // MARK: HTTP

  /// `Bearer …` and `Basic …`, as in a header.
  private func scheme(_ index: Int) -> Form? {
    let length: Int
    switch bytes[index] | 0x20 {
    case UInt8(ascii: "b"):
      let word = bytes[index...].prefix(6).map { $0 | 0x20 }
      length = word.starts(with: "bearer".utf8) ? 6 : word.starts(with: "basic".utf8) ? 5 : 0
    default: return nil
    }
    let start = index + length
    guard length > 0, start < bytes.count, bytes[start] == 0x20 else { return nil }
    let value = bytes[start...].drop { $0 == 0x20 }.prefix { Self.isTokenByte($0) }
    guard value.count >= 8, value.contains(where: \.isDigit) || value.count >= 20 else { return nil }
    return .authorization(value: String(decoding: value, as: UTF8.self))
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
  private func assignment(_ index: Int) -> Form? {
    var name = bytes[max(0, index - Self.longestName)..<index]
    while let last = name.last, last == 0x20 || "\"'\\]".utf8.contains(last) { name.removeLast() }
    let isQuoted = name.endIndex < index && bytes[index - 1] != 0x20
    let word = name.reversed().prefix {
      Self.isWord($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
    }
    guard word.count > 1, word.count < Self.longestName else { return nil }
    let judged = SecretName(String(decoding: word.reversed(), as: UTF8.self))
    guard judged > .plain else { return nil }
    if isQuoted, judged == .secret, opensDocument(behind: index) { return .assignment(value: "") }
    guard let value = value(behind: index) else { return nil }
    let start = name.endIndex - word.count
    switch bytes[index] {
    case UInt8(ascii: ":") where !isQuoted:
      // In prose a colon means little: the assignment must be a separate line with one word after the colon, or, as in a
      // log, have a name of several words, which is not a file's, and a value that is not a word.
      let header = String(decoding: word.reversed(), as: UTF8.self)
      let isHeader = Self.headers.contains(header.lowercased())
      let isName =
        SecretName.words(header).count > 1 && !header.contains(".")
        && (start == 0 || bytes[start - 1] != UInt8(ascii: "/"))
      guard
        isLineStart(start) && (!value.isSpaced || isHeader)
          || (isHeader || isName) && value.text.utf8.count >= 8
            && value.text.utf8.contains(where: \.isDigit)
      else { return nil }
    case UInt8(ascii: ">"):
      guard start > 0, bytes[start - 1] == UInt8(ascii: "<") else { return nil }
    default: break
    }
    return SecretPattern.isSecret(leaf: .string(value.text), name: judged, looksInside: false)
      ? .assignment(value: value.text) : nil
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

  /// The value after the sign at an index, and whether more text follows in its line.
  private func value(behind index: Int) -> (text: String, isSpaced: Bool)? {
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
    return (
      String(decoding: bytes[start..<end], as: UTF8.self), next != nil && next != 0x0A && next != 0x0D
    )
  }
}

// MARK: Tokens

extension SecretText {
  /// The beginning of a known service's keys or tokens, and the minimum number of characters after it.
  private typealias Prefix = (service: String, beginning: [UInt8], length: Int)

  private static func prefixes(_ service: String, _ length: Int, _ beginnings: String...) -> [Prefix] {
    beginnings.map { (service, Array($0.utf8), length) }
  }

  private static let prefixes: [UInt8: [Prefix]] = Dictionary(grouping: knownPrefixes) {
    $0.beginning.first ?? 0
  }

  private static let knownPrefixes: [Prefix] = [
    prefixes("GitHub token", 20, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    prefixes(
      "GitLab token", 16, "glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glcbt-", "glimt-", "glagent-",
      "gloas-", "glsoat-", "glffct-"),
    prefixes(
      "Slack token", 10, "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxe.", "xoxc-",
      "xoxd-", "xapp-"),
    prefixes("Stripe key", 10, "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
    // Amazon's key identifiers, followed by sixteen capitals and digits.
    prefixes(amazon, 16, "AKIA", "ASIA", "ABIA", "ACCA"),
    prefixes("Google API key", 35, "AIza"), prefixes("Google token", 20, "ya29.", "GOCSPX-"),
    prefixes("Google token", 30, "1//0"), prefixes("npm token", 30, "npm_"),
    prefixes("PyPI token", 30, "pypi-AgE"), prefixes("SendGrid key", 40, "SG."),
    prefixes("API key", 20, "sk-ant-", "sk-proj-"), prefixes("API key", 32, "sk-"),
    prefixes("Shopify token", 30, "shpat_", "shpss_"), prefixes("DigitalOcean token", 40, "dop_v1_"),
    prefixes("Hugging Face token", 30, "hf_"), prefixes("Square token", 20, "sq0atp-", "sq0csp-"),
    prefixes("Facebook token", 0, "EAACEdEose0cBA"),
    prefixes("age secret key", 10, "AGE-SECRET-KEY-1", "age-secret-key-1", "AGE-PLUGIN-"),
    prefixes("PuTTY key", 0, "PuTTY-User-Key-File"), prefixes(encodedJSON, 37, "eyJ"),
  ].flatMap { $0 }

  private static let amazon = "AWS key"
  /// Any JSON object in base64.
  package static let encodedJSON = "base64 of JSON"

  /// Whether a token starts at an index that starts a word.
  private static func token(at index: Int, in bytes: [UInt8]) -> Form? {
    guard let prefixes = prefixes[bytes[index]] else { return nil }
    for prefix in prefixes where bytes[index...].starts(with: prefix.beginning) {
      let rest = bytes[(index + prefix.beginning.count)...].prefix(4096).prefix(while: isTokenByte)
      let value = String(decoding: prefix.beginning + rest, as: UTF8.self)
      if prefix.service == amazon {
        if isKeyIdentifier(rest) { return .token(service: amazon, value: value) }
        continue
      }
      // Base64 of a JSON object; a short one is a JSON Web Token if it has dots.
      if prefix.service == encodedJSON, isWebToken(rest) {
        return .token(service: "JSON Web Token", value: value)
      }
      if rest.count >= prefix.length { return .token(service: prefix.service, value: value) }
    }
    return nil
  }

  private static func isKeyIdentifier(_ rest: ArraySlice<UInt8>) -> Bool {
    rest.count == 16
      && rest.allSatisfy { $0.isDigit || $0.isCapital }
  }

  private static func isWebToken(_ rest: ArraySlice<UInt8>) -> Bool {
    let parts = rest.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count >= 3 && parts[0].count >= 8
      && parts[1].count + (parts.count > 3 ? parts[2].count : 0) >= 8
  }

  /// The bytes of base64 in both alphabets, and separators in tokens.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    byte.isDigit || byte.isLetter || "-._~+/=".utf8.contains(byte)
  }

  /// Whether a whole text looks like a token of an unknown service: a long word of letters and digits.
  static func isLikelyToken(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    guard bytes.count >= 12, bytes.allSatisfy({ isTokenByte($0) || $0 == UInt8(ascii: ":") }) else {
      return false
    }
    let digits = bytes.count(where: \.isDigit)
    let letters = bytes.count(where: \.isLetter)
    // Excludes words, versions and dates (digits with a T).
    if digits >= 2 && letters >= 3 { return true }
    return bytes.count >= 24 && letters > 0 && mixesCases(bytes)
  }

  private static func mixesCases(_ bytes: [UInt8]) -> Bool {
    let changes = zip(bytes, bytes.dropFirst()).count { $0.isCapital != $1.isCapital }
    return changes * 3 > bytes.count
  }
}

// MARK: Numbers

extension SecretText {
  /// Whether a personal number, of a payment card, US social security or a bank account, starts at an index that starts a
  /// word, without parts of another number around it.
  private static func isNumber(at index: Int, in bytes: [UInt8]) -> Bool {
    if index > 0, "-.+#".utf8.contains(bytes[index - 1]) { return false }
    if bytes[index].isDigit {
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
      if byte.isDigit {
        groups[groups.count - 1].append(Int(byte) - 0x30)
      } else if byte == 0x20 || byte == UInt8(ascii: "-"), separator == nil || separator == byte,
        at + 1 < bytes.count, bytes[at + 1].isDigit
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
      isWord(bytes[at]) || (bytes[at] == UInt8(ascii: ".") && isDigit(after: at, bytes))
    return isInside ? [] : groups
  }

  private static func isDigit(after index: Int, _ bytes: [UInt8]) -> Bool {
    index + 1 < bytes.count && bytes[index + 1].isDigit
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
    if form.count == 12, isWord(form[11]) || form[11] == UInt8(ascii: "-") { return false }
    func number(_ range: Range<Int>) -> Int? {
      form[range].reduce(0 as Int?) { sum, byte in
        byte.isDigit ? sum.map { $0 * 10 + Int(byte) - 0x30 } : nil
      }
    }
    guard let area = number(0..<3), let group = number(4..<6), let serial = number(7..<11) else {
      return false
    }
    return area != 0 && area != 666 && area < 900 && group != 0 && serial != 0
  }

  // MARK: Accounts

  /// An IBAN, in one piece or in groups of four, with correct check digits. With small letters it also has the length
  /// that its country uses, since hashes in hexadecimal begin in the same way.
  private static func isAccount(_ index: Int, _ bytes: [UInt8]) -> Bool {
    guard index + 15 <= bytes.count, bytes[index].isLetter, bytes[index + 1].isLetter,
      bytes[index + 2].isDigit, bytes[index + 3].isDigit
    else { return false }
    var compact: [UInt8] = []
    var isSmall = false
    var at = index
    func isFound() -> Bool {
      hasCorrectCheckDigits(compact)
        && (!isSmall || accountLengths[String(decoding: compact.prefix(2), as: UTF8.self)] == compact.count)
    }
    while at < bytes.count, compact.count < 34 {
      let byte = bytes[at]
      if byte.isLetter || byte.isDigit {
        isSmall = isSmall || byte >= 0x61
        compact.append(byte >= 0x61 ? byte & ~0x20 : byte)
      } else if byte == 0x20, at - index == compact.count + compact.count / 4 - 1,
        compact.count.isMultiple(of: 4)
      {
        // The end of a group of four, and maybe of the number.
        if isFound() { return true }
      } else {
        break
      }
      at += 1
    }
    return (at == bytes.count || !isWord(bytes[at])) && isFound()
  }

  /// The length of an IBAN by its country.
  private static let accountLengths: [String: Int] = Dictionary(
    uniqueKeysWithValues: """
      AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24
      FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32
      LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24
      RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30
      """.split(whereSeparator: \.isWhitespace).map { (String($0.prefix(2)), Int($0.dropFirst(2)) ?? 0) })

  /// Whether the check digits are correct (ISO 7064).
  private static func hasCorrectCheckDigits(_ account: [UInt8]) -> Bool {
    guard account.count >= 15 else { return false }
    let rotated = account.dropFirst(4) + account.prefix(4)
    let remainder = rotated.reduce(0) { sum, byte in
      byte.isDigit
        ? (sum * 10 + Int(byte) - 0x30) % 97 : (sum * 100 + Int(byte) - 0x41 + 10) % 97
    }
    return remainder == 1
  }
}
