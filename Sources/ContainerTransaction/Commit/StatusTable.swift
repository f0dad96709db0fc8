import FileSystem

/// The status of every path of a tree. It takes about 70 bytes a path, of which a container may have a million: a dictionary
/// takes five times as much.
struct StatusTable: Sendable {
  /// What is the same for most paths of a tree.
  private struct Kind: Hashable {
    var type: FileType
    var device: UInt64
    var mode: UInt16
    var user, group: UInt32
  }

  private struct Entry {
    var kind: UInt32
    var inode, size: UInt64
    var modified, changed: Int64
  }

  private var kinds: [Kind] = []
  private var kindNumbers: [Kind: UInt32] = [:]
  private var numbers = PathTable<UInt32>()
  /// By the numbers of paths.
  private var entries: [Entry] = []
  /// The numbers of removed paths.
  private var unused: [UInt32] = []

  var count: Int { numbers.count }

  subscript(path: ContainerPath) -> IndexedStatus? {
    get { numbers[path].map { status(entries[Int($0)]) } }
    set {
      let known = numbers[path]
      if let newValue {
        let entry = entry(newValue)
        let number = known ?? unused.popLast() ?? UInt32(entries.count)
        if number == entries.count { entries.append(entry) } else { entries[Int(number)] = entry }
        if known == nil { numbers[path] = number }
      } else if let known {
        numbers[path] = nil
        unused.append(known)
      }
    }
  }

  private mutating func entry(_ status: IndexedStatus) -> Entry {
    let kind = Kind(
      type: status.type, device: status.identity.device, mode: status.mode, user: status.user,
      group: status.group)
    let number = kindNumbers[kind] ?? UInt32(kinds.count)
    if number == kinds.count {
      kinds.append(kind)
      kindNumbers[kind] = number
    }
    return Entry(
      kind: number, inode: status.identity.inode, size: status.size, modified: status.modified,
      changed: status.changed)
  }

  private func status(_ entry: Entry) -> IndexedStatus {
    let kind = kinds[Int(entry.kind)]
    return IndexedStatus(
      type: kind.type, identity: FileIdentity(device: kind.device, inode: entry.inode), size: entry.size,
      modified: entry.modified, changed: entry.changed, mode: kind.mode, user: kind.user, group: kind.group)
  }
}

/// As a dictionary, in the order of the paths.
extension StatusTable: Sequence {
  typealias Element = (key: ContainerPath, value: IndexedStatus)

  func makeIterator() -> AnyIterator<Element> {
    var paths = numbers.makeIterator()
    return AnyIterator { paths.next().map { ($0.path, status(entries[Int($0.value)])) } }
  }

  var underestimatedCount: Int { count }

  var keys: LazyMapSequence<StatusTable, ContainerPath> { lazy.map(\.key) }

  func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> StatusTable {
    var table = StatusTable()
    for element in self where try isIncluded(element) { table[element.key] = element.value }
    return table
  }
}

/// Finds the paths of inodes.
extension StatusTable {
  struct Inodes: Sendable {
    private let table: StatusTable
    /// The lower halves of the inodes' numbers, each with the number of a path; sorted.
    private var places: [(half: UInt32, number: Int)] = []

    init(_ table: StatusTable) {
      self.table = table
      let unused = Set(table.unused)
      places = table.entries.indices.filter { !unused.contains(UInt32($0)) }
        .map { (Self.half(table.entries[$0].inode), $0) }.sorted { $0.half < $1.half }
    }

    static func half(_ inode: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: inode) }

    private func places(of half: UInt32) -> ArraySlice<(half: UInt32, number: Int)> {
      let start = places.indices.first(since: { places[$0].half >= half })
      return places[start...].prefix { $0.half == half }
    }

    /// Whether some inode's number has this lower half.
    func contains(half: UInt32) -> Bool { !places(of: half).isEmpty }

    private func numbers(of identity: FileIdentity) -> [Int] {
      places(of: Self.half(identity.inode)).map(\.number).filter { number in
        let entry = table.entries[number]
        return entry.inode == identity.inode && table.kinds[Int(entry.kind)].device == identity.device
      }
    }

    func contains(_ identity: FileIdentity) -> Bool { !numbers(of: identity).isEmpty }

    /// The first path of an inode. It looks at all paths.
    subscript(identity: FileIdentity) -> ContainerPath? {
      numbers(of: identity).compactMap { table.numbers.path(of: UInt32($0)) }.min()
    }
  }
}
