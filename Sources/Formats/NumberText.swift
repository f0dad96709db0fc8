/// Numbers for people.
package enum NumberText {
  /// `1,048,576`.
  package static func grouped(_ number: Int) -> String {
    let digits = Array(String(number.magnitude))
    let groups = digits.indices.map { index in
      (index > 0 && (digits.count - index).isMultiple(of: 3) ? "," : "") + String(digits[index])
    }
    return (number < 0 ? "−" : "") + groups.joined()
  }

  /// `1 file`, `2,000 files`.
  package static func count(_ number: Int, _ noun: String, _ plural: String? = nil) -> String {
    "\(grouped(number)) \(number == 1 ? noun : plural ?? noun + "s")"
  }

  /// `1,234.05 s`.
  package static func seconds(_ seconds: Double) -> String {
    let hundredths = Int((max(0, seconds) * 100).rounded())
    let rest = hundredths % 100
    return "\(grouped(hundredths / 100)).\(rest < 10 ? "0" : "")\(rest) s"
  }

  /// `1.4 MB`.
  package static func size(_ bytes: UInt64) -> String {
    if bytes < 1000 { return "\(bytes) B" }
    var value = Double(bytes)
    for unit in ["kB", "MB", "GB", "TB"] {
      value /= 1000
      if value < 9.95 { return "\((value * 10).rounded() / 10) \(unit)" }
      if value < 999.5 { return "\(Int(value.rounded())) \(unit)" }
    }
    return "\(grouped(Int((value / 1000).rounded()))) PB"
  }
}
