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

  /// The value of a hexadecimal digit in ASCII; nil for another byte.
  package var hexDigitValue: UInt8? {
    if isDigit { return self & 0x0F }
    return (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) ? self & 0x0F + 9 : nil
  }
}

extension Sequence<UInt8> {
  /// Two lower-case hexadecimal digits for each byte.
  @inlinable package var hex: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }
}

extension [UInt8] {
  /// The bytes that hexadecimal digits name, two of them for each; nil for another text.
  package init?(hex digits: some Collection<UInt8>) {
    let values = digits.compactMap(\.hexDigitValue)
    guard values.count == digits.count, values.count.isMultiple(of: 2) else { return nil }
    self = stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }
}
