import CPlatform

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// The names in all directories of a tree as they were at one moment, and where what was renamed since then is now.
///
/// A walk that lists one directory after the other misses what is renamed meanwhile from one that it has yet to list
/// into one that it has listed. So all directories are listed first, and those whose change time has moved are listed
/// again until none has: then there was a moment at which the tree had just these names. Where nothing but the sidecars of
/// databases change from one look to the next, all other names count as such. What is not behind its name any more when
/// it is read is looked for by its inode.
package final class TreeNames {
  /// What one look at a directory gave.
  private struct Look {
    var names: NameList
    var identity: FileIdentity
    var changed: Int64
    /// The clock had not moved since the last change: another one could have the same time.
    var isYoung: Bool

    func isSame(as other: Look?) -> Bool { identity == other?.identity && changed == other?.changed }
  }

  /// How often directories that keep changing are listed again, at least.
  private static let rounds = 10
  /// A walk goes no deeper.
  private static let depth = 520

  private let root: Directory
  private let sidecarOf: (ContainerPath) -> ContainerPath?
  private let enters: (ContainerPath) -> Bool
  private let looks: [ContainerPath: Look]
  /// As it is now, which changes while the tree is read.
  private var current: [ContainerPath: Look]
  /// When the names were right.
  private let moment: Int64
  /// Directories that changed each time they were listed: something may have been missed in them.
  package let unstable: Set<ContainerPath>

  /// Lists a tree.
  ///
  /// - Parameters:
  ///   - sidecarOf: the file that a name is a sidecar of, if it is there: sidecars come and go with each write.
  ///   - enters: whether the names in a directory are wanted; the roots' are.
  package init(
    _ root: Directory, sidecarOf: @escaping (ContainerPath) -> ContainerPath?,
    enters: @escaping (ContainerPath) -> Bool
  ) {
    (self.root, self.sidecarOf, self.enters) = (root, sidecarOf, enters)
    var looks: [ContainerPath: Look] = [:]
    let roots: [ContainerPath] = [.root] + root.groups.map { ContainerPath.group($0.id) }
    let (unsettled, moment) = Self.settle(
      &looks, roots, root, patience: .milliseconds(500), sidecarOf, enters)
    (self.looks, current) = (looks, looks)
    (unstable, self.moment) = (Set(unsettled), moment)
  }

  /// The names that a directory had, sorted by their bytes; nil for one that could not be listed.
  package func names(in directory: ContainerPath) -> [NameList.Item]? { looks[directory]?.names.sorted }

  // MARK: Listing

  /// Lists directories, and again what has changed, until nothing has.
  ///
  /// - Returns: those that never held still, and the last time at which all others were as listed.
  private static func settle(
    _ looks: inout [ContainerPath: Look], _ start: [ContainerPath], _ root: Directory,
    patience: Duration, _ sidecarOf: (ContainerPath) -> ContainerPath?, _ enters: (ContainerPath) -> Bool
  ) -> ([ContainerPath], Int64) {
    var pending = start
    var round = 0
    var end: ContinuousClock.Instant?
    // Those in which more than the sidecars of databases changed between two looks.
    var varied: Set<ContainerPath> = []
    while true {
      while let path = pending.popLast() {
        let before = looks[path]
        pending += list(path, &looks, root, enters)
        guard let before, let now = looks[path], !now.isSame(as: before) else { continue }
        if now.names.lasting(sidecarOf) != before.names.lasting(sidecarOf) { varied.insert(path) }
      }
      let now = platform_stamp_time()
      var isWaiting = true
      for (path, look) in looks {
        let status = try? root.status(path)
        let isSame = status?.identity == look.identity && status?.changed == look.changed
        if !isSame { isWaiting = false }
        if !isSame || look.isYoung { pending.append(path) }
      }
      round += 1
      let limit = end ?? ContinuousClock.now + patience
      end = limit
      let unsettled = pending.filter(varied.contains)
      if pending.isEmpty || (round >= rounds && (unsettled.isEmpty || ContinuousClock.now > limit)) {
        return (unsettled, now)
      }
      if isWaiting { usleep(500) }
    }
  }

  /// Lists one directory.
  ///
  /// - Returns: the directories in it that are not listed yet.
  private static func list(
    _ path: ContainerPath, _ looks: inout [ContainerPath: Look], _ root: Directory,
    _ enters: (ContainerPath) -> Bool
  ) -> [ContainerPath] {
    // What cannot be opened or listed is reported by whoever reads it.
    guard let directory = try? root.directory(path), let status = try? directory.status() else {
      looks[path] = nil
      return []
    }
    let age = platform_stamp_time() - status.changed
    // Some file systems know whole seconds only.
    let isYoung = age == 0 || (status.changed % 1_000_000_000 == 0 && (0..<1_000_000_000).contains(age))
    guard let names = try? NameList(directory) else {
      looks[path] = nil
      return []
    }
    looks[path] = Look(
      names: names, identity: status.identity, changed: status.changed, isYoung: isYoung)
    return names.directories.map { path.appending(unchecked: $0) }.filter {
      looks[$0] == nil && !isTooDeep($0) && enters($0)
    }
  }

  private static func isTooDeep(_ path: ContainerPath) -> Bool {
    path.bytes.count > depth && path.bytes.count { $0 == UInt8(ascii: "/") } > depth
  }

  // MARK: What was renamed since

  /// Where something is now that had a name.
  package enum Found {
    /// Behind this path; when it was removed or replaced, what has its name now.
    case at(ContainerPath, FileStatus)
    /// Behind its name as ever: nothing was renamed in its directory, so that another inode's number says nothing.
    case unmoved(FileStatus)
    /// Removed.
    case gone
    /// It moved each time it was looked for: the places where it was seen.
    case unsettled([ContainerPath])
  }

  /// Looks for what had a name.
  package func find(_ path: ContainerPath, inode: UInt64) throws -> Found {
    var seen: Set<ContainerPath> = [path]
    for _ in 0..<Self.rounds {
      var (unsettled, _) = Self.settle(
        &current, [], root, patience: .milliseconds(50), sidecarOf, enters)
      let present = try root.status(path)
      guard let home = looks[path.parent] else { return present.map { .at(path, $0) } ?? .gone }
      if home.isSame(as: current[path.parent]), !unsettled.contains(path.parent), let present {
        return .unmoved(present)
      }
      for place in places(of: inode, on: home.identity.device) {
        seen.insert(place)
        guard let status = try root.status(place), status.inode == inode else {
          unsettled.append(place.parent)
          continue
        }
        guard let isSame = isOlder(place) else { return .unsettled(seen.sorted()) }
        if isSame { return .at(place, status) }
      }
      if unsettled.isEmpty { return present.map { .at(path, $0) } ?? .gone }
    }
    return .unsettled(seen.sorted())
  }

  /// The open directory that a path is in.
  package func directory(of path: ContainerPath) throws -> Directory { try root.directory(path.parent) }

  /// The names that an inode has now in directories that have changed.
  private func places(of inode: UInt64, on device: UInt64) -> [ContainerPath] {
    current.flatMap { path, look -> [ContainerPath] in
      look.identity.device == device && !look.isSame(as: looks[path])
        ? look.names.names(of: inode).map { path.appending(unchecked: $0) } : []
    }.sorted()
  }

  /// Whether a path's inode was there when the tree was listed; a file system gives the number of a removed one to the
  /// next that is made. Nil when that cannot be told.
  private func isOlder(_ path: ContainerPath) -> Bool? {
    var birth: Int64 = 0
    guard (try? root.withParent(of: path, { platform_birth($0, $1, &birth) })) == 0 else { return nil }
    if birth < moment { return true }
    // The clocks of two changes may differ by a tick.
    return birth > moment + 20_000_000 ? false : nil
  }
}
