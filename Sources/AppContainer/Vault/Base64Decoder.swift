/// Decodes base64 (RFC 4648, the standard alphabet, padded) byte by byte, into memory that is there already: Foundation's
/// decoder leaves copies behind that nobody wipes.
struct Base64Decoder {
  /// How many bytes the text may decode to at most.
  let capacity: Int
  private let length: Int
  private var position = 0
  private var written = 0
  private var bits: UInt32 = 0
  private var padding = 0
  private var isBroken = false

  /// A decoder for that many characters.
  init(length: Int) {
    self.length = length
    capacity = length / 4 * 3
  }

  /// How many bytes it was; nil when it was no base64.
  var count: Int? {
    isBroken || position != length || length % 4 != 0 ? nil : written
  }

  mutating func take(_ character: UInt8, into target: UnsafeMutableRawBufferPointer) {
    position += 1
    guard !isBroken, length % 4 == 0, position <= length else { return isBroken = true }
    if character == UInt8(ascii: "=") {
      padding += 1
      isBroken = position <= length - 2
      bits <<= 6
    } else if let value = Self.value(character), padding == 0 {
      bits = bits << 6 | UInt32(value)
    } else {
      return isBroken = true
    }
    guard position % 4 == 0 else { return }
    for index in 0..<3 - padding {
      target[written] = UInt8(truncatingIfNeeded: bits >> UInt32(16 - 8 * index))
      written += 1
    }
    // Bits that belong to no byte must be zero: one value has one text.
    if padding > 0, bits & (1 << UInt32(8 * padding) - 1) != 0 { isBroken = true }
    bits = 0
  }

  private static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
    case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
