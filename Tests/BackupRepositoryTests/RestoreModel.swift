import AppContainer
import BackupRepository

/// The design's nine rules, written down a second time and independently of `RestorePlan`: what becomes of each path.
/// Paths are plain text here.
struct RestoreModel {
  enum Content: Hashable {
    case directory, file(String), link, database(Int), fifo
  }

  struct Node: Hashable {
    var content: Content
    var isFlagged = false
  }

  enum End: String { case archive, live, absent }

  enum Scope: Hashable { case all, paths(Set<String>), stores(Set<ContainerStore>) }

  /// What the archive stores, what it says was kept out, and what could not be stored.
  var stored: [String: Node] = [:]
  var excluded: Set<String> = []
  var skipped: Set<String> = []
  var live: [String: Node] = [:]
  var scope = Scope.all
  var keepExtra = false, overwriteExcluded = false, includeExcluded = false

  /// What becomes of each path, rule 5 aside.
  func ends() -> [String: End] {
    var ends = Set(stored.keys).union(live.keys).reduce(into: [String: End]()) { $0[$1] = end(of: $1) }
    // What stays, stays with the directories above it.
    for (path, end) in ends where end == .live {
      for above in Self.above(path) where ends[above] == .absent { ends[above] = .live }
    }
    // A directory keeps the flag that keeps out what stays in it.
    for (path, end) in ends where end == .archive && stored[path]?.content == .directory {
      guard live[path]?.isFlagged ?? false else { continue }
      if ends.contains(where: { $0.key.hasPrefix(path + "/") && $0.value == .live }) { ends[path] = .live }
    }
    // What comes back, comes with the directories above it, inside of the scope or not.
    for (path, end) in ends where end == .archive {
      for above in Self.above(path) where ends[above] == .absent && stored[above] != nil {
        ends[above] = .archive
      }
    }
    return ends
  }

  /// Rule 5: paths that stay where the archive has something of another kind above or below.
  func conflicts(_ ends: [String: End]) -> Set<String> {
    var found: Set<String> = []
    for (path, end) in ends {
      for above in Self.above(path) {
        switch (ends[above], end) {
        case (.archive?, .live) where stored[above]?.content != .directory: found.insert(above)
        case (.live?, .archive) where live[above]?.content != .directory: found.insert(above)
        default: continue
        }
      }
    }
    return found
  }

  /// Whether a restore tells that it has preserved a path.
  func isPreserved(_ path: String) -> Bool {
    guard let node = live[path], isInScope(path), end(of: path) == .live else { return false }
    return isExcluded(path) || (!isUsable(path) && (isSkipped(path) || node.content == .fifo))
  }

  private func end(of path: String) -> End {
    guard isInScope(path) else { return live[path] == nil ? .absent : .live }  // 7
    guard let node = live[path] else { return isUsable(path) ? .archive : .absent }  // 3
    if isExcluded(path) {  // 2
      guard overwriteExcluded else { return .live }
      if isUsable(path) { return .archive }
      let isReplacedAbove = Self.above(path).contains {
        isUsable($0) && isInScope($0) && stored[$0]?.content != .directory
      }
      return isReplacedAbove && node.content != .fifo && !isSkipped(path) && !keepExtra ? .absent : .live
    }
    if isUsable(path) { return .archive }
    if isSkipped(path) || node.content == .fifo { return .live }  // 4
    return keepExtra ? .live : .absent  // 6
  }

  private func isUsable(_ path: String) -> Bool {
    stored[path] != nil && (includeExcluded || !Self.withAbove(path).contains(where: excluded.contains))
  }

  private func isExcluded(_ path: String) -> Bool {
    Self.withAbove(path).contains { excluded.contains($0) || live[$0]?.isFlagged ?? false }
  }

  private func isSkipped(_ path: String) -> Bool { Self.withAbove(path).contains(where: skipped.contains) }

  private func isInScope(_ path: String) -> Bool {
    switch scope {
    case .all: return true
    case .paths(let tops): return Self.withAbove(path).contains(where: tops.contains)
    case .stores(let stores):
      let node = isUsable(path) ? stored[path] : live[path]
      if case .database? = node?.content { return stores.contains(.databases) }
      return stores.contains(.files)
    }
  }

  static func above(_ path: String) -> [String] {
    let parts = path.split(separator: "/")
    return (1..<max(parts.count, 1)).map { parts[..<$0].joined(separator: "/") }
  }

  private static func withAbove(_ path: String) -> [String] { above(path) + [path] }
}
