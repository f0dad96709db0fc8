import AppContainer
import FileSystem

/// Tells entries that a manifest must not have: excluded ones, unless it says that it stores such, and Drydock's own
/// state in any case. Used once, in the order of the entries, which is the order of the excluded paths too.
struct ExcludedEntryCheck {
  private let excluded: [ExcludedPath]
  private let storesExcluded: Bool
  private var next = 0
  private var current: ExcludedPath?

  init(_ excluded: [ExcludedPath], storesExcluded: Bool) {
    self.excluded = excluded.sorted { $0.path < $1.path }
    self.storesExcluded = storesExcluded
  }

  /// The rule that says that this entry cannot be; nil when it can.
  mutating func forbidding(_ path: ContainerPath) -> Exclusion? {
    while next < excluded.count, excluded[next].path <= path {
      // What is below an excluded directory may be listed too; the directory covers it.
      if current.map({ !excluded[next].path.isInside($0.path) }) ?? true { current = excluded[next] }
      next += 1
    }
    guard let current, path == current.path || path.isInside(current.path) else { return nil }
    return storesExcluded && current.exclusion.rule != .state ? nil : current.exclusion
  }
}
