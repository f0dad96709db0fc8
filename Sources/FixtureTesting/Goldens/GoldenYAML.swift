import ContainerDiff
import Formats
import Foundation

/// Settings as YAML that reads back as the same values with the same types.
enum GoldenYAML {
  /// One line for each key, sorted and indented; nil for values that YAML cannot hold.
  static func lines(_ settings: PropertyListDictionary) -> [String]? {
    guard areKeys(settings) else { return nil }
    var lines: [String] = []
    for (key, value) in settings.sorted() {
      guard let text = text(value) else { return nil }
      lines.append("  \(quoted(key)): \(text)")
    }
    return lines
  }

  /// Whether the keys can be those of one YAML mapping: its parser refuses two that Unicode takes for equal.
  private static func areKeys(_ values: PropertyListDictionary) -> Bool {
    Set(values.keys.map(\.text)).count == values.count
  }

  /// A value in flow style.
  private static func text(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let text): return quoted(text, isKey: false)
    case .boolean(let value): return "\(value)"
    case .integer(let value): return "\(value)"
    case .unsigned(let value): return "\(value)"
    case .real(let value): return real(value)
    case .single(let value): return real(Double(value))
    case .date(let date):
      let text = YAMLDate.text(date)
      // Finer than a microsecond, or beyond the year 9999.
      return YAMLDate.parse(text) == date ? "!date \(text)" : nil
    case .data(let bytes): return data(bytes)
    case .array(let values):
      let texts = values.compactMap(text)
      return texts.count == values.count ? "[\(texts.joined(separator: ", "))]" : nil
    case .dictionary(let values):
      guard areKeys(values) else { return nil }
      let pairs = values.sorted().compactMap { key, value in
        text(value).map { "\(quoted(key)): \($0)" }
      }
      return pairs.count == values.count ? "{\(pairs.joined(separator: ", "))}" : nil
    case .unknown: return nil
    }
  }

  /// Bytes, in base64.
  static func data(_ bytes: [UInt8]) -> String { "!data \"\(Data(bytes).base64EncodedString())\"" }

  private static func real(_ value: Double) -> String {
    value.isNaN ? ".nan" : value.isInfinite ? (value < 0 ? "-.inf" : ".inf") : "\(value)"
  }

  /// Text in double quotes; a key that is a plain word stays plain.
  static func quoted(_ text: String, isKey: Bool = true) -> String {
    if isKey, text.wholeMatch(of: /[A-Za-z][A-Za-z0-9_\/.]*/) != nil,
      !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(text.lowercased())
    {
      return text
    }
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case _ where isPlain(scalar): result.unicodeScalars.append(scalar)
      default: result += String(format: "\\U%08X", scalar.value)
      }
    }
    return result + "\""
  }

  /// What YAML takes as it is between quotes, and what a reviewer sees.
  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f..<0xa0, 0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff: false
    default: true
    }
  }
}
