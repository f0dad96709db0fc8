import DrydockErrors

/// Reads the fields of SSH's binary formats (RFC 4251): lengths are 4 bytes, big-endian.
struct SSHReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func bytes(_ count: Int) -> [UInt8]? {
    guard count >= 0, rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func number() -> UInt32? {
    bytes(4).map { $0.reduce(0) { $0 << 8 | UInt32($1) } }
  }

  mutating func string() -> [UInt8]? {
    guard let count = number() else { return nil }
    return bytes(Int(count))
  }

  mutating func text() -> String? { string().flatMap { String(validating: $0, as: UTF8.self) } }

  /// A number without sign, big-endian, in its shortest form; nil for any other form, and for negative numbers.
  mutating func unsigned() -> [UInt8]? {
    guard let bytes = string(), let first = bytes.first, first < 0x80 else { return nil }
    guard first == 0 else { return bytes }
    guard bytes.count > 1, bytes[1] >= 0x80 else { return nil }
    return Array(bytes.dropFirst())
  }
}

/// Writes such fields.
enum SSHWriter {
  static func string(_ bytes: some Collection<UInt8>) -> [UInt8] {
    number(UInt32(bytes.count)) + Array(bytes)
  }

  static func string(_ text: String) -> [UInt8] { string(Array(text.utf8)) }

  static func number(_ value: UInt32) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }
}
