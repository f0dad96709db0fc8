import AgeEncryption
import AppContainer
import ContainerDiff

/// The items of a vault as YAML, in the words of `fixture.yaml`.
enum GoldenVault {
  /// A list of items, each with its attributes and its value. Their times are left out, which are others in each run.
  static func lines(_ items: [VaultItem], _ neutral: NeutralValues) -> [String] {
    if items.isEmpty { return ["[]"] }
    return items.flatMap { item in
      lines(item, neutral).enumerated().map { ($0.offset == 0 ? "- " : "  ") + $0.element }
    }
  }

  private static func lines(_ item: VaultItem, _ neutral: NeutralValues) -> [String] {
    var lines = item.itemClass == .genericPassword ? [] : ["class: \(item.itemClass.rawValue)"]
    // What names it stands first.
    let attributes = VaultAttribute.allCases.compactMap { attribute in item[attribute].map { (attribute, $0) }
    }
    lines += attributes.map { "\($0.rawValue.replacing("_", with: "-")): \(text($1))" }
    lines.append("accessible: \(item.accessibility.rawValue)")
    if item.isSynchronizable { lines.append("synchronizable: true") }
    if let flags = item.accessControl?.flags {
      lines.append("access-control: [\(flags.joined(separator: ", "))]")
    }
    let value = item.value.withBytes { bytes in
      guard let value = String(validating: bytes, as: UTF8.self), !value.utf8.contains(0) else {
        return GoldenYAML.data(Array(bytes))
      }
      return text(neutral.text(value))
    }
    return lines + ["value: \(value)"]
  }

  private static func text(_ text: String) -> String { GoldenYAML.quoted(text, isKey: false) }
}
