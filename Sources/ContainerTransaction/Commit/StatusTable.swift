import FileSystem

/// The status of every path of a tree. It takes about 70 bytes a path, of which a container may have a million: a dictionary
/// takes five times as much.
///
/// The names of each directory are in one array, sorted by their bytes.
struct StatusTable: Sendable {
  /// What is the same for most paths of a tree.
  private struct Kind: Hashable {
    var type: FileType
    var device: UInt64
    var mode: UInt16
    var user, group: UInt32
  }

  private struct Entry {
    /// Where the name ends in the names of its directory.
    var nameEnd: UInt32
    var kind: UInt32
    var inode, size: UInt64
    var modified, changed: Int64
  }

  private struct Listing {
    let path: ContainerPath
    var names: [UInt8] = []
    var entries: [Entry] = []

    func start(of index: Int) -> Int { index == 0 ? 0 : Int(entries[index - 1].nameEnd) }

    func name(_ index: Int) -> ArraySlice<UInt8> { names[start(of: index)..<Int(entries[index].nameEnd)] }

    /// The first name that does not come before a name.
    func place(of name: ArraySlice<UInt8>) -> Int {
      // A walk adds names in their order.
      if let last = entries.indices.last, self.name(last).lexicographicallyPrecedes(name) { return last + 1 }
      var range = entries.startIndex..<entries.endIndex
      while !range.isEmpty {
        let middle = (range.lowerBound + range.upperBound) / 2
        if self.name(middle).lexicographicallyPrecedes(name) {
          range = middle + 1..<range.upperBound
        } else {
          range = range.lowerBound..<middle
        }
      }
      return range.lowerBound
    }

    func isThere(_ name: ArraySlice<UInt8>, at index: Int) -> Bool {
      index < entries.count && self.name(index) == name
    }

    mutating func insert(_ entry: Entry, _ name: ArraySlice<UInt8>, at index: Int) {
      let start = start(of: index)
      names.insert(contentsOf: name, at: start)
      var entry = entry
      entry.nameEnd = UInt32(start + name.count)
      entries.insert(entry, at: index)
      for later in entries.indices[(index + 1)...] { entries[later].nameEnd += UInt32(name.count) }
    }

    mutating func remove(at index: Int) {
      let name = start(of: index)..<Int(entries[index].nameEnd)
      names.removeSubrange(name)
      entries.remove(at: index)
      for later in entries.indices[index...] { entries[later].nameEnd -= UInt32(name.count) }
    }
  }

  private var kinds: [Kind] = []
  private var kindNumbers: [Kind: UInt32] = [:]
  private var listings: [Listing] = []
  private var numbers: [ContainerPath: Int] = [:]
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  subscript(path: ContainerPath) -> IndexedStatus? {
    get {
      let (parent, name) = Self.split(path)
      guard let number = numbers[parent] else { return nil }
      let index = listings[number].place(of: name)
      return listings[number].isThere(name, at: index) ? status(listings[number].entries[index]) : nil
    }
    set {
      let (parent, name) = Self.split(path)
      guard let number = numbers[parent] ?? (newValue == nil ? nil : add(parent)) else { return }
      let index = listings[number].place(of: name)
      let isThere = listings[number].isThere(name, at: index)
      switch newValue.map({ entry($0) }) {
      case var entry? where isThere:
        entry.nameEnd = listings[number].entries[index].nameEnd
        listings[number].entries[index] = entry
      case let entry?:
        listings[number].insert(entry, name, at: index)
        count += 1
      case nil where isThere:
        listings[number].remove(at: index)
        count -= 1
      case nil: break
      }
    }
  }

  private static func split(_ path: ContainerPath) -> (parent: ContainerPath, name: ArraySlice<UInt8>) {
    let parent = path.parent
    return (parent, path.bytes[(parent.isRoot ? 0 : parent.bytes.count + 1)...])
  }

  private mutating func add(_ directory: ContainerPath) -> Int {
    numbers[directory] = listings.count
    listings.append(Listing(path: directory))
    return listings.count - 1
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
      nameEnd: 0, kind: number, inode: status.identity.inode, size: status.size, modified: status.modified,
      changed: status.changed)
  }

  private func status(_ entry: Entry) -> IndexedStatus {
    let kind = kinds[Int(entry.kind)]
    return IndexedStatus(
      type: kind.type, identity: FileIdentity(device: kind.device, inode: entry.inode), size: entry.size,
      modified: entry.modified, changed: entry.changed, mode: kind.mode, user: kind.user, group: kind.group)
  }
}

/// As a dictionary: directory by directory, in no order of the paths.
extension StatusTable: Sequence {
  typealias Element = (key: ContainerPath, value: IndexedStatus)

  struct Iterator: IteratorProtocol {
    fileprivate let table: StatusTable
    private var number = 0, index = 0

    fileprivate init(_ table: StatusTable) { self.table = table }

    mutating func next() -> Element? {
      while number < table.listings.count {
        let listing = table.listings[number]
        if index < listing.entries.count {
          defer { index += 1 }
          return (
            listing.path.appending(unchecked: listing.name(index)), table.status(listing.entries[index])
          )
        }
        (number, index) = (number + 1, 0)
      }
      return nil
    }
  }

  func makeIterator() -> Iterator { Iterator(self) }

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
    /// The lower halves of the inodes' numbers, each with the number of a listing and of an entry in it; sorted.
    private var places: [(half: UInt32, listing: UInt32, entry: UInt32)] = []

    init(_ table: StatusTable) {
      self.table = table
      places.reserveCapacity(table.count)
      for (number, listing) in table.listings.enumerated() {
        for (index, entry) in listing.entries.enumerated() {
          places.append((Self.half(entry.inode), UInt32(number), UInt32(index)))
        }
      }
      places.sort { $0.half < $1.half }
    }

    static func half(_ inode: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: inode) }

    private func places(of half: UInt32) -> ArraySlice<(half: UInt32, listing: UInt32, entry: UInt32)> {
      var (low, high) = (places.startIndex, places.endIndex)
      while low < high {
        let middle = (low + high) / 2
        if places[middle].half < half { low = middle + 1 } else { high = middle }
      }
      return places[low...].prefix { $0.half == half }
    }

    /// Whether some inode's number has this lower half.
    func contains(half: UInt32) -> Bool { !places(of: half).isEmpty }

    /// The first path of an inode.
    subscript(identity: FileIdentity) -> ContainerPath? {
      places(of: Self.half(identity.inode)).compactMap { place in
        let listing = table.listings[Int(place.listing)]
        let entry = listing.entries[Int(place.entry)]
        guard entry.inode == identity.inode, table.kinds[Int(entry.kind)].device == identity.device else {
          return nil
        }
        return listing.path.appending(unchecked: listing.name(Int(place.entry)))
      }.min()
    }
  }
}
