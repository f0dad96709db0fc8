/// Why a path stays out of a backup.
public struct Exclusion: Hashable, Sendable, Codable {
  /// The rules, each named as it is recorded in an archive.
  public enum Rule: String, Sendable, Codable, CaseIterable {
    /// The layout's own list.
    case layout
    /// Apple's attribute `com.apple.metadata:com_apple_backup_excludeItem`.
    case appleAttribute = "apple-attribute"
    /// A pattern in `drydock.yaml`.
    case pattern
    /// Drydock's own state.
    case state
  }

  /// The rule that decided.
  public var rule: Rule
  /// The path it was found on: the excluded one or a directory above it.
  public var origin: ContainerPath
  /// What about it: the list's entry, the attribute, the pattern.
  public var detail: String

  /// An exclusion from its parts.
  public init(rule: Rule, origin: ContainerPath, detail: String) {
    self.rule = rule
    self.origin = origin
    self.detail = detail
  }
}

extension Exclusion: CustomStringConvertible {
  /// Such as `apple-attribute (user.com.apple.…) on Documents/Offline`.
  public var description: String { "\(rule.rawValue): \(detail)" }
}
