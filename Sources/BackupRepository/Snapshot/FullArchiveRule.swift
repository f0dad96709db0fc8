import DrydockErrors
import Formats

/// When a new full archive is written, although an incremental one could be.
public struct FullArchiveRule: Sendable, Equatable {
  /// After this many incremental archives.
  public var after = 30
  /// When the incremental archives together have more than this percentage of the full one's size.
  public var above = 100

  /// After 30 incremental archives, or when they are larger than the full one.
  public init() {}
}

extension FullArchiveRule {
  /// Reads `snapshot:` of `drydock.yaml`.
  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "`snapshot`", keys: ["full-after", "full-above"])
    if let value = reader["full-after"] {
      guard let number = Int(exactly: try value.integer("`full-after`")), (0...500).contains(number) else {
        throw value.position.error(
          "`full-after` is a number of incremental archives from 0 to 500, such as 30")
      }
      after = number
    }
    if let value = reader["full-above"] {
      let text = try value.text("`full-above`")
      guard text.hasSuffix("%"), let number = Int(text.dropLast()), (1...10_000).contains(number) else {
        throw value.position.error(
          "`full-above` is a percentage of the full archive's size from 1% to 10000%, such as 100%")
      }
      above = number
    }
  }
}
