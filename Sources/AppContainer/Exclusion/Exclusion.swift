import FileSystem

/// Why a path stays out of a backup.
package struct Exclusion: Hashable, Sendable, Codable {
  /// The rules, each named as it is recorded in an archive.
  package enum Rule: String, Sendable, Codable, CaseIterable {
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
    package var isFlag: Bool { self == .appleAttribute || self == .robotsAttribute || self == .noDump }
  }

  /// The rule that decided.
  package var rule: Rule
  /// The path it was found on: the excluded one or a directory above it.
  package var origin: ContainerPath
  /// What about it: the list's entry, the attribute, the pattern.
  package var detail: String

  /// An exclusion from its parts.
  package init(rule: Rule, origin: ContainerPath, detail: String) {
    self.rule = rule
    self.origin = origin
    self.detail = detail
  }
}

extension Exclusion: CustomStringConvertible {
  /// Such as `apple-attribute: user.com.apple.…`.
  package var description: String { "\(rule.rawValue): \(detail)" }
}

/// Why a path is taken whatever the other rules say.
package struct Inclusion: Hashable, Sendable, Codable {
  /// What took it.
  package enum Rule: String, Sendable, Codable {
    /// A pattern under `include:`; it covers all below a directory.
    case include
    /// It is the history of migrations, or a directory above it; it covers nothing else in that.
    case history
    /// A directory above an included path, stored for its mode and times; it covers nothing else in it.
    case above
  }

  /// What took it.
  package var rule: Rule
  /// The path it was found on.
  package var origin: ContainerPath
  /// The pattern, or the reason in words.
  package var detail: String
}

/// What was decided for a path, and with that for what is below it.
package struct Decision: Hashable, Sendable {
  /// The rule that keeps the path out, when nothing takes it all the same.
  package var exclusion: Exclusion?
  /// What takes it all the same.
  package var inclusion: Inclusion?
  /// The main file that decided for a part of its database.
  var unit: ContainerPath?

  /// Nothing is decided: what holds above a container's root.
  static let none = Decision()

  /// The rule that keeps the path out of a backup; nil when a backup takes it.
  package var effective: Exclusion? {
    inclusion == nil || exclusion?.rule == .state ? exclusion : nil
  }
}
