import CPlatform
import DrydockErrors

#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A path that a walk visits.
package struct WalkEntry {
  package let path: ContainerPath
  package let status: FileStatus
  package let parent: Directory
  /// Its name in `parent`, as a path of one component.
  package let name: ContainerPath
}

/// How a walk continues after a visit.
package enum WalkStep {
  /// With the contents of the path, if it is a directory.
  case into
  /// After the path and everything below it.
  case over
}

extension Directory {
  /// Visits everything below this directory, parents first, names in the order of their bytes. Links are not followed, and
  /// other mounts are not entered except the roots of groups. The list of groups is not visited. Paths that another process
  /// removes during the walk are skipped.
  ///
  /// - Parameters:
  ///   - start: the directory to start in, which is not visited itself.
  ///   - unreadable: handles a directory that cannot be opened or listed; by default the error is thrown.
  package func walk(
    from start: ContainerPath = .root,
    unreadable: (ContainerPath, DrydockError) throws -> Void = { throw $1 },
    visit: (WalkEntry) throws -> WalkStep
  ) throws {
    let top = start.isRoot ? self : try directory(start)
    try walk(top, start, mount: top.status().mount, unreadable, visit)
  }

  private func walk(
    _ directory: Directory, _ path: ContainerPath, mount: UInt64,
    _ unreadable: (ContainerPath, DrydockError) throws -> Void, _ visit: (WalkEntry) throws -> WalkStep
  ) throws {
    let names: [[UInt8]]
    do {
      names = try directory.names()
    } catch let error as DrydockError {
      return try unreadable(path, error)
    }
    for bytes in names {
      let name = ContainerPath(unchecked: bytes)
      guard let status = try directory.status(name) else { continue }
      let child = path.appending(unchecked: bytes)
      if !directory.isGroupList(name) {
        let step = try visit(WalkEntry(path: child, status: status, parent: directory, name: name))
        let isReachable = status.mount == mount || directory.isGroupList(.root)
        guard step == .into, status.type == .directory, isReachable else { continue }
      }
      let opened: Directory
      do {
        opened = try directory.directory(name)
      } catch let error as DrydockError {
        if error.code != .notFound { try unreadable(child, error) }
        continue
      }
      try walk(opened, child, mount: status.mount, unreadable, visit)
    }
  }
}

/// The names in all directories of a tree at one moment, and the new places of what was renamed since.
///
/// A walk that lists one directory after the other misses what is renamed from a directory that it has not yet listed into
/// one that it has. So all directories are listed first, and those whose change time has moved are listed again until none
/// has: at that moment the tree had exactly these names. Changes of database sidecars alone do not count. A name that no
/// longer has its inode when it is read is searched by inode.
package final class TreeNames {
  /// One listing of a directory.
  private struct Listing {
    var names: NameList
    var identity: FileIdentity
    var changed: Int64
    /// The clock has not advanced since the last change: another change could have the same time.
    var isYoung: Bool

    func isSame(as other: Listing?) -> Bool { identity == other?.identity && changed == other?.changed }
  }

  /// The minimum number of times that changing directories are listed again.
  private static let rounds = 10
  /// The maximum depth of a walk.
  private static let depth = 520

  private let root: Directory
  private let sidecarOf: (ContainerPath) -> ContainerPath?
  private let enters: (ContainerPath) -> Bool
  private let listings: [ContainerPath: Listing]
  /// The current listings, while the tree is read.
  private var current: [ContainerPath: Listing]
  /// The moment at which the names were correct.
  private let moment: Int64
  /// Directories that changed each time they were listed, so that paths may have been missed.
  package let unstable: Set<ContainerPath>

  /// Lists a tree.
  ///
  /// - Parameters:
  ///   - sidecarOf: the database file that a name would be a sidecar of.
  ///   - enters: whether to list a directory; the roots always are.
  package init(
    _ root: Directory, sidecarOf: @escaping (ContainerPath) -> ContainerPath?,
    enters: @escaping (ContainerPath) -> Bool
  ) {
    (self.root, self.sidecarOf, self.enters) = (root, sidecarOf, enters)
    var listings: [ContainerPath: Listing] = [:]
    let roots: [ContainerPath] = [.root] + root.groups.map { ContainerPath.group($0.id) }
    let (unsettled, moment) = Self.settle(
      &listings, roots, root, patience: .milliseconds(500), sidecarOf, enters)
    (self.listings, current) = (listings, listings)
    (unstable, self.moment) = (Set(unsettled), moment)
  }

  /// The names that a directory had, sorted by their bytes; nil when it could not be listed.
  package func names(in directory: ContainerPath) -> [NameList.Item]? { listings[directory]?.names.sorted }

  // MARK: Listing

  /// Lists directories, and changed ones again, until none has changed.
  ///
  /// - Returns: those that never stopped changing, and the last time at which all others were as listed.
  private static func settle(
    _ listings: inout [ContainerPath: Listing], _ start: [ContainerPath], _ root: Directory,
    patience: Duration, _ sidecarOf: (ContainerPath) -> ContainerPath?, _ enters: (ContainerPath) -> Bool
  ) -> ([ContainerPath], Int64) {
    var pending = start
    var round = 0
    var end: ContinuousClock.Instant?
    // Those in which more than database sidecars changed between two listings.
    var varied: Set<ContainerPath> = []
    while true {
      while let path = pending.popLast() {
        let before = listings[path]
        pending += list(path, &listings, root, enters)
        guard let before, let now = listings[path], !now.isSame(as: before) else { continue }
        if now.names.lasting(sidecarOf) != before.names.lasting(sidecarOf) { varied.insert(path) }
      }
      let now = platform_stamp_time()
      var isWaiting = true
      for (path, listing) in listings {
        let status = try? root.status(path)
        let isSame = status?.identity == listing.identity && status?.changed == listing.changed
        if !isSame { isWaiting = false }
        if !isSame || listing.isYoung { pending.append(path) }
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
    _ path: ContainerPath, _ listings: inout [ContainerPath: Listing], _ root: Directory,
    _ enters: (ContainerPath) -> Bool
  ) -> [ContainerPath] {
    // What cannot be opened or listed is reported when it is read.
    guard let directory = try? root.directory(path), let status = try? directory.status() else {
      listings[path] = nil
      return []
    }
    let age = platform_stamp_time() - status.changed
    // Some file systems have whole seconds only.
    let isYoung = age == 0 || (status.changed % 1_000_000_000 == 0 && (0..<1_000_000_000).contains(age))
    guard let names = try? NameList(directory) else {
      listings[path] = nil
      return []
    }
    listings[path] = Listing(
      names: names, identity: status.identity, changed: status.changed, isYoung: isYoung)
    return names.directories.map { path.appending(unchecked: $0) }.filter {
      listings[$0] == nil && !isTooDeep($0) && enters($0)
    }
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
    /// It moved during each search; the places where it was seen.
    case unsettled([ContainerPath])
  }

  /// Searches for the file that had a name.
  package func find(_ path: ContainerPath, inode: UInt64) throws -> Found {
    var seen: Set<ContainerPath> = [path]
    for _ in 0..<Self.rounds {
      var (unsettled, _) = Self.settle(
        &current, [], root, patience: .milliseconds(50), sidecarOf, enters)
      let present = try root.status(path)
      guard let home = listings[path.parent] else { return present.map { .at(path, $0) } ?? .gone }
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

  /// The current names of an inode in directories that have changed.
  private func places(of inode: UInt64, on device: UInt64) -> [ContainerPath] {
    current.flatMap { path, listing -> [ContainerPath] in
      listing.identity.device == device && !listing.isSame(as: listings[path])
        ? listing.names.names(of: inode).map { path.appending(unchecked: $0) } : []
    }.sorted()
  }

  /// Whether a path's inode existed when the tree was listed: file systems reuse the numbers of removed inodes. Nil when
  /// that is unknown.
  private func isOlder(_ path: ContainerPath) -> Bool? {
    var birth: Int64 = 0
    guard (try? root.withParent(of: path, { platform_birth($0, $1, &birth) })) == 0 else { return nil }
    if birth < moment { return true }
    // The times of two changes may differ by a clock tick.
    return birth > moment + 20_000_000 ? false : nil
  }
}

/// The names in a directory with their inodes, from one listing. Packed, because a container may have a million.
package struct NameList: Sendable {
  private let bytes: [UInt8]

  init(_ directory: Directory) throws {
    var names = platform_names()
    guard platform_list_names(directory.descriptor.rawValue, &names) == 0 else {
      throw DrydockError.lastCall("cannot list", directory.path)
    }
    defer { free(names.bytes) }
    bytes = Array(UnsafeBufferPointer(start: names.bytes, count: names.size))
  }

  package struct Item {
    package var name: [UInt8]
    package var inode: UInt64
    var mayBeDirectory: Bool
  }

  /// The items whose inode and kind match.
  private func items(where isWanted: (UInt64, _ mayBeDirectory: Bool) -> Bool) -> [Item] {
    bytes.withUnsafeBytes { bytes in
      var items: [Item] = []
      guard let base = bytes.baseAddress else { return items }
      var offset = 0
      while offset < bytes.count {
        let inode = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        let mayBeDirectory = bytes[offset + 8] != 2
        let start = offset + 9
        let length = strlen((base + start).assumingMemoryBound(to: CChar.self))
        if isWanted(inode, mayBeDirectory) {
          let name = Array(UnsafeRawBufferPointer(rebasing: bytes[start..<start + length]))
          items.append(Item(name: name, inode: inode, mayBeDirectory: mayBeDirectory))
        }
        offset = start + length + 1
      }
      return items
    }
  }

  /// All names, sorted by their bytes.
  var sorted: [Item] {
    items { _, _ in true }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
  }

  /// The names that may be directories.
  var directories: [[UInt8]] { items { $1 }.map(\.name) }

  /// The names with their inodes, without sidecars of files that exist.
  func lasting(_ sidecarOf: (ContainerPath) -> ContainerPath?) -> [[UInt8]: UInt64] {
    let all = Dictionary(items { _, _ in true }.map { ($0.name, $0.inode) }, uniquingKeysWith: { $1 })
    return all.filter { name, _ in
      sidecarOf(ContainerPath(name: name)).map { all[$0.bytes] == nil } ?? true
    }
  }

  /// The names of an inode.
  func names(of inode: UInt64) -> [[UInt8]] { items { number, _ in number == inode }.map(\.name) }
}
