/// A decimal number as Foundation archives it: up to 38 digits and an exponent of ten.
struct ArchivedDecimal {
  private let isNegative: Bool
  private let mantissa: UInt128
  private let exponent: Int
  /// Whether it is a number: Foundation has one that is none.
  let isNumber: Bool

  /// Nil when the fields make no sense.
  init?(_ fields: PropertyListDictionary) {
    guard case .integer(let length)? = fields["NS.length"], (0...8).contains(length),
      case .integer(let exponent)? = fields["NS.exponent"], (-128...127).contains(exponent),
      case .boolean(let isNegative)? = fields["NS.negative"],
      case .data(let bytes)? = fields["NS.mantissa"], bytes.count >= Int(length) * 2
    else { return nil }
    // Two bytes each, the lowest first; within them as the machine had it, 1 for little-endian.
    let isLittle = fields["NS.mantissa.bo"] == .integer(1)
    var mantissa: UInt128 = 0
    for index in (0..<Int(length)).reversed() {
      let pair = (UInt128(bytes[index * 2]), UInt128(bytes[index * 2 + 1]))
      mantissa = mantissa << 16 | (isLittle ? pair.1 << 8 | pair.0 : pair.0 << 8 | pair.1)
    }
    (self.isNegative, self.mantissa, self.exponent) = (isNegative, mantissa, Int(exponent))
    isNumber = length > 0 || !isNegative
  }

  /// The number in the form that is asked for; nil when it has none there.
  func value(_ form: UnarchiveOptions.Decimals) -> PropertyListValue? {
    guard isNumber else { return nil }
    if form == .text { return .string(text) }
    if let integer = Int64(text) { return .integer(integer) }
    guard let real = Double(text), real.isFinite, Self.digits(real.description) == Self.digits(text) else {
      return nil
    }
    return .real(real)
  }

  /// All its digits, without an exponent and without zeros that say nothing.
  private var text: String {
    var digits = String(mantissa)
    if mantissa == 0 { return "0" }
    let sign = isNegative ? "-" : ""
    if exponent >= 0 { return sign + digits + String(repeating: "0", count: exponent) }
    let missing = 1 - exponent - digits.utf8.count
    if missing > 0 { digits = String(repeating: "0", count: missing) + digits }
    var (whole, fraction) = (String(digits.dropLast(-exponent)), String(digits.suffix(-exponent)))
    while fraction.hasSuffix("0") { fraction.removeLast() }
    if fraction.isEmpty { return sign + whole }
    whole += "."
    return sign + whole + fraction
  }

  /// The significant digits of a number in words, and where its point is.
  private static func digits(_ text: String) -> [String] {
    let parts = text.split(separator: "e").map(String.init)
    let number = parts.first ?? ""
    let point = number.firstIndex(of: ".").map { number.distance(from: $0, to: number.endIndex) - 1 } ?? 0
    var exponent = (parts.count > 1 ? Int(parts[1]) ?? 0 : 0) - point
    var digits = number.filter(\.isNumber).drop { $0 == "0" }
    while digits.hasSuffix("0") {
      digits.removeLast()
      exponent += 1
    }
    return [number.hasPrefix("-") ? "-" : "", String(digits), String(exponent)]
  }
}
