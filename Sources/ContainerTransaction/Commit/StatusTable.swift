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

  private var kinds = DistinctValues<Kind>()
  private var entries = PathTable<Entry>()

  var count: Int { entries.count }

  subscript(path: ContainerPath) -> IndexedStatus? {
    get { entries[path].map(status) }
    set {
      let new = newValue.map { entry($0) }
      entries[path] = new
    }
  }

  private mutating func entry(_ status: IndexedStatus) -> Entry {
    let kind = Kind(
      type: status.type, device: status.identity.device, mode: status.mode, user: status.user,
      group: status.group)
    return Entry(
      kind: kinds.number(of: kind), inode: status.identity.inode, size: status.size,
      modified: status.modified, changed: status.changed)
  }

  private func status(_ entry: Entry) -> IndexedStatus {
    let kind = kinds[entry.kind]
    return IndexedStatus(
      type: kind.type, identity: FileIdentity(device: kind.device, inode: entry.inode), size: entry.size,
      modified: entry.modified, changed: entry.changed, mode: kind.mode, user: kind.user, group: kind.group)
  }
}

/// As a dictionary, in the order of the paths.
extension StatusTable: Sequence {
  typealias Element = (key: ContainerPath, value: IndexedStatus)

  func makeIterator() -> AnyIterator<Element> {
    var rest = entries.makeIterator()
    return AnyIterator { rest.next().map { ($0.path, status($0.value)) } }
  }

  var underestimatedCount: Int { count }

  var keys: some Sequence<ContainerPath> { entries.paths }

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
    /// The lower halves of the inodes' numbers, each with the position of a path; sorted.
    private let places: [(half: UInt32, position: PathIndex.Position)]

    init(_ table: StatusTable) {
      self.table = table
      var places: [(half: UInt32, position: PathIndex.Position)] = []
      places.reserveCapacity(table.count)
      table.entries.forEachPosition { places.append((Self.half($1.inode), $0)) }
      places.sort { $0.half < $1.half }
      self.places = places
    }

    static func half(_ inode: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: inode) }

    private func places(of half: UInt32) -> ArraySlice<(half: UInt32, position: PathIndex.Position)> {
      let start = places.indices.first(since: { places[$0].half >= half })
      return places[start...].prefix { $0.half == half }
    }

    /// Whether some inode's number has this lower half.
    func contains(half: UInt32) -> Bool { !places(of: half).isEmpty }

    private func positions(of identity: FileIdentity) -> [PathIndex.Position] {
      places(of: Self.half(identity.inode)).map(\.position).filter { position in
        let entry = table.entries[position]
        return entry.inode == identity.inode && table.kinds[entry.kind].device == identity.device
      }
    }

    func contains(_ identity: FileIdentity) -> Bool { !positions(of: identity).isEmpty }

    /// The first path of an inode.
    subscript(identity: FileIdentity) -> ContainerPath? {
      positions(of: identity).map { table.entries.path(at: $0) }.min()
    }
  }
}
