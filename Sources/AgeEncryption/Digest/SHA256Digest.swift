extension SHA256 {
  /// The 32 bytes of a SHA-256. As text, and in JSON, 64 lower-case hexadecimal digits.
  package struct Digest: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The number of bytes of a digest: 32.
    package static let byteCount = 32

    // Four words instead of an array: a million entries hold a million digests.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    /// A digest from its 32 bytes; nil when there are more or fewer.
    package init?(bytes: some Collection<UInt8>) {
      guard bytes.count == Self.byteCount else { return nil }
      self.init(first32: Array(bytes))
    }

    /// A digest from 64 lower-case hexadecimal digits; nil for anything else.
    package init?(hex: String) {
      let digits = Array(hex.utf8)
      guard digits.count == 2 * Self.byteCount else { return nil }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(Self.byteCount)
      for index in stride(from: 0, to: digits.count, by: 2) {
        guard let high = Self.value(of: digits[index]), let low = Self.value(of: digits[index + 1]) else {
          return nil
        }
        bytes.append(high << 4 | low)
      }
      self.init(first32: bytes)
    }

    /// Expects at least 32 bytes.
    init(first32 bytes: [UInt8]) {
      func word(_ index: Int) -> UInt64 {
        bytes[index * 8..<index * 8 + 8].reduce(0) { $0 << 8 | UInt64($1) }
      }
      words = (word(0), word(1), word(2), word(3))
    }

    /// The 32 bytes.
    package var bytes: [UInt8] {
      [words.0, words.1, words.2, words.3].flatMap { word in
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
      }
    }

    /// 64 lower-case hexadecimal digits.
    package var hex: String {
      let digits = Array("0123456789abcdef".utf8)
      let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
      return String(decoding: text, as: UTF8.self)
    }

    /// The same as `hex`.
    package var description: String { hex }

    private static func value(of digit: UInt8) -> UInt8? {
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
      default: nil
      }
    }

    /// Whether two digests are the same.
    package static func == (left: Self, right: Self) -> Bool { left.words == right.words }

    /// Feeds the digest to a hasher.
    package func hash(into hasher: inout Hasher) {
      hasher.combine(words.0)
      hasher.combine(words.1)
      hasher.combine(words.2)
      hasher.combine(words.3)
    }

    /// Reads the hexadecimal text. Throws `DecodingError` for anything else.
    package init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      let text = try container.decode(String.self)
      guard let digest = Self(hex: text) else {
        throw DecodingError.dataCorruptedError(
          in: container, debugDescription: "a SHA-256 has 64 lower-case hexadecimal digits")
      }
      self = digest
    }

    /// Writes the hexadecimal text.
    package func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(hex)
    }
  }
}
