import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Foundation

extension FileStatus {
  /// Whether content and metadata are what they were. Linking an inode moves its change time, so that it says
  /// nothing about a file that a commit links; a directory is never linked, and its change time covers names and
  /// attributes too.
  ///
  /// - Parameter byChangeTime: whether nothing but a change can have moved a file's change time. It finds an edit that
  ///   keeps size and modification time, which `cp -p` and `rsync -t --inplace` make.
  func isSame(as other: FileStatus, byChangeTime: Bool = false) -> Bool {
    guard type == other.type, identity == other.identity else { return false }
    if type == .directory || byChangeTime, changed != other.changed { return false }
    // A recovery in another user namespace sees another owner of each directory.
    if type == .directory { return true }
    return size == other.size && modified == other.modified && mode == other.mode && user == other.user
      && group == other.group
  }
}

/// Every path of a tree at one moment. It takes about 70 bytes a path, of which a container may have a million: a dictionary
/// takes five times as much. Mounts and blocks are left out, and the links and sizes of directories.
struct TreeIndex: Sendable {
  fileprivate struct Entry {
    var kind: UInt32
    var inode, size: UInt64
    var modified, changed: Int64
  }

  /// What is the same for most paths: statuses without what an entry has.
  fileprivate var kinds = DistinctValues<FileStatus>()
  fileprivate var entries = PathTable<Entry>()

  /// Paths where something else is mounted: it is not part of the container.
  private(set) var mounts: Set<ContainerPath> = []

  init() {}

  init(of root: Directory) throws {
    try Self.walk(root) {
      mounts.insert($0)
    } visit: { path, status in
      self[path] = status
    }
  }

  /// Walks a tree, links not followed, mounts not entered, Drydock's own state and the roots themselves left out.
  ///
  /// - Parameter isKnown: whether a path need not be visited.
  private static func walk(
    _ root: Directory, except isKnown: (ContainerPath, NameList.Item) -> Bool = { _, _ in false },
    mounted: (ContainerPath) -> Void, visit: (ContainerPath, FileStatus) -> Void
  ) throws {
    let mount = try root.status().mount
    var groupMounts: [String: UInt64] = [:]
    for group in root.groups { groupMounts[group.id] = try group.root.status().mount }
    try root.walk(except: isKnown) { entry in
      if root.isState(entry.path) { return .over }
      if root.isRoot(entry.path) { return .into }
      let own = groupMounts.isEmpty ? nil : entry.path.inGroup.flatMap { groupMounts[$0.id] }
      guard entry.status.mount == own ?? mount else {
        mounted(entry.path)
        return .over
      }
      visit(entry.path, entry.status)
      return .into
    }
  }

  /// Compares a tree with the index, and takes no memory for it.
  ///
  /// - Parameters:
  ///   - byChangeTime: the paths whose change time counts.
  ///   - isLinked: whether a file is one and the same in two trees, so that only its name can differ: it is looked up in the
  ///     listing of its directory, and no status is read.
  /// - Returns: the first path that is not in both alike, or that cannot be moved any more; nil when there is none.
  func firstDifference(
    in root: Directory, byChangeTime paths: Set<ContainerPath>,
    isLinked: (ContainerPath) -> Bool = { _ in false }
  ) throws -> ContainerPath? {
    var (known, first, immutable): (Int, ContainerPath?, ContainerPath?) = (0, nil, nil)
    try Self.walk(root) { path, item in
      guard isLinked(path), file(path, listed: item) != nil else { return false }
      known += 1
      return true
    } mounted: { _ in
    } visit: { path, status in
      let seen = self[path]
      if seen != nil { known += 1 }
      let isSame = seen?.isSame(as: status, byChangeTime: paths.contains(path)) ?? false
      if !isSame { first = first.map { Swift.min($0, path) } ?? path }
      if status.isImmutable, seen?.isImmutable != true {
        immutable = immutable.map { Swift.min($0, path) } ?? path
      }
    }
    // Which path is gone needs the list of those that are there.
    if known < count {
      return try TreeIndex(of: root).differences(from: self, byChangeTime: paths).first ?? .root
    }
    return first ?? immutable
  }

  /// The status that a path had, without its mount and blocks, if a listing says that the same inode is there, and that it is
  /// no directory.
  func file(_ path: ContainerPath, listed item: NameList.Item) -> FileStatus? {
    guard item.isDirectory == false, let seen = self[path], seen.inode == item.inode, seen.type != .directory
    else { return nil }
    return seen
  }

  /// The part below a directory, as the index of that; of a container's root without its other groups.
  func below(_ directory: ContainerPath, of container: Container, groups: Set<String>) -> TreeIndex {
    if directory.isRoot && container.groups.isEmpty { return self }
    var part = TreeIndex()
    for (path, status) in self where path.isInside(directory) {
      guard path.inGroup.map({ groups.contains($0.id) }) ?? true else { continue }
      part[path.rebased(from: directory, to: .root)] = status
    }
    return part
  }

  /// The files that may be the main file of a database, without another system call.
  ///
  /// - Parameter named: those that the configuration names.
  func databaseCandidates(named: Set<ContainerPath>) -> [ContainerPath] {
    var found: Set<ContainerPath> = []
    let lastLetters = Set(DatabaseFormat.sidecarSuffixes.compactMap(\.utf8.last))
    for (path, status) in self {
      if status.type == .file,
        DatabaseFormat.mayBeDatabase(size: status.size, name: named.contains(path) ? nil : path)
      {
        found.insert(path)
      }
      if path.bytes.last.map(lastLetters.contains) == true, let main = DatabaseUnit.main(ofSidecar: path),
        self[main]?.type == .file
      {
        found.insert(main)
      }
    }
    return found.sorted()
  }

  /// The paths, in order, that are not in both alike.
  ///
  /// - Parameter byChangeTime: the paths whose change time counts.
  func differences(from other: TreeIndex, byChangeTime paths: Set<ContainerPath> = []) -> [ContainerPath] {
    var found = other.paths.filter { self[$0] == nil }
    for (path, status) in self {
      let seen = other[path]
      if seen?.isSame(as: status, byChangeTime: paths.contains(path)) != true { found.append(path) }
    }
    return found.sorted()
  }

  /// Those of the replaced paths whose change time only another process can have moved: what replaces them has another
  /// inode, and the commit links theirs nowhere. One that has another name in the container, which stays, is linked.
  func unlinked(_ replaced: some Sequence<ContainerPath>) -> Set<ContainerPath> {
    let files = Set(replaced.lazy.filter { path in self[path].map { $0.type != .directory } ?? false })
    let inodes = Set(files.compactMap { self[$0]?.identity })
    var linked: Set<FileIdentity> = []
    for (path, status) in self where inodes.contains(status.identity) && !files.contains(path) {
      linked.insert(status.identity)
    }
    return files.filter { path in self[path].map { !linked.contains($0.identity) } ?? false }
  }
}

/// As a dictionary, in the order of the paths.
extension TreeIndex: Sequence {
  typealias Element = (key: ContainerPath, value: FileStatus)

  subscript(path: ContainerPath) -> FileStatus? {
    get { entries[path].map(status) }
    set {
      let new = newValue.map { entry($0) }
      entries[path] = new
    }
  }

  private mutating func entry(_ status: FileStatus) -> Entry {
    var kind = status
    (kind.inode, kind.size, kind.modified, kind.changed) = (0, 0, 0, 0)
    (kind.mount, kind.blocks) = (0, 0)
    if kind.type == .directory { kind.links = 0 }
    return Entry(
      kind: kinds.number(of: kind), inode: status.inode, size: status.type == .directory ? 0 : status.size,
      modified: status.modified, changed: status.changed)
  }

  private func status(_ entry: Entry) -> FileStatus {
    var status = kinds[entry.kind]
    (status.inode, status.size) = (entry.inode, entry.size)
    (status.modified, status.changed) = (entry.modified, entry.changed)
    return status
  }

  func makeIterator() -> AnyIterator<Element> {
    var rest = entries.makeIterator()
    return AnyIterator { rest.next().map { ($0.path, status($0.value)) } }
  }

  var count: Int { entries.count }
  var underestimatedCount: Int { count }
  var paths: some Sequence<ContainerPath> { entries.paths }

  func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> TreeIndex {
    var part = TreeIndex()
    for element in self where try isIncluded(element) { part[element.key] = element.value }
    return part
  }
}

/// What an app removes while a transaction is prepared, such as the `-shm` of a database that it closes: not an error
/// of the transaction, which can be run again.
extension TreeIndex {
  /// Gives an error its meaning: a path of the container that was there and is gone now.
  func explained(_ error: any Error, in container: Container) -> any Error {
    guard let error = error as? DrydockError, error.code == .notFound, let path = error.path,
      FollowedStatus.identity(path) == nil,
      isKnown(path, in: container.root, as: .root)
        || container.groups.contains(where: { isKnown(path, in: $0.root, as: $0.path) })
    else { return error }
    return DrydockError(
      .changedMeanwhile, "was removed while the transaction was prepared; nothing was changed, run it again",
      path: path, cause: error)
  }

  private func isKnown(_ full: String, in root: String, as place: ContainerPath) -> Bool {
    guard full.hasPrefix(root + "/"), let below = try? ContainerPath(String(full.dropFirst(root.count + 1)))
    else { return false }
    return self[below.rebased(from: .root, to: place)] != nil
  }
}

/// The index on disk, for a recovery: one record a path, ended by NUL, fields by spaces and the path last. Plain
/// text because it is written in every commit, and JSON of a large container would take longer than the commit.
extension TreeIndex {
  static let file: ContainerPath = "index"

  /// Writes the index of what is below a place.
  func write(to folder: Directory, below place: ContainerPath = .root) throws {
    try folder.create(Self.file) { write in
      var bytes: [UInt8] = []
      for (path, status) in self where path.isInside(place) {
        Self.encode(path, status, into: &bytes)
        if bytes.count > 1 << 20 {
          try write(bytes)
          bytes.removeAll(keepingCapacity: true)
        }
      }
      try write(bytes)
    }
  }

  private static func encode(_ path: ContainerPath, _ s: FileStatus, into bytes: inout [UInt8]) {
    bytes.append(contentsOf: s.type.rawValue.utf8)
    for number in [
      s.device, s.inode, s.size, UInt64(s.mode), UInt64(s.user), UInt64(s.group),
    ] {
      bytes.append(UInt8(ascii: " "))
      bytes.append(contentsOf: String(number).utf8)
    }
    for time in [s.modified, s.changed] {
      bytes.append(UInt8(ascii: " "))
      bytes.append(contentsOf: String(time).utf8)
    }
    bytes.append(UInt8(ascii: " "))
    bytes.append(contentsOf: path.bytes)
    bytes.append(0)
  }

  /// The index in a transaction's folder.
  ///
  /// - Parameter device: the container's device as it is now: it has another number after a restart of the machine.
  init(in folder: Directory, device: UInt64? = nil) throws {
    for record in try folder.contents(Self.file, limit: 1 << 30).split(separator: 0) {
      let fields = record.split(separator: UInt8(ascii: " "), maxSplits: 9, omittingEmptySubsequences: false)
      let texts = fields.prefix(9).map { String(decoding: $0, as: UTF8.self) }
      let numbers = texts.dropFirst().prefix(6).compactMap { UInt64($0) }
      let times = texts.dropFirst(7).compactMap { Int64($0) }
      guard fields.count == 10, let type = FileType(rawValue: texts[0]), numbers.count == 6, times.count == 2
      else {
        throw DrydockError(
          .damagedState, "the index of an interrupted transaction is corrupt; nothing was removed",
          path: folder.full(Self.file))
      }
      self[try ContainerPath(bytes: fields[9])] = FileStatus(
        type: type, identity: FileIdentity(device: device ?? numbers[0], inode: numbers[1]), size: numbers[2],
        modified: times[0], changed: times[1], mode: UInt16(truncatingIfNeeded: numbers[3]),
        user: UInt32(truncatingIfNeeded: numbers[4]), group: UInt32(truncatingIfNeeded: numbers[5]))
    }
  }
}

/// Finds the paths of inodes.
struct InodePaths: Sendable {
  private let index: TreeIndex
  /// The lower halves of the inodes' numbers, each with the position of a path; sorted.
  private let places: [(half: UInt32, position: PathIndex.Position)]

  init(_ index: TreeIndex) {
    self.index = index
    var places: [(half: UInt32, position: PathIndex.Position)] = []
    places.reserveCapacity(index.count)
    index.entries.forEachPosition { places.append((Self.half($1.inode), $0)) }
    places.sort { $0.half < $1.half }
    self.places = places
  }

  static func half(_ inode: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: inode) }

  private func places(
    of half: UInt32
  ) -> ArraySlice<(half: UInt32, position: PathIndex.Position)> {
    let start = places.indices.first(since: { places[$0].half >= half })
    return places[start...].prefix { $0.half == half }
  }

  /// Whether some inode's number has this lower half.
  func contains(half: UInt32) -> Bool { !places(of: half).isEmpty }

  private func positions(of identity: FileIdentity) -> [PathIndex.Position] {
    places(of: Self.half(identity.inode)).map(\.position).filter { position in
      let entry = index.entries[position]
      return entry.inode == identity.inode && index.kinds[entry.kind].device == identity.device
    }
  }

  func contains(_ identity: FileIdentity) -> Bool { !positions(of: identity).isEmpty }

  /// The first path of an inode.
  subscript(identity: FileIdentity) -> ContainerPath? {
    positions(of: identity).map { index.entries.path(at: $0) }.min()
  }
}
