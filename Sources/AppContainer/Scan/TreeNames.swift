import AppStores
import DrydockErrors
import FileSystem
import Foundation

/// The names in all directories of a container at one moment, and the current paths of what was renamed since.
///
/// A scan that lists one directory after the other misses what is renamed from a directory that it has not yet listed into
/// one that it has. So all directories are listed first, and those whose change time has moved are listed again until none
/// has: at that moment the tree had exactly these names. Changes of database sidecars alone do not count. A name that no
/// longer has its inode when it is read is searched by inode.
package final class TreeNames {
  private struct Listing {
    var names: NameList
    var identity: FileIdentity
    var changed: Int64
    /// The clock has not advanced since the last change: another change could have the same time.
    var isYoung: Bool

    func isSame(as other: Listing?) -> Bool { identity == other?.identity && changed == other?.changed }

    /// The names with their inodes, without sidecars of files that exist.
    var lasting: [[UInt8]: UInt64] {
      let all = Dictionary(names.items().map { ($0.name, $0.inode) }, uniquingKeysWith: { $1 })
      return all.filter { name, _ in
        DatabaseUnit.main(ofSidecar: ContainerPath(name: name)).map { all[$0.bytes] == nil } ?? true
      }
    }
  }

  /// The minimum number of times that changing directories are listed again.
  private static let rounds = 10
  /// The maximum depth of a scan.
  private static let depth = 520

  private let root: Directory
  /// Whose excluded directories are not listed; nil lists all.
  private let rules: ExclusionRules?
  private let listed: (@Sendable (ContainerPath) -> Void)?
  /// The listings of the moment at which the names were correct.
  private var listings: [ContainerPath: Listing] = [:]
  private var moment: Int64 = 0
  /// The current listings, while the tree is read.
  private var current: [ContainerPath: Listing] = [:]
  /// Directories that changed each time they were listed, so that paths may have been missed.
  package private(set) var unstable: Set<ContainerPath> = []

  /// Lists a container.
  ///
  /// - Parameters:
  ///   - rules: exclude directories that are not listed; nil lists all.
  ///   - listed: called for each directory that is about to be listed: the moment at which tests change something.
  package init(
    _ root: Directory, rules: ExclusionRules?, listed: (@Sendable (ContainerPath) -> Void)? = nil
  ) {
    (self.root, self.rules, self.listed) = (root, rules, listed)
    let roots: [ContainerPath] = [.root] + root.groups.map { ContainerPath.group($0.id) }
    let (unsettled, moment) = settle(roots, patience: .milliseconds(500))
    (listings, self.moment, unstable) = (current, moment, Set(unsettled))
  }

  /// The names that a directory had, sorted by their bytes; nil when it could not be listed.
  package func names(in directory: ContainerPath) -> [NameList.Item]? {
    listings[directory]?.names.items().sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The places of a file that moved, to be reported: its own, and of the others those that are not stored by themselves.
  package func reported(_ path: ContainerPath, seenAt others: [ContainerPath]) -> [ContainerPath] {
    [path]
      + others.filter { other in
        other != path && names(in: other.parent)?.contains { $0.name == other.name } != true
      }
  }

  // MARK: Listing

  /// Lists directories, and changed ones again, until none has changed.
  ///
  /// - Returns: those that never stopped changing, and the last time at which all others were as listed.
  private func settle(_ start: [ContainerPath], patience: Duration) -> ([ContainerPath], Int64) {
    var pending = start
    var round = 0
    var end: ContinuousClock.Instant?
    // Those in which more than database sidecars may have changed between two listings.
    var varied: Set<ContainerPath> = []
    while true {
      while let path = pending.popLast() {
        let before = current[path]
        pending += list(path)
        guard let before, let now = current[path], !now.isSame(as: before) else { continue }
        // A file that is renamed away and back in step with the listings leaves the same names.
        if now.lasting != before.lasting || !hasDatabase(path, now) { varied.insert(path) }
      }
      let now = FileStatus.timeOfChangesNow()
      var isWaiting = true
      for (path, listing) in current {
        let status = try? root.status(path)
        let isSame = status?.identity == listing.identity && status?.changed == listing.changed
        if !isSame { isWaiting = false }
        if !isSame || listing.isYoung { pending.append(path) }
      }
      round += 1
      let limit = end ?? ContinuousClock.now + patience
      end = limit
      let unsettled = pending.filter(varied.contains)
      if pending.isEmpty || (round >= Self.rounds && (unsettled.isEmpty || ContinuousClock.now > limit)) {
        return (unsettled, now)
      }
      if isWaiting { usleep(500) }
    }
  }

  /// Whether a directory has a database, whose sidecars come and go between two listings.
  private func hasDatabase(_ path: ContainerPath, _ listing: Listing) -> Bool {
    listing.names.items().contains { item in
      let name = path.appending(name: item.name)
      guard let status = try? root.status(name) else { return false }
      return (try? root.databaseUnit(name, status: status)) ?? nil != nil
    }
  }

  /// Lists one directory. What cannot be opened or listed is reported when it is read.
  ///
  /// - Returns: the directories in it that are not listed yet.
  private func list(_ path: ContainerPath) -> [ContainerPath] {
    guard let directory = try? root.directory(path), let status = try? directory.status() else {
      current[path] = nil
      return []
    }
    let age = FileStatus.timeOfChangesNow() - status.changed
    // Some file systems have whole seconds only.
    let isYoung = age == 0 || (status.changed % 1_000_000_000 == 0 && (0..<1_000_000_000).contains(age))
    guard let names = try? directory.listing() else {
      current[path] = nil
      return []
    }
    current[path] = Listing(
      names: names, identity: status.identity, changed: status.changed, isYoung: isYoung)
    return names.items(directoriesOnly: true).map { path.appending(name: $0.name) }.filter {
      current[$0] == nil && !Self.isTooDeep($0) && enters($0)
    }
  }

  private func enters(_ path: ContainerPath) -> Bool {
    listed?(path)
    return rules?.mayTake(below: path) ?? true
  }

  private static func isTooDeep(_ path: ContainerPath) -> Bool {
    path.bytes.count > depth && path.bytes.count { $0 == UInt8(ascii: "/") } > depth
  }

  // MARK: What was renamed since

  /// Where a file is now that had a name.
  package enum Found {
    /// At this path. If it was removed or replaced: what has its name now.
    case at(ContainerPath, FileStatus)
    /// At its old name: nothing was renamed in its directory, so that a different inode number means nothing.
    case unmoved(FileStatus)
    case gone
    /// It moved during each search; the paths where it was seen.
    case unsettled([ContainerPath])
  }

  package func find(_ path: ContainerPath, inode: UInt64) throws -> Found {
    var seen: Set<ContainerPath> = [path]
    for _ in 0..<Self.rounds {
      var (unsettled, _) = settle([], patience: .milliseconds(50))
      let present = try root.status(path)
      guard let home = listings[path.parent] else { return present.map { .at(path, $0) } ?? .gone }
      if home.isSame(as: current[path.parent]), !unsettled.contains(path.parent), let present {
        return .unmoved(present)
      }
      for candidate in paths(of: inode, on: home.identity.device) {
        seen.insert(candidate)
        guard let status = try root.status(candidate), status.inode == inode else {
          unsettled.append(candidate.parent)
          continue
        }
        guard let isSame = isOlder(candidate) else { return .unsettled(seen.sorted()) }
        if isSame { return .at(candidate, status) }
      }
      if unsettled.isEmpty { return present.map { .at(path, $0) } ?? .gone }
    }
    return .unsettled(seen.sorted())
  }

  func directory(of path: ContainerPath) throws -> Directory { try root.directory(path.parent) }

  /// The current paths of an inode in directories that have changed.
  private func paths(of inode: UInt64, on device: UInt64) -> [ContainerPath] {
    current.flatMap { path, listing -> [ContainerPath] in
      listing.identity.device == device && !listing.isSame(as: listings[path])
        ? listing.names.items(inode: inode).map { path.appending(name: $0.name) } : []
    }.sorted()
  }

  /// Whether a path's inode existed when the tree was listed: file systems reuse the numbers of removed inodes. Nil when
  /// that is unknown.
  private func isOlder(_ path: ContainerPath) -> Bool? {
    guard let birth = try? root.birthTime(of: path) else { return nil }
    if birth < moment { return true }
    // The times of two changes may differ by a clock tick.
    return birth > moment + 20_000_000 ? false : nil
  }
}
