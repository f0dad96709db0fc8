import Foundation

/// Finds many patterns in bytes at once.
struct PatternIndex: Sendable {
  /// What must not be beside a pattern for it to count.
  enum Bound: Sendable { case none, digit, letter }

  struct Pattern: Sendable {
    var bytes: [UInt8]
    /// Whether the letters A to Z may be in either case.
    var ignoresCase = true
    var bound = Bound.none
  }

  /// Something that was found: where, and the pattern's number.
  struct Match {
    var range: Range<Int>
    var pattern: Int
  }

  /// Patterns of fewer bytes are found through their first three.
  static let least = 6

  private let patterns: [Pattern]
  private var long: [UInt64: [Int]] = [:]
  private var short: [UInt64: [Int]] = [:]
  /// A bit for the hash of each long pattern's first bytes: most places are passed over by it.
  private var filter = [UInt64](repeating: 0, count: 1 << 14)

  /// An index of patterns with at least three bytes; others are never found.
  init(_ patterns: [Pattern]) {
    self.patterns = patterns
    for (number, pattern) in patterns.enumerated() where pattern.bytes.count >= 3 {
      if pattern.bytes.count < Self.least {
        short[Self.key(pattern.bytes, at: 0, 3), default: []].append(number)
      } else {
        let key = Self.key(pattern.bytes, at: 0, Self.least)
        long[key, default: []].append(number)
        let bit = Self.hash(key)
        filter[bit >> 6] |= 1 << UInt64(bit & 63)
      }
    }
    // The longest one that fits is meant.
    let longest: ([Int]) -> [Int] = { $0.sorted { patterns[$0].bytes.count > patterns[$1].bytes.count } }
    long = long.mapValues(longest)
    short = short.mapValues(longest)
  }

  /// All matches, none of which covers another.
  ///
  /// - Parameter includesShort: whether patterns of fewer than six bytes count.
  func matches(in bytes: [UInt8], includesShort: Bool) -> [Match] {
    guard !patterns.isEmpty else { return [] }
    var matches: [Match] = []
    var index = 0
    while index < bytes.count {
      if let match = match(at: index, in: bytes, includesShort) {
        matches.append(match)
        index = match.range.upperBound
      } else {
        index += 1
      }
    }
    return matches
  }

  private func match(at index: Int, in bytes: [UInt8], _ includesShort: Bool) -> Match? {
    if index + Self.least <= bytes.count, !long.isEmpty {
      let key = Self.key(bytes, at: index, Self.least)
      let bit = Self.hash(key)
      if filter[bit >> 6] & (1 << UInt64(bit & 63)) != 0,
        let found = first(of: long[key], at: index, in: bytes)
      {
        return found
      }
    }
    guard includesShort, !short.isEmpty, index + 3 <= bytes.count else { return nil }
    return first(of: short[Self.key(bytes, at: index, 3)], at: index, in: bytes)
  }

  private func first(of candidates: [Int]?, at index: Int, in bytes: [UInt8]) -> Match? {
    for number in candidates ?? [] where stands(patterns[number], at: index, in: bytes) {
      return Match(range: index..<(index + patterns[number].bytes.count), pattern: number)
    }
    return nil
  }

  private func stands(_ pattern: Pattern, at index: Int, in bytes: [UInt8]) -> Bool {
    let end = index + pattern.bytes.count
    guard end <= bytes.count else { return false }
    for (offset, byte) in pattern.bytes.enumerated() {
      let other = bytes[index + offset]
      guard byte == other || pattern.ignoresCase && Self.folded(byte) == Self.folded(other) else {
        return false
      }
    }
    let before = index > 0 ? bytes[index - 1] : 0x20
    let after = end < bytes.count ? bytes[end] : 0x20
    switch pattern.bound {
    case .none: return true
    case .digit: return !Self.isDigit(before) && !Self.isDigit(after)
    case .letter: return !Self.isLetter(before) && !Self.isLetter(after)
    }
  }

  private static func key(_ bytes: [UInt8], at index: Int, _ count: Int) -> UInt64 {
    var key: UInt64 = 0
    for offset in 0..<count { key = key << 8 | UInt64(folded(bytes[index + offset])) }
    return key
  }

  private static func hash(_ key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> 44) }
  private static func folded(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }
  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
  private static func isLetter(_ byte: UInt8) -> Bool {
    isDigit(byte) || byte >= 0x80 || byte == UInt8(ascii: "_") || (0x61...0x7A).contains(folded(byte))
  }
}

/// The ways in which a text may be encoded in a file.
enum OriginalForms {
  struct Form: Sendable {
    var encode: @Sendable (String) -> [UInt8]
  }

  /// The text as it is; then quoted, escaped and encoded. A capital stays one in each.
  static let all: [Form] = [
    Form { Array($0.utf8) },
    Form { Array($0.replacing("'", with: "''").utf8) },
    Form { escaped($0, { ["\"": "\\\"", "\\": "\\\\", "\t": "\\t"][$0] }) },
    Form { escaped($0, { ["\"": "\\\"", "\\": "\\\\", "\t": "\\t", "/": "\\/"][$0] }) },
    Form { escaped($0, { unicode($0) ?? ["\"": "\\\"", "\\": "\\\\", "\t": "\\t"][$0] }) },
    Form { escaped($0, { ["&": "&amp;", "<": "&lt;", ">": "&gt;"][$0] }) },
    Form { escaped($0, { ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&apos;"][$0] }) },
    Form { escaped($0, { ["&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;", "'": "&#39;"][$0] }) },
    Form { percent($0, plain: "-._~") },
    Form { percent($0, plain: "") },
    Form { $0.utf8.flatMap(percent) },
    Form { $0.utf16.flatMap(unicode) },
    Form { percent($0, plain: "-._~@:/!$&'()*+,;=?") },
    Form { percent($0, plain: "-._*", space: "+") },
    Form { Array($0.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }) },
    Form { Array($0.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }) },
  ]

  /// Base64 of the text inside of something longer, for each place in a group of three bytes; in both alphabets.
  private static func base64(_ bytes: [UInt8]) -> [[UInt8]] {
    (0..<3).flatMap { offset -> [[UInt8]] in
      let text = Array(Data([UInt8](repeating: 0, count: offset) + bytes).base64EncodedString().utf8)
      // Only digits of which the text alone decides all six bits.
      let start = (offset * 8 + 5) / 6
      let end = (offset + bytes.count) * 8 / 6
      guard start < end else { return [] }
      let digits = Array(text[start..<end])
      let url = digits.map {
        $0 == UInt8(ascii: "+") ? UInt8(ascii: "-") : $0 == UInt8(ascii: "/") ? UInt8(ascii: "_") : $0
      }
      return [digits, url]
    }
  }

  /// Encodings in which a capital is something else altogether.
  static func encoded(_ bytes: [UInt8]) -> [[UInt8]] { [hexadecimal(bytes)] + base64(bytes) }

  private static let capitals = Array("0123456789ABCDEF".utf8)

  private static func percent(_ byte: UInt8) -> [UInt8] {
    [UInt8(ascii: "%"), capitals[Int(byte >> 4)], capitals[Int(byte & 15)]]
  }

  private static func unicode(_ unit: UInt16) -> [UInt8] {
    Array("\\u".utf8) + hexadecimal([UInt8(unit >> 8), UInt8(unit & 0xFF)])
  }

  private static func hexadecimal(_ bytes: [UInt8]) -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
  }

  private static func escaped(_ text: String, _ escape: (Unicode.Scalar) -> String?) -> [UInt8] {
    var result: [UInt8] = []
    for scalar in text.unicodeScalars {
      if let escaped = escape(scalar) {
        result += Array(escaped.utf8)
      } else {
        result += Array(UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      }
    }
    return result
  }

  /// As JSON and many languages escape what is not ASCII.
  private static func unicode(_ scalar: Unicode.Scalar) -> String? {
    guard !scalar.isASCII else { return nil }
    return String(decoding: String(scalar).utf16.flatMap(unicode), as: UTF8.self)
  }

  private static func percent(_ text: String, plain: String, space: String? = nil) -> [UInt8] {
    var result = ""
    for byte in text.utf8 {
      let scalar = Unicode.Scalar(byte)
      if scalar == " ", let space {
        result += space
      } else if byte < 0x80,
        scalar.properties.isAlphabetic || "0"..."9" ~= scalar || plain.unicodeScalars.contains(scalar)
      {
        result.unicodeScalars.append(scalar)
      } else {
        result += String(decoding: percent(byte), as: UTF8.self)
      }
    }
    return Array(result.utf8)
  }
}
