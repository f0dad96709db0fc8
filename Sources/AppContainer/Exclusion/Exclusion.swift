/// Why a path stays out of a backup.
public struct Exclusion: Hashable, Sendable, Codable {
  /// The rules, each named as it is recorded in an archive.
  public enum Rule: String, Sendable, Codable, CaseIterable {
    /// The layout's own list.
    case layout
    /// Apple's attribute, `com.apple.metadata:com_apple_backup_excludeItem` or the older `com.apple.MobileBackup`.
    case appleAttribute = "apple-attribute"
    /// The attribute `user.xdg.robots.backup` with the value `false`.
    case robotsAttribute = "robots-attribute"
    /// A `CACHEDIR.TAG` in the directory that the path is in.
    case cacheTag = "cachedir-tag"
    /// The inode flag `nodump`.
    case noDump = "nodump"
    /// Android's `<full-backup-content>` or `<data-extraction-rules>`.
    case android = "android-rules"
    /// A pattern in `drydock.yaml`.
    case pattern
    /// Drydock's own state.
    case state

    /// Whether it is told by a flag on the inode itself, so that another inode's metadata would lose it.
    public var isFlag: Bool { self == .appleAttribute || self == .robotsAttribute || self == .noDump }
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
  /// Such as `apple-attribute: user.com.apple.…`.
  public var description: String { "\(rule.rawValue): \(detail)" }
}

/// Why a path is taken whatever the other rules say.
public struct Inclusion: Hashable, Sendable, Codable {
  /// What took it.
  public enum Rule: String, Sendable, Codable {
    /// A pattern under `include:`; it covers all below a directory.
    case include
    /// It is the history of migrations, or a directory above it; it covers nothing else in that.
    case history
    /// A directory above an included path, stored for its mode and times; it covers nothing else in it.
    case above
  }

  /// What took it.
  public var rule: Rule
  /// The path it was found on.
  public var origin: ContainerPath
  /// The pattern, or the reason in words.
  public var detail: String
}

/// What was decided for a path, and with that for what is below it.
public struct Decision: Hashable, Sendable {
  /// The rule that keeps the path out, when nothing takes it all the same.
  public var exclusion: Exclusion?
  /// What takes it all the same.
  public var inclusion: Inclusion?
  /// The main file that decided for a part of its database.
  var unit: ContainerPath?

  /// Nothing is decided: what holds above a container's root.
  static let none = Decision()

  /// The rule that keeps the path out of a backup; nil when a backup takes it.
  public var effective: Exclusion? {
    inclusion == nil || exclusion?.rule == .state ? exclusion : nil
  }
}
