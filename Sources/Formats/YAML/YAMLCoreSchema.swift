/// The YAML 1.2 core schema: which type a plain scalar has. Yams' own resolver follows YAML 1.1, where `no`
/// is false and `12:30` is 750; a setting's value must not change by how it looks.
enum YAMLCoreSchema {
  /// The value of a plain scalar, or nil when it is a number that does not fit 64 bits.
  static func resolve(_ text: String) -> YAMLScalar.Value? {
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .boolean(true)
    case "false", "False", "FALSE": return .boolean(false)
    case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF": return .real(.infinity)
    case "-.inf", "-.Inf", "-.INF": return .real(-.infinity)
    case ".nan", ".NaN", ".NAN": return .real(.nan)
    default: break
    }
    let bytes = Array(text.utf8)
    if isInteger(bytes) { return integer(text, radix: 10) }
    if let digits = prefixed(bytes, "0o", { $0 >= 0x30 && $0 <= 0x37 }) { return integer(digits, radix: 8) }
    if let digits = prefixed(bytes, "0x", isHexadecimal) { return integer(digits, radix: 16) }
    if isReal(bytes) { return real(text) }
    return .text(text)
  }

  /// The integer, also with leading zeros: `0777` is 777 in YAML 1.2 (octal is `0o777`).
  private static func integer(_ text: String, radix: Int) -> YAMLScalar.Value? {
    if let value = Int64(text, radix: radix) { return .integer(value) }
    return UInt64(text, radix: radix).map { .unsigned($0) }
  }

  private static func real(_ text: String) -> YAMLScalar.Value? {
    // `1.` and `.5` are reals in YAML; Swift's parser wants digits on both sides.
    var digits = text
    if let dot = digits.firstIndex(of: ".") {
      let after = digits.index(after: dot)
      if after == digits.endIndex || !digits[after].isNumber { digits.insert("0", at: after) }
      if dot == digits.startIndex || !digits[digits.index(before: dot)].isNumber {
        digits.insert("0", at: dot)
      }
    }
    return Double(digits).flatMap { $0.isFinite ? .real($0) : nil }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)
  }

  private static func isSign(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") }

  /// `[-+]? [0-9]+`
  private static func isInteger(_ bytes: [UInt8]) -> Bool {
    let digits = bytes.first.map(isSign) == true ? bytes.dropFirst() : bytes[...]
    return !digits.isEmpty && digits.allSatisfy(isDigit)
  }

  private static func prefixed(
    _ bytes: [UInt8], _ prefix: String, _ isAllowed: (UInt8) -> Bool
  ) -> String? {
    guard bytes.starts(with: Array(prefix.utf8)) else { return nil }
    let digits = bytes.dropFirst(prefix.utf8.count)
    return !digits.isEmpty && digits.allSatisfy(isAllowed) ? String(decoding: digits, as: UTF8.self) : nil
  }

  /// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
  private static func isReal(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    func takeDigits() -> Int {
      let digits = rest.prefix(while: isDigit)
      rest = rest.dropFirst(digits.count)
      return digits.count
    }
    if let first = rest.first, isSign(first) { rest = rest.dropFirst() }
    let whole = takeDigits()
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      if takeDigits() == 0 && whole == 0 { return false }
    } else if whole == 0 {
      return false
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      if let sign = rest.first, isSign(sign) { rest = rest.dropFirst() }
      if takeDigits() == 0 { return false }
    }
    return rest.isEmpty
  }
}
