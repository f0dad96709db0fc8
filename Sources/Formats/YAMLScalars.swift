import Foundation

/// The YAML 1.2 core schema: the types of plain scalars. Yams' own resolver follows YAML 1.1, where `no` is false and
/// `12:30` is 750.
enum YAMLCoreSchema {
  /// The value of a plain scalar; nil for a number that does not fit 64 bits.
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

  /// Leading zeros are allowed: `0777` is 777 in YAML 1.2 (octal is `0o777`).
  private static func integer(_ text: String, radix: Int) -> YAMLScalar.Value? {
    if let value = Int64(text, radix: radix) { return .integer(value) }
    return UInt64(text, radix: radix).map { .unsigned($0) }
  }

  private static func real(_ text: String) -> YAMLScalar.Value? {
    // `1.` and `.5` are reals in YAML; Swift's parser needs digits on both sides.
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

/// Scalars with an explicit tag: the standard ones, and `!date` and `!data` for property lists.
enum YAMLTags {
  private static let prefix = "tag:yaml.org,2002:"
  private static let scalarTags = [
    "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary", "!date", "!data",
  ]

  /// The value of `text` with a tag as the parser expands it, or an error at `position`.
  static func value(of text: String, tag: String, at position: YAMLPosition) throws -> YAMLScalar.Value {
    let name = written(tag)
    let resolved = YAMLCoreSchema.resolve(text)
    switch name {
    case "!!str": return .text(text)
    case "!!null":
      if resolved == .null { return .null }
    case "!!bool":
      if case .boolean = resolved, let resolved { return resolved }
    case "!!int":
      switch resolved {
      case .integer, .unsigned: return resolved ?? .null
      default: break
      }
    case "!!float":
      switch resolved {
      case .real(let value): return .real(value)
      case .integer(let value): return .real(Double(value))
      case .unsigned(let value): return .real(Double(value))
      default: break
      }
    case "!!binary", "!data":
      let packed = String(text.unicodeScalars.filter { !$0.properties.isWhitespace })
      if let data = Data(base64Encoded: packed) { return .data([UInt8](data)) }
      throw position.error("`\(name)` needs base64")
    case "!date", "!!timestamp":
      if let date = YAMLDate.parse(text) { return .date(date) }
      throw position.error(
        "`\(text)` is not a date: write `!date 2026-11-20T10:15:00Z` (fractions and ±hh:mm are allowed)")
    default:
      throw position.error(
        "unknown tag `\(name)`; \(NearestWord.hint(for: name, among: scalarTags))")
    }
    throw position.error("`\(text)` is not a value of the type \(name)")
  }

  /// The tag as written in a file.
  static func written(_ tag: String) -> String {
    tag.hasPrefix(prefix) ? "!!" + tag.dropFirst(prefix.count) : tag
  }
}

/// Plain scalars that mean something else in YAML 1.1, and are noted because people write them out of habit.
enum YAMLLegacy {
  /// The meaning in YAML 1.1, to complete "YAML 1.1 reads …"; nil when both versions agree.
  static func reading(of text: String) -> String? {
    switch text {
    case "yes", "Yes", "YES", "on", "On", "ON", "y", "Y": return "the Bool true"
    case "no", "No", "NO", "off", "Off", "OFF", "n", "N": return "the Bool false"
    default: break
    }
    let bytes = Array(text.utf8)
    guard let first = bytes.first, isDigit(first) || "+-.".utf8.contains(first) else { return nil }
    if isOctal(bytes) { return "an octal number" }
    if isBinary(bytes) { return "a binary number" }
    if isSexagesimal(bytes) { return "a number in base 60" }
    if isTimestamp(bytes) { return "a date" }
    if bytes.contains(UInt8(ascii: "_")), isGrouped(bytes) { return "a number" }
    return nil
  }

  /// The note on a plain scalar, if any.
  static func note(for scalar: YAMLScalar) -> String? {
    guard let reading = scalar.legacyReading else { return nil }
    let source = scalar.source
    if case .integer(let value) = scalar.value {
      return "`\(source)` is the number \(value) here (YAML 1.2), where YAML 1.1 reads \(reading): "
        + "write \(value), or 0o for octal, or quote it for text"
    }
    let advice =
      switch reading {
      case "the Bool true": "or write true"
      case "the Bool false": "or write false"
      case "a date": "or write !date \(source)"
      default: "or write the number plainly"
      }
    return "`\(source)` is text here (YAML 1.2), where YAML 1.1 reads \(reading): quote it, \(advice)"
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

  private static func unsigned(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
    bytes.first == UInt8(ascii: "+") || bytes.first == UInt8(ascii: "-") ? bytes.dropFirst() : bytes[...]
  }

  private static func isOctal(_ bytes: [UInt8]) -> Bool {
    let digits = unsigned(bytes)
    return digits.count > 1 && digits.first == 0x30
      && digits.dropFirst().allSatisfy { ($0 >= 0x30 && $0 <= 0x37) || $0 == UInt8(ascii: "_") }
  }

  private static func isBinary(_ bytes: [UInt8]) -> Bool {
    let digits = unsigned(bytes)
    return digits.count > 2 && digits.starts(with: Array("0b".utf8))
      && digits.dropFirst(2).allSatisfy { $0 == 0x30 || $0 == 0x31 || $0 == UInt8(ascii: "_") }
  }

  private static func isSexagesimal(_ bytes: [UInt8]) -> Bool {
    let parts = unsigned(bytes).split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    guard parts.count > 1, let head = parts.first, let last = parts.last, !head.isEmpty else { return false }
    let fraction = last.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard fraction.count <= 2, let whole = fraction.first else { return false }
    let middle = parts.dropFirst().dropLast() + [whole]
    let isSixty = middle.allSatisfy { part in
      (1...2).contains(part.count) && part.allSatisfy(isDigit) && (part.count == 1 || part.first ?? 0 < 0x36)
    }
    return isSixty && head.allSatisfy { isDigit($0) || $0 == UInt8(ascii: "_") }
      && fraction.dropFirst().allSatisfy { $0.allSatisfy(isDigit) }
  }

  private static func isTimestamp(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 8 else { return false }
    return YAMLDate.parse(String(decoding: bytes, as: UTF8.self)) != nil
  }

  private static func isGrouped(_ bytes: [UInt8]) -> Bool {
    let plain = bytes.filter { $0 != UInt8(ascii: "_") }
    guard bytes.first != UInt8(ascii: "_") else { return false }
    switch YAMLCoreSchema.resolve(String(decoding: plain, as: UTF8.self)) {
    case .integer, .unsigned, .real: return true
    default: return false
    }
  }
}
