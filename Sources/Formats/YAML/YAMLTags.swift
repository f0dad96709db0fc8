import Foundation

/// Scalars with an explicit tag: the standard ones, and `!date` and `!data` for what property lists hold.
enum YAMLTags {
  private static let prefix = "tag:yaml.org,2002:"
  private static let scalarTags = [
    "!!str", "!!int", "!!float", "!!bool", "!!null", "!!binary", "!date", "!data",
  ]

  /// The value of `text` under `tag` (as the parser expands it), or an error at `position`.
  static func value(of text: String, tag: String, at position: YAMLPosition) throws -> YAMLScalar.Value {
    let name = written(tag)
    let resolved = YAMLCoreSchema.resolve(text)
    switch name {
    case "!!str": return .text(text)
    case "!!null":
      if resolved == .null { return .null }
    case "!!bool":
      if case .boolean = resolved, let resolved { return resolved }
    case "!!int":
      switch resolved {
      case .integer, .unsigned: return resolved ?? .null
      default: break
      }
    case "!!float":
      switch resolved {
      case .real(let value): return .real(value)
      case .integer(let value): return .real(Double(value))
      case .unsigned(let value): return .real(Double(value))
      default: break
      }
    case "!!binary", "!data":
      let packed = String(text.unicodeScalars.filter { !$0.properties.isWhitespace })
      if let data = Data(base64Encoded: packed) { return .data([UInt8](data)) }
      throw position.error("`\(name)` wants base64, which this is not")
    case "!date", "!!timestamp":
      if let date = YAMLDate.parse(text) { return .date(date) }
      throw position.error(
        "`\(text)` is not a date: write `!date 2026-11-20T10:15:00Z` (fractions and ±hh:mm are allowed)")
    default:
      throw position.error(
        "the tag `\(name)` is not known; \(NearestWord.hint(for: name, among: scalarTags))")
    }
    throw position.error("`\(text)` is not a value of the type \(name)")
  }

  /// The tag as a person writes it.
  static func written(_ tag: String) -> String {
    tag.hasPrefix(prefix) ? "!!" + tag.dropFirst(prefix.count) : tag
  }
}
