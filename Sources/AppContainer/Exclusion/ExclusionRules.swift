import FileSystem

/// Decides, path by path from the root down, what stays out of a backup.
package struct ExclusionRules: Sendable {
  /// What a path is, as far as a rule asks.
  struct Subject {
    var path: ContainerPath
    var type: FileType
    var isNoDump: Bool
    /// The names of its extended attributes, and the value of one.
    var attributeNames: () throws -> [String]
    var attributeValue: (String) throws -> [UInt8]?
  }

  private let layout: Layout
  private let history: ContainerPath
  /// The layout's lists, made once: every path is compared with them.
  private let includedRoots: [ContainerPath]?
  private let skipped: [ContainerPath]
  private let android: AndroidRules?
  private let exclude, include: PatternList
  private let groups: Set<String>

  /// The rules of a container: its layout's and those in `drydock.yaml`.
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
    // A container that is still to be made has no directories to tell a rule's path by.
    let root = try? container.open()
    android =
      layout == .android
      ? configuration.android?.rules { path in (try? root?.status(path))??.type == .directory } : nil
  }

  /// Whether something below an excluded directory can be included after all.
  func mayInclude(below directory: ContainerPath) -> Bool { include.mayMatch(below: directory) }

  /// Whether a path itself, below an excluded directory, is included by a pattern.
  func includes(_ path: ContainerPath, type: FileType) -> Bool {
    if case .matched = include.verdict(of: path, isDirectory: type == .directory) { true } else { false }
  }

  /// Whether anything below a directory may be taken, as far as its path alone shows.
  package func mayTake(below directory: ContainerPath) -> Bool {
    let subject = Subject(
      path: directory, type: .directory, isNoDump: false, attributeNames: { [] }, attributeValue: { _ in nil }
    )
    guard let decision = try? decision(of: subject, above: .none) else { return true }
    return decision.effective == nil || mayInclude(below: directory)
  }

  /// What is decided for a path, after what was decided for the directory above.
  func decision(of subject: Subject, above: Decision) throws -> Decision {
    if isList(subject.path) { return .none }
    if isState(subject.path) {
      return Decision(
        exclusion: Exclusion(rule: .state, origin: subject.path, detail: "Drydock's own state"))
    }
    // A unit is stored as a whole or not at all.
    if above.exclusion?.rule == .state || above.unit != nil { return above }
    return Decision(
      exclusion: try above.exclusion ?? ownExclusion(of: subject),
      inclusion: inclusion(of: subject, above: above.inclusion))
  }

  private func inclusion(of subject: Subject, above: Inclusion?) -> Inclusion? {
    // The history is part of what a container is, and so are the directories above it.
    if subject.path == history || history.isInside(subject.path) {
      return Inclusion(
        rule: .history, origin: history, detail: "the history of migrations is always taken")
    }
    switch include.verdict(of: subject.path, isDirectory: subject.type == .directory) {
    case .matched(let pattern): return Inclusion(rule: .include, origin: subject.path, detail: pattern)
    case .negated: return nil
    case .silent: return above?.rule == .include ? above : nil
    }
  }

  // MARK: Groups

  private func isInGroup(_ path: ContainerPath) -> Bool {
    path.inGroup.map { groups.contains($0.id) } ?? false
  }

  private func isList(_ path: ContainerPath) -> Bool { !groups.isEmpty && path == .groups }

  /// Whether a path is Drydock's own state, in the container's root or a group's.
  private func isState(_ path: ContainerPath) -> Bool {
    path == ContainerPath.stateDirectory
      || (isInGroup(path) && path.inGroup?.path == ContainerPath.stateDirectory)
  }

  // MARK: The rules

  private func ownExclusion(of subject: Subject) throws -> Exclusion? {
    let path = subject.path
    if let detail = layoutReason(for: subject) {
      return Exclusion(rule: .layout, origin: path, detail: detail)
    }
    let names = try subject.attributeNames()
    if let found = try ExclusionAttributes.rule(among: names, value: subject.attributeValue) {
      return Exclusion(rule: found.rule, origin: path, detail: found.attribute)
    }
    if subject.isNoDump {
      return Exclusion(rule: .noDump, origin: path, detail: "the inode has the flag nodump")
    }
    if !isInGroup(path), let detail = android?.reason(against: path, isDirectory: subject.type == .directory)
    {
      return Exclusion(rule: .android, origin: path, detail: detail)
    }
    if case .matched(let pattern) = exclude.verdict(of: path, isDirectory: subject.type == .directory) {
      return Exclusion(rule: .pattern, origin: path, detail: pattern)
    }
    return nil
  }

  private func layoutReason(for subject: Subject) -> String? {
    var path = subject.path
    if let group = path.inGroup, groups.contains(group.id) {
      // Of a group a device backup takes all but these: many apps keep their databases in a group's root itself.
      path = group.path
    } else if let roots = includedRoots, path.parent.isRoot, !roots.contains(path) {
      return "a backup takes \(roots.map(\.description).joined(separator: ", ")) only"
    }
    if skipped.contains(path) { return "\(layout.rawValue) never backs up \(path)" }
    return layout.reason(againstName: path.name, type: subject.type)
  }
}
