import Foundation

// The YAML 1.2 core schema: the types of plain scalars. Yams' own resolver follows YAML 1.1, where `no` is false and
// `12:30` is 750.
extension YAMLScalar {
  /// The value of a plain scalar; nil for a number that does not fit 64 bits.
  package static func resolve(_ text: String) -> PropertyListValue? {
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .boolean(true)
    case "false", "False", "FALSE": return .boolean(false)
    case ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF": return .real(.infinity)
    case "-.inf", "-.Inf", "-.INF": return .real(-.infinity)
    case ".nan", ".NaN", ".NAN": return .real(.nan)
    default: break
    }
    if text.hasPrefix("0o") { return integer(text, radix: 8) }
    if text.hasPrefix("0x") { return integer(text, radix: 16) }
    // Leading zeros are allowed: `0777` is 777 in YAML 1.2 (octal is `0o777`).
    if let value = Int64(text) { return .integer(value) }
    if let value = UInt64(text) { return .unsigned(value) }
    return real(text)
  }

  /// A number after `0o` or `0x`.
  private static func integer(_ text: String, radix: Int) -> PropertyListValue? {
    let digits = text.dropFirst(2)
    guard !digits.isEmpty, digits.allSatisfy({ $0.isASCII && $0.hexDigitValue ?? radix < radix }) else {
      return .string(text)
    }
    return Int64(digits, radix: radix).map { .integer($0) }
      ?? UInt64(digits, radix: radix).map { .unsigned($0) }
  }

  /// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`, which of these characters is all that `Double`
  /// accepts.
  private static func real(_ text: String) -> PropertyListValue? {
    guard text.utf8.allSatisfy("0123456789+-.eE".utf8.contains) else { return .string(text) }
    guard let value = Double(text) else { return .string(text) }
    // An integer that got here does not fit 64 bits.
    return value.isFinite && text.contains { ".eE".contains($0) } ? .real(value) : nil
  }
}

// Scalars with an explicit tag: the standard ones, `!date` and `!data` for property lists, and Android's types of numbers.
extension YAMLScalar {
  private static let tagPrefix = "tag:yaml.org,2002:"
  private static let scalarTags = [
    "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary", "!date", "!data",
    "!int", "!long", "!float",
  ]

  /// The value of `text` with a tag as the parser expands it, or an error at `position`.
  static func value(of text: String, tag: String, at position: YAMLPosition) throws -> PropertyListValue {
    let name = writtenTag(tag)
    let resolved = resolve(text)
    switch name {
    case "!!str": return .string(text)
    case "!!null":
      if resolved?.isNull == true { return .null }
    case "!!bool":
      if case .boolean = resolved, let resolved { return resolved }
    case "!!int":
      switch resolved {
      case .integer, .unsigned: return resolved ?? .null
      default: break
      }
    case "!int":
      if case .integer(let number) = resolved, let number = Int32(exactly: number) { return .int(number) }
    case "!long":
      if case .integer(let number) = resolved { return .long(number) }
    case "!float":
      // The nearest one: `!float 0.1` is what the app stores for 0.1.
      switch resolved {
      case .real(let value) where Float(value).isFinite == value.isFinite: return .single(Float(value))
      case .integer(let value): return .single(Float(value))
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
  static func writtenTag(_ tag: String) -> String {
    tag.hasPrefix(tagPrefix) ? "!!" + tag.dropFirst(tagPrefix.count) : tag
  }
}

// Plain scalars that mean something else in YAML 1.1, and are noted because people write them out of habit.
extension YAMLScalar {
  /// The meaning in YAML 1.1, to complete "YAML 1.1 reads …"; nil when both versions agree.
  static func legacyReading(of text: String) -> String? {
    switch text {
    case "yes", "Yes", "YES", "on", "On", "ON", "y", "Y": return "the Bool true"
    case "no", "No", "NO", "off", "Off", "OFF", "n", "N": return "the Bool false"
    default: break
    }
    guard let first = text.utf8.first, "0123456789+-.".utf8.contains(first) else { return nil }
    if text.wholeMatch(of: /[-+]?0[0-7_]+/) != nil { return "an octal number" }
    if Int64(text) != nil { return nil }
    if text.wholeMatch(of: /[-+]?0b[01_]+/) != nil { return "a binary number" }
    if text.wholeMatch(of: /[-+]?[0-9_]+(:[0-5]?[0-9])+(\.[0-9]*)?/) != nil { return "a number in base 60" }
    if text.utf8.count >= 8, YAMLDate.parse(text) != nil { return "a date" }
    switch resolve(text.replacing("_", with: "")) {
    case .integer, .unsigned, .real: return text.contains("_") ? "a number" : nil
    default: return nil
    }
  }

  /// The note on it, if any.
  var note: String? {
    guard let reading = legacyReading else { return nil }
    if case .integer(let value) = value {
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
}
