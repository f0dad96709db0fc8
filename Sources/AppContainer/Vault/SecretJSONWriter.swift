import AgeEncryption

/// Writes JSON that holds secrets into memory that is wiped: once to know how long it is, once for good, so that no
/// buffer grows and leaves a copy behind.
struct SecretJSONWriter {
  private let target: UnsafeMutableRawBufferPointer?
  private var count = 0
  private var indentation = 0
  private var needsComma = false

  /// The bytes of what `body` writes; it is called twice, and must write the same.
  static func document(_ body: (inout Self) -> Void) -> SecretBytes {
    var counting = Self(target: nil)
    body(&counting)
    counting.put("\n")
    return SecretBytes(count: counting.count) { target in
      var writing = Self(target: target)
      body(&writing)
      writing.put("\n")
    }
  }

  private init(target: UnsafeMutableRawBufferPointer?) { self.target = target }

  // MARK: Structure

  mutating func object(_ body: (inout Self) -> Void) { nested("{", "}", body) }
  mutating func array(_ body: (inout Self) -> Void) { nested("[", "]", body) }

  /// A field of an object; its value has to follow.
  mutating func field(_ name: String) {
    element()
    text(name)
    put(": ")
  }

  /// An element of an array; its value has to follow.
  mutating func element() {
    put(needsComma ? ",\n" : "\n")
    for _ in 0..<indentation { put("  ") }
    needsComma = true
  }

  private mutating func nested(_ open: StaticString, _ close: StaticString, _ body: (inout Self) -> Void) {
    put(open)
    indentation += 1
    needsComma = false
    body(&self)
    indentation -= 1
    if needsComma {
      put("\n")
      for _ in 0..<indentation { put("  ") }
    }
    needsComma = true
    put(close)
  }

  // MARK: Values

  mutating func text(_ text: String) {
    put("\"")
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""): put("\\\"")
      case UInt8(ascii: "\\"): put("\\\\")
      case 0x0A: put("\\n")
      case 0..<0x20, 0x7F:
        put("\\u00")
        put(Self.hexadecimal[Int(byte >> 4)])
        put(Self.hexadecimal[Int(byte & 15)])
      default: put(byte)
      }
    }
    put("\"")
  }

  mutating func bool(_ value: Bool) { put(value ? "true" : "false") }

  mutating func integer(_ value: Int) { for byte in String(value).utf8 { put(byte) } }

  mutating func base64(_ secret: SecretBytes) {
    put("\"")
    secret.withBytes { bytes in
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let length = min(3, bytes.count - start)
        var bits: UInt32 = 0
        for index in 0..<3 { bits = bits << 8 | UInt32(index < length ? bytes[start + index] : 0) }
        for index in 0..<4 {
          put(index <= length ? Self.alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)] : UInt8(ascii: "="))
        }
      }
    }
    put("\"")
  }

  /// A value as it stood in another document.
  mutating func raw(_ value: SecretBytes) { value.withBytes { put($0) } }

  private static let hexadecimal = Array("0123456789abcdef".utf8)
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  // MARK: Bytes

  private mutating func put(_ byte: UInt8) {
    target?[count] = byte
    count += 1
  }

  private mutating func put(_ text: StaticString) {
    put(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func put(_ bytes: UnsafeRawBufferPointer) {
    if let target { UnsafeMutableRawBufferPointer(rebasing: target[count...]).copyMemory(from: bytes) }
    count += bytes.count
  }
}
