/// Decides, path by path from the root down, what stays out of a backup.
public struct ExclusionRules: Sendable {
  private let layout: Layout
  private let exclude, include: [GlobPattern]

  /// The names under which Apple's attribute is found: as set on Linux, where only `user.` can be, and bare.
  public static let appleAttributes = [
    "user.com.apple.metadata:com_apple_backup_excludeItem", "com.apple.metadata:com_apple_backup_excludeItem",
  ]

  /// The directory in a container's root that a commit in place keeps its state in.
  public static let stateDirectory: ContainerPath = ".drydock-state"

  /// The rules of a container: its layout's and those in `drydock.yaml`.
  public init(_ container: Container) {
    layout = container.layout
    exclude = container.configuration.exclude
    include = container.configuration.include
  }

  /// Whether something below an excluded directory can be included after all.
  public var hasIncludes: Bool { !include.isEmpty }

  /// Whether a path is taken whatever was decided for it: the history is part of what a container is, and so are
  /// the directories above it. What was decided for such a directory still holds for everything else in it.
  public func alwaysTakes(_ path: ContainerPath) -> Bool {
    path == layout.historyPath || layout.historyPath.isInside(path)
  }

  /// The rule that keeps a path out, or nil; see also ``alwaysTakes(_:)``.
  ///
  /// - Parameters:
  ///   - inherited: what was decided for the directory above.
  ///   - attribute: reads one extended attribute of the path.
  public func exclusion(
    of path: ContainerPath, type: FileType, inherited: Exclusion?,
    attribute: (String) throws -> [UInt8]?
  ) rethrows -> Exclusion? {
    if path == Self.stateDirectory {
      return Exclusion(rule: .state, origin: path, detail: "Drydock's own state")
    }
    if include.contains(where: { $0.matches(path, isDirectory: type == .directory) }) { return nil }
    if let inherited { return inherited }
    if let own = layoutExclusion(of: path) { return own }
    for name in Self.appleAttributes where try attribute(name) != nil {
      return Exclusion(rule: .appleAttribute, origin: path, detail: name)
    }
    if let pattern = exclude.first(where: { $0.matches(path, isDirectory: type == .directory) }) {
      return Exclusion(rule: .pattern, origin: path, detail: pattern.description)
    }
    return nil
  }

  private func layoutExclusion(of path: ContainerPath) -> Exclusion? {
    if let roots = layout.includedRoots, path.parent.isRoot, !roots.contains(path) {
      return Exclusion(
        rule: .layout, origin: path,
        detail: "a backup takes \(roots.map(\.description).joined(separator: ", ")) only")
    }
    if layout.neverIncluded.contains(path) {
      return Exclusion(rule: .layout, origin: path, detail: "\(layout.rawValue) never backs up \(path)")
    }
    return nil
  }
}
