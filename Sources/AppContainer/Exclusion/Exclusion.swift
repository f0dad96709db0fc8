import DrydockErrors
import FileSystem

package struct Exclusion: Hashable, Sendable, Codable {
  /// The rules, named as recorded in archives.
  package enum Rule: String, Sendable, Codable, CaseIterable {
    /// The layout's list.
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
    /// Drydock's state.
    case state

    /// Whether the rule is a flag of the inode, which another inode's metadata would lose.
    package var isFlag: Bool { self == .appleAttribute || self == .robotsAttribute || self == .noDump }
  }

  package var rule: Rule
  /// The path that the rule applies to: the excluded one or a directory above it.
  package var origin: ContainerPath
  /// The list's entry, the attribute or the pattern.
  package var detail: String

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

/// Why a path is included whatever the other rules are.
package struct Inclusion: Hashable, Sendable, Codable {
  package enum Rule: String, Sendable, Codable {
    /// A pattern under `include:`, which covers everything below a directory.
    case include
    /// The history of migrations or a directory above it, which covers nothing else in it.
    case history
    /// A directory above an included path, which covers nothing else in it.
    case above
  }

  package var rule: Rule
  package var origin: ContainerPath
  /// The pattern, or the reason in words.
  package var detail: String
}

/// The decision for a path, which paths below inherit.
package struct Decision: Hashable, Sendable {
  /// The rule that excludes the path, unless it is included.
  package var exclusion: Exclusion?
  package var inclusion: Inclusion?
  /// For a part of a database: the main file, which decides.
  var unit: ContainerPath?

  /// No decision, as above a container's root.
  static let none = Decision()

  /// The rule that excludes the path; nil when a backup includes it.
  package var effective: Exclusion? {
    inclusion == nil || exclusion?.rule == .state ? exclusion : nil
  }
}

/// Decides, path by path from the root down, what is excluded from backups.
package struct ExclusionRules: Sendable {
  private let layout: ContainerLayout
  private let history: ContainerPath
  /// The layout's lists, cached: every path is compared with them.
  private let includedRoots: [ContainerPath]?
  private let skipped: [ContainerPath]
  private let android: AndroidRules?
  private let exclude: PatternList
  /// What is included even below an excluded directory.
  let include: PatternList
  private let groups: Set<String>

  /// The rules of a container's layout and of `drydock.yaml`.
  package init(_ container: Container) {
    layout = container.layout
    history = layout.historyPath
    includedRoots = layout.includedRoots
    let configuration = container.configuration
    exclude = configuration.exclude
    include = configuration.include
    groups = Set(container.groups.map(\.id))
    let transfer = configuration.android?.transfer ?? .cloud
    skipped = layout.neverIncluded(for: transfer)
    // A container that does not exist yet has no directories.
    let root = try? container.open()
    android =
      layout == .android
      ? configuration.android?.rules { path in (try? root?.status(path))??.type == .directory } : nil
  }

  /// Whether a backup may include anything below a directory, judged by its path alone.
  package func mayTake(below directory: ContainerPath) -> Bool {
    guard let decision = try? decision(of: directory, .directory, above: .none) else {
      return true
    }
    return decision.effective == nil || include.mayMatch(below: directory)
  }

  /// The decision for a path, given the decision for the directory above it.
  ///
  /// - Parameter entry: nil when it does not exist, or only its name counts.
  func decision(
    of path: ContainerPath, _ type: FileType, _ entry: DirectoryListing.Entry? = nil, above: Decision
  ) throws -> Decision {
    if isList(path) { return .none }
    if isState(path) {
      return Decision(exclusion: Exclusion(rule: .state, origin: path, detail: "Drydock's state"))
    }
    // A database is stored as a whole or not at all.
    if above.exclusion?.rule == .state || above.unit != nil { return above }
    return Decision(
      exclusion: try above.exclusion ?? ownExclusion(of: path, type, entry),
      inclusion: inclusion(of: path, type, above: above.inclusion))
  }

  private func inclusion(of path: ContainerPath, _ type: FileType, above: Inclusion?) -> Inclusion? {
    // The history and the directories above it are always included.
    if path == history || history.isInside(path) {
      return Inclusion(
        rule: .history, origin: history, detail: "the history of migrations is always included")
    }
    guard let pattern = include.decisive(for: path, isDirectory: type == .directory) else {
      return above?.rule == .include ? above : nil
    }
    return pattern.isNegated
      ? nil : Inclusion(rule: .include, origin: path, detail: pattern.description)
  }

  // MARK: Groups

  private func isInGroup(_ path: ContainerPath) -> Bool {
    path.inGroup.map { groups.contains($0.id) } ?? false
  }

  private func isList(_ path: ContainerPath) -> Bool { !groups.isEmpty && path == .groups }

  /// Whether a path is Drydock's state directory in the container's root or a group's.
  private func isState(_ path: ContainerPath) -> Bool {
    path == ContainerPath.stateDirectory
      || (isInGroup(path) && path.inGroup?.path == ContainerPath.stateDirectory)
  }

  // MARK: The rules

  private func ownExclusion(
    of path: ContainerPath, _ type: FileType, _ entry: DirectoryListing.Entry?
  ) throws -> Exclusion? {
    if let detail = layoutReason(for: path, type) {
      return Exclusion(rule: .layout, origin: path, detail: detail)
    }
    if let entry {
      if let found = try Exclusion.rule(among: entry.attributeNames(), value: entry.attribute) {
        return Exclusion(rule: found.rule, origin: path, detail: found.attribute)
      }
      if entry.status.isNoDump {
        return Exclusion(rule: .noDump, origin: path, detail: "the inode has the flag nodump")
      }
    }
    if !isInGroup(path), let detail = android?.reason(against: path, isDirectory: type == .directory) {
      return Exclusion(rule: .android, origin: path, detail: detail)
    }
    guard let pattern = exclude.decisive(for: path, isDirectory: type == .directory),
      !pattern.isNegated
    else { return nil }
    return Exclusion(rule: .pattern, origin: path, detail: pattern.description)
  }

  private func layoutReason(for path: ContainerPath, _ type: FileType) -> String? {
    var path = path
    if let group = path.inGroup, groups.contains(group.id) {
      // A device backup includes everything else in a group: many apps have databases in a group's root.
      path = group.path
    } else if let roots = includedRoots, path.parent.isRoot, !roots.contains(path) {
      return "backups include \(roots.map(\.description).joined(separator: ", ")) only"
    }
    if skipped.contains(path) { return "\(layout.rawValue) never backs up \(path)" }
    return layout.reason(againstName: path.name, type: type)
  }
}
