import AppContainer
import ContainerTransaction

/// The live container as a restore sees it: every path, with what excludes it now.
struct LiveContainer {
  /// All paths, those below excluded directories too.
  private(set) var paths: [ContainerPath: ScannedEntry] = [:]

  init(_ staged: StagedContainer) throws {
    var found: [ContainerPath: ScannedEntry] = [:]
    try ContainerScan(staged.live, rules: ExclusionRules(staged.container), entersExcluded: true).visit {
      found[$0.path] = $0
    }
    paths = found
  }

  /// What excludes the nearest directory above that exists.
  func exclusionAbove(_ path: ContainerPath) -> Exclusion? {
    path.ancestors.lazy.compactMap { paths[$0] }.first?.exclusion
  }
}
