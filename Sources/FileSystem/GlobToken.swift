/// One piece of a pattern for a name.
enum GlobToken: Hashable {
  case byte(UInt8)
  case anyByte
  case anyBytes
  case oneOf([ClosedRange<UInt8>], negated: Bool)

  /// Whether a byte matches; ``anyBytes`` is not asked.
  func matches(_ byte: UInt8) -> Bool {
    switch self {
    case .byte(let own): byte == own
    case .anyByte: true
    case .anyBytes: false
    case .oneOf(let ranges, let negated): ranges.contains { $0.contains(byte) } != negated
    }
  }

  /// The names of a pattern, split at its slashes; nil when it is not well formed.
  static func names(of text: [UInt8]) -> [[GlobToken]]? {
    var names: [[GlobToken]] = [[]]
    var rest = text[...]
    while let first = rest.popFirst() {
      switch first {
      case UInt8(ascii: "/"): names.append([])
      case UInt8(ascii: "*"): names[names.count - 1].append(.anyBytes)
      case UInt8(ascii: "?"): names[names.count - 1].append(.anyByte)
      case UInt8(ascii: "["):
        guard let set = set(&rest) else { return nil }
        names[names.count - 1].append(set)
      case UInt8(ascii: "\\"):
        guard let escaped = rest.popFirst() else { return nil }
        if escaped == UInt8(ascii: "/") {
          names.append([])
        } else {
          names[names.count - 1].append(.byte(escaped))
        }
      default: names[names.count - 1].append(.byte(first))
      }
    }
    return names
  }

  // MARK: Sets

  /// A set from behind its opening bracket; the first byte in it may be a closing one.
  private static func set(_ rest: inout ArraySlice<UInt8>) -> GlobToken? {
    var ranges: [ClosedRange<UInt8>] = []
    let negated = rest.first.map { "!^".utf8.contains($0) } ?? false
    if negated { rest.removeFirst() }
    // The start of a range, when the byte before can be one.
    var start: UInt8?
    var isFirst = true
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "]"), !isFirst { return .oneOf(ranges, negated: negated) }
      isFirst = false
      if byte == UInt8(ascii: "\\") {
        guard let escaped = rest.popFirst() else { return nil }
        ranges.append(escaped...escaped)
        start = escaped
      } else if byte == UInt8(ascii: "-"), let first = start, let end = rest.first, end != UInt8(ascii: "]") {
        rest.removeFirst()
        var last = end
        if last == UInt8(ascii: "\\") {
          guard let escaped = rest.popFirst() else { return nil }
          last = escaped
        }
        if first <= last { ranges.append(first...last) }
        start = nil
      } else if byte == UInt8(ascii: "["), rest.first == UInt8(ascii: ":") {
        guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return nil }
        let inside = rest[..<end].dropFirst()
        if inside.last == UInt8(ascii: ":") {
          guard let known = classes[String(decoding: inside.dropLast(), as: UTF8.self)] else { return nil }
          ranges += known
          rest = rest[(end + 1)...]
          start = nil
        } else {
          ranges.append(byte...byte)
          start = byte
        }
      } else {
        ranges.append(byte...byte)
        start = byte
      }
    }
    return nil
  }

  private static func range(_ first: Character, _ last: Character) -> ClosedRange<UInt8> {
    (first.asciiValue ?? 0)...(last.asciiValue ?? 0)
  }

  private static let classes: [String: [ClosedRange<UInt8>]] = {
    let (digit, upper, lower) = (range("0", "9"), range("A", "Z"), range("a", "z"))
    return [
      "alnum": [digit, upper, lower], "alpha": [upper, lower], "blank": [9...9, 32...32],
      "cntrl": [0...31, 127...127], "digit": [digit], "graph": [33...126], "lower": [lower],
      "print": [32...126],
      "punct": [33...47, 58...64, 91...96, 123...126], "space": [9...13, 32...32], "upper": [upper],
      "xdigit": [digit, range("A", "F"), range("a", "f")],
    ]
  }()
}
