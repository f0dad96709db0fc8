/// Little-endian integers in byte arrays.
extension [UInt8] {
  mutating func append(littleEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// The integer at a place, or nil when the buffer ends before it does.
  func littleEndian<T: FixedWidthInteger>(at offset: Int, as type: T.Type) -> T? {
    guard offset >= 0, count - offset >= MemoryLayout<T>.size else { return nil }
    return T(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }

  /// Whether every byte is zero.
  var isZero: Bool {
    var index = 0
    while index + 8 <= count {
      if loadUnaligned(fromByteOffset: index, as: UInt64.self) != 0 { return false }
      index += 8
    }
    return self[index...].allSatisfy { $0 == 0 }
  }
}

extension [UInt8] {
  /// For messages: the text when it is plain UTF-8, else with every odd byte as `\xNN`.
  var printable: String {
    let text = String(decoding: self, as: UTF8.self)
    let isPlain = Array(text.utf8) == self && !contains { $0 < 0x20 || $0 == 0x7F }
    if isPlain { return text }
    return map { byte in
      if (0x20..<0x7F).contains(byte) { return String(UnicodeScalar(byte)) }
      let digits = String(byte, radix: 16, uppercase: true)
      return "\\x" + (digits.count == 1 ? "0" : "") + digits
    }.joined()
  }
}
