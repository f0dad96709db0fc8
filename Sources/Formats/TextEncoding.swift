import DrydockErrors

/// How a text is encoded, of a property list or a database. A file that is rewritten keeps its encoding.
package enum TextEncoding: Sendable, Hashable {
  /// With or without a byte-order mark in front.
  case utf8(hasMark: Bool)
  case utf16(isBigEndian: Bool, hasMark: Bool)

  package static let plain = TextEncoding.utf8(hasMark: false)

  static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// The encoding that the first bytes show: a byte-order mark, or the zeros around ASCII characters in UTF-16.
  package init(of bytes: [UInt8]) {
    let start = Array(bytes.prefix(3))
    switch (start.first, start.dropFirst().first) {
    case (0xFE, 0xFF): self = .utf16(isBigEndian: true, hasMark: true)
    case (0xFF, 0xFE): self = .utf16(isBigEndian: false, hasMark: true)
    case (0, .some(1...)): self = .utf16(isBigEndian: true, hasMark: false)
    case (.some(1...), 0): self = .utf16(isBigEndian: false, hasMark: false)
    default: self = .utf8(hasMark: start == Self.mark)
    }
  }

  /// Whether a character has at least two bytes.
  package var isWide: Bool { if case .utf16 = self { true } else { false } }

  /// The name in the declaration of an XML file.
  var xmlName: String { isWide ? "UTF-16" : "UTF-8" }

  /// The text as UTF-8, without the mark; nil when it is invalid.
  package func decode(_ bytes: [UInt8]) -> [UInt8]? {
    switch self {
    case .utf8(let hasMark):
      let text = hasMark ? Array(bytes.dropFirst(Self.mark.count)) : bytes
      return String(validating: text, as: UTF8.self) == nil ? nil : text
    case .utf16(let isBigEndian, let hasMark):
      guard bytes.count.isMultiple(of: 2) else { return nil }
      let (high, low) = isBigEndian ? (0, 1) : (1, 0)
      let units = stride(from: hasMark ? 2 : 0, to: bytes.count, by: 2).map {
        UInt16(bytes[$0 + high]) << 8 | UInt16(bytes[$0 + low])
      }
      return String(validating: units, as: UTF16.self).map { Array($0.utf8) }
    }
  }

  /// The bytes of valid UTF-8 in this encoding.
  package func encode(_ text: [UInt8]) -> [UInt8] {
    switch self {
    case .utf8(let hasMark): return hasMark ? Self.mark + text : text
    case .utf16(let isBigEndian, let hasMark):
      var bytes: [UInt8] = []
      bytes.reserveCapacity(2 * text.count + 2)
      func add(_ unit: UInt16) {
        let (high, low) = (UInt8(unit >> 8), UInt8(unit & 0xFF))
        bytes += isBigEndian ? [high, low] : [low, high]
      }
      if hasMark { add(0xFEFF) }
      for unit in String(decoding: text, as: UTF8.self).utf16 { add(unit) }
      return bytes
    }
  }
}
