import Cryptography

/// Reads the fields of SSH's binary formats (RFC 4251): lengths are 4 bytes, big-endian. What is secret is in no other memory.
struct SSHReader {
  private let source: SecretBytes
  private var position = 0

  init(_ source: SecretBytes) { self.source = source }

  init(_ bytes: [UInt8]) { source = SecretBytes(bytes) }

  var isAtEnd: Bool { position == source.count }

  /// The range of that many bytes, which are passed over.
  private mutating func range(_ count: Int) -> Range<Int>? {
    guard count >= 0, source.count - position >= count else { return nil }
    defer { position += count }
    return position..<position + count
  }

  mutating func bytes(_ count: Int) -> [UInt8]? {
    range(count).map { range in source.withBytes { Array($0[range]) } }
  }

  mutating func number() -> UInt32? {
    bytes(4).map { $0.reduce(0) { $0 << 8 | UInt32($1) } }
  }

  /// A field that is not secret.
  mutating func string() -> [UInt8]? { number().flatMap { bytes(Int($0)) } }

  mutating func secret() -> SecretBytes? { number().flatMap { range(Int($0)) }.flatMap(source.part) }

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
