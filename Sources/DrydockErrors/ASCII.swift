// Inlined, since they are called for every byte of long texts.
extension UInt8 {
  /// Whether it is a decimal digit in ASCII.
  @inlinable package var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

  /// Whether it is a letter in ASCII.
  @inlinable package var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }

  /// Whether it is a capital letter in ASCII.
  @inlinable package var isCapital: Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }

  /// Whether it is a hexadecimal digit in lower case.
  @inlinable package var isLowercaseHexDigit: Bool {
    isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self)
  }
}
