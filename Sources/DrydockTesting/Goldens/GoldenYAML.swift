import AppStores
import FileSystem
import Formats
import Foundation

/// Values as YAML that reads back as the same values with the same types.
enum GoldenYAML {
  /// Settings: one line for each key, sorted and indented; nil for values that YAML cannot hold.
  ///
  /// - Parameter path: where the settings are. Property lists have no `!float`: an app reads both reals as one type.
  static func lines(_ settings: PropertyListDictionary, of path: ContainerPath) -> [String]? {
    guard areKeys(settings) else { return nil }
    let lines = settings.sorted().compactMap { key, value in
      text(value, of: path).map { "  \(quoted(key)): \($0)" }
    }
    return lines.count == settings.count ? lines : nil
  }

  /// An item of a vault in the words of `fixture.yaml`, as an element of a list. Its times are left out, which differ
  /// in each run.
  static func item(_ item: VaultItem, _ normalizer: ValueNormalizer? = nil) -> [String] {
    var lines = item.itemClass == .genericPassword ? [] : ["class: \(item.itemClass.rawValue)"]
    // What identifies it comes first.
    for attribute in VaultItem.Attribute.allCases {
      guard let text = item[attribute] else { continue }
      lines.append("\(FixtureVaultItem.key(attribute)): \(quoted(text, isKey: false))")
    }
    lines.append("accessible: \(item.accessibility.rawValue)")
    if item.isSynchronizable { lines.append("synchronizable: true") }
    if let flags = item.accessControl?.flags {
      lines.append("access-control: [\(flags.joined(separator: ", "))]")
    }
    lines.append("value: \(value(item, normalizer))")
    return lines.enumerated().map { ($0.offset == 0 ? "- " : "  ") + $0.element }
  }

  /// The value of an item: text where that is possible.
  static func value(_ item: VaultItem, _ normalizer: ValueNormalizer?) -> String {
    item.value.withBytes { bytes($0, normalizer) }
  }

  /// Bytes: text where that is possible.
  static func bytes(_ bytes: some Collection<UInt8>, _ normalizer: ValueNormalizer? = nil) -> String {
    guard let text = String(validating: bytes, as: UTF8.self), !text.utf8.contains(0) else {
      return data(Array(bytes))
    }
    return quoted(normalizer?.text(text) ?? text, isKey: false)
  }

  /// Whether the keys can be those of one YAML mapping: its parser refuses two that Unicode takes for equal.
  private static func areKeys(_ values: PropertyListDictionary) -> Bool {
    Set(values.keys.map(\.text)).count == values.count
  }

  /// The value of a setting.
  static func text(_ value: PropertyListValue, of path: ContainerPath) -> String? {
    if case .single(let number) = value, !path.nameString.hasSuffix(".plist"), number.isFinite {
      return "!float \(number)"
    }
    return text(value)
  }

  /// A value in flow style.
  static func text(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let text): return quoted(text, isKey: false)
    case .boolean(let value): return "\(value)"
    case .integer(let value): return "\(value)"
    case .unsigned(let value): return "\(value)"
    case .real(let value): return real(value)
    case .single(let value): return real(Double(value))
    case .int(let value): return "!int \(value)"
    case .long(let value): return "!long \(value)"
    case .set(let values):
      return "!set [\(values.strings.map { quoted($0, isKey: false) }.joined(separator: ", "))]"
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
  private static func data(_ bytes: [UInt8]) -> String { "!data \"\(Data(bytes).base64EncodedString())\"" }

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
