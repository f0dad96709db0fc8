/// How YAML 1.1 readers understand plain scalars that mean something else in YAML 1.2: what a person writes
/// out of habit, and what this tool must not take silently for something else.
enum YAMLLegacy {
  /// What YAML 1.1 reads, in words for "YAML 1.1 reads …", or nil when both versions agree.
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

  /// The remark for a plain scalar, or nil.
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
