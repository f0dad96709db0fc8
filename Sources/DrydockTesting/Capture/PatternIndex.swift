/// Finds many patterns in bytes at once.
struct PatternIndex: Sendable {
  /// What must not be beside a pattern for it to count.
  enum Bound: Sendable { case none, digit, letter }

  struct Pattern: Sendable {
    var bytes: [UInt8]
    var replacement: [UInt8] = []
    /// Whether the letters A to Z may be in either case.
    var ignoresCase = true
    var bound = Bound.none
  }

  /// Where a pattern was found, and its index.
  typealias Match = (range: Range<Int>, pattern: Int)

  /// Patterns of fewer bytes are found by their first three.
  static let least = 6
  private static let short = 3

  private let patterns: [Pattern]
  /// The patterns by their first bytes, the longest first: the longest one that fits is meant.
  private var candidates: [UInt64: [Int]] = [:]
  /// A bit for the hash of each key: most places are passed over by it.
  private var filter = [UInt64](repeating: 0, count: 1 << 14)

  /// An index of patterns with at least three bytes; others are never found.
  init(_ patterns: [Pattern]) {
    self.patterns = patterns
    for (number, pattern) in patterns.enumerated() where pattern.bytes.count >= Self.short {
      let key = Self.key(pattern.bytes, pattern.bytes.count < Self.least ? Self.short : Self.least)
      candidates[key, default: []].append(number)
      filter[Self.hash(key) >> 6] |= 1 << UInt64(Self.hash(key) & 63)
    }
    candidates = candidates.mapValues { $0.sorted { patterns[$0].bytes.count > patterns[$1].bytes.count } }
  }

  /// All matches, none of which covers another.
  ///
  /// - Parameter includesShort: whether patterns of fewer than six bytes count.
  func matches(in bytes: [UInt8], includesShort: Bool) -> [Match] {
    guard !patterns.isEmpty else { return [] }
    var matches: [Match] = []
    var end = 0
    // Of the first bytes from a place on, shifted by one from place to place; zeros follow the last one.
    var key = Self.key(bytes, Self.least - 1)
    for index in bytes.indices {
      let next = index + Self.least - 1
      key =
        (key << 8 | UInt64(next < bytes.count ? Self.folded(bytes[next]) : 0))
        & (1 << UInt64(8 * Self.least) - 1)
      let long = next < bytes.count ? pattern(key, at: index, in: bytes) : nil
      let isShort = includesShort && index + Self.short <= bytes.count
      if let number = long ?? (isShort ? pattern(key >> 24, at: index, in: bytes) : nil),
        index + patterns[number].bytes.count > end
      {
        end = index + patterns[number].bytes.count
        matches.append((index..<end, number))
      }
    }
    return matches
  }

  private func pattern(_ key: UInt64, at index: Int, in bytes: [UInt8]) -> Int? {
    let bit = Self.hash(key)
    guard filter[bit >> 6] & (1 << UInt64(bit & 63)) != 0 else { return nil }
    return candidates[key]?.first { matches(patterns[$0], at: index, in: bytes) }
  }

  private func matches(_ pattern: Pattern, at index: Int, in bytes: [UInt8]) -> Bool {
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

  /// Of the first bytes, the first one highest, as if zeros followed.
  private static func key(_ bytes: [UInt8], _ count: Int) -> UInt64 {
    (0..<count).reduce(0) { $0 << 8 | UInt64($1 < bytes.count ? folded(bytes[$1]) : 0) }
  }

  private static func hash(_ key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> 44) }
  private static func folded(_ byte: UInt8) -> UInt8 { byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte }
  private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
  static func isLetter(_ byte: UInt8) -> Bool {
    isDigit(byte) || byte >= 0x80 || byte == UInt8(ascii: "_") || (0x61...0x7A).contains(folded(byte))
  }
}
