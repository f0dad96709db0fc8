import AppContainer
import ContainerTransaction
import FileSystem

/// The live container as a restore sees it: every path, with what excludes it now.
struct LiveContainer {
  /// All paths, those below excluded directories too.
  private(set) var paths: [ContainerPath: ScannedEntry] = [:]
  /// Where the external data of its databases is.
  private(set) var externalData: Set<ContainerPath> = []

  init(_ staged: StagedContainer) throws {
    var found: [ContainerPath: ScannedEntry] = [:]
    try ContainerScan(staged.live, rules: ExclusionRules(staged.container), entersExcluded: true).visit {
      found[$0.path] = $0
    }
    paths = found
    for case .database(let unit) in found.values.map(\.kind) {
      if let external = unit.externalData { externalData.insert(external) }
    }
  }

  /// What excludes the nearest directory above that exists.
  func exclusionAbove(_ path: ContainerPath) -> Exclusion? {
    path.ancestors.lazy.compactMap { paths[$0] }.first?.exclusion
  }
}
