/// A JSON number as it is written, with all its digits.
package struct JSONNumber: Sendable {
  /// The number as it is written.
  package let text: String

  /// An integer.
  package init(_ number: some BinaryInteger) { text = String(number) }

  /// A real; nil for infinities and what is no number, which JSON has no form for.
  package init?(_ real: Double) {
    guard real.isFinite else { return nil }
    text = real.description
  }

  /// A number that was checked.
  init(checked text: String) { self.text = text }

  /// The number when it is whole and fits, however it is written.
  package var integer: Int64? {
    guard let parts, parts.exponent >= 0, parts.digits.count + min(parts.exponent, 20) < 20 else {
      return nil
    }
    return Int64((parts.isNegative ? "-" : "") + parts.digits + String(repeating: "0", count: parts.exponent))
  }

  /// Whether both are the same number. Nothing is rounded.
  package func matches(_ other: JSONNumber) -> Bool {
    guard let left = parts, let right = other.parts else { return text == other.text }
    return left == right
  }

  /// Its digits without zeros at either end, and the power of ten they are taken times; nil when that power is beyond
  /// all use. Zero has the one digit 0.
  private var parts: (isNegative: Bool, digits: String, exponent: Int)? {
    var rest = text[...]
    let isNegative = rest.first == "-"
    if isNegative { rest = rest.dropFirst() }
    let end = rest.firstIndex { $0 == "e" || $0 == "E" } ?? rest.endIndex
    guard var exponent = end == rest.endIndex ? 0 : Int(rest[rest.index(after: end)...]),
      exponent.magnitude < 1 << 40
    else { return nil }
    let point = rest[..<end].firstIndex(of: ".") ?? end
    let fraction = point == end ? "" : rest[rest.index(after: point)..<end]
    exponent -= fraction.count
    var digits = Array((rest[..<point] + fraction).utf8.drop { $0 == UInt8(ascii: "0") })
    while digits.last == UInt8(ascii: "0") {
      digits.removeLast()
      exponent += 1
    }
    guard !digits.isEmpty else { return (false, "0", 0) }
    return (isNegative, String(decoding: digits, as: UTF8.self), exponent)
  }
}

/// JSON text as it is written, with its escapes.
package struct JSONString: Sendable {
  /// What stands between the quotation marks.
  let source: String

  /// Text, with the escapes that JSON needs and no others.
  package init(_ text: String) {
    var source = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": source += "\\\""
      case "\\": source += "\\\\"
      case "\n": source += "\\n"
      case "\r": source += "\\r"
      case "\t": source += "\\t"
      case "\u{0}"..."\u{1F}":
        let digits = String(scalar.value, radix: 16)
        source += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: source.unicodeScalars.append(scalar)
      }
    }
    self.source = source
  }

  /// Text that was checked, with its escapes.
  init(checked source: String) { self.source = source }

  /// Whether it is this text, scalar by scalar.
  package func matches(_ other: String) -> Bool { text.utf8.elementsEqual(other.utf8) }

  /// The text. Half a surrogate pair, which JSON can hold and text cannot, reads as U+FFFD.
  package var text: String {
    guard source.utf8.contains(UInt8(ascii: "\\")) else { return source }
    var units: [UInt16] = []
    var rest = source.utf16.makeIterator()
    while let unit = rest.next() {
      guard unit == 0x5C, let escape = rest.next() else {
        units.append(unit)
        continue
      }
      switch UnicodeScalar(escape) {
      case "n": units.append(0x0A)
      case "r": units.append(0x0D)
      case "t": units.append(0x09)
      case "b": units.append(0x08)
      case "f": units.append(0x0C)
      case "u":
        let digits = (0..<4).compactMap { _ in rest.next() }
        units.append(UInt16(String(decoding: digits, as: UTF16.self), radix: 16) ?? 0xFFFD)
      default: units.append(escape)
      }
    }
    return String(decoding: units, as: UTF16.self)
  }
}
