/// Finds many patterns in bytes at once.
struct PatternIndex: Sendable {
  /// What must not be beside a pattern for it to count.
  enum Bound: Sendable { case none, digit, letter }

  /// Something to find.
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
