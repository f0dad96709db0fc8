/// A number for each of many paths. A path takes eight bytes besides its name: a dictionary takes ten times the memory.
///
/// The names of each directory are in one array, sorted by their bytes: paths are added fast in their order, and slowly in
/// another one.
package struct PathNumbers: Sendable {
  private struct Entry {
    /// Where the name ends in the names of its directory.
    var nameEnd: UInt32
    var number: UInt32
  }

  private struct Listing {
    let path: ContainerPath
    var names: [UInt8] = []
    var entries: [Entry] = []

    func start(of index: Int) -> Int { index == 0 ? 0 : Int(entries[index - 1].nameEnd) }

    func name(_ index: Int) -> ArraySlice<UInt8> { names[start(of: index)..<Int(entries[index].nameEnd)] }

    func child(_ index: Int) -> ContainerPath { path.appending(unchecked: name(index)) }

    /// The first name that does not come before a name.
    func place(of name: ArraySlice<UInt8>) -> Int {
      if let last = entries.indices.last, self.name(last).lexicographicallyPrecedes(name) { return last + 1 }
      return entries.indices.first(since: { !self.name($0).lexicographicallyPrecedes(name) })
    }

    func isThere(_ name: ArraySlice<UInt8>, at index: Int) -> Bool {
      index < entries.count && self.name(index) == name
    }

    mutating func insert(_ number: UInt32, _ name: ArraySlice<UInt8>, at index: Int) {
      let start = start(of: index)
      names.insert(contentsOf: name, at: start)
      entries.insert(Entry(nameEnd: UInt32(start + name.count), number: number), at: index)
      for later in entries.indices[(index + 1)...] { entries[later].nameEnd += UInt32(name.count) }
    }

    mutating func remove(at index: Int) {
      let name = start(of: index)..<Int(entries[index].nameEnd)
      names.removeSubrange(name)
      entries.remove(at: index)
      for later in entries.indices[index...] { entries[later].nameEnd -= UInt32(name.count) }
    }
  }

  private var listings: [Listing] = []
  private var places: [ContainerPath: Int] = [:]
  package private(set) var count = 0

  package init() {}

  package var isEmpty: Bool { count == 0 }

  package subscript(path: ContainerPath) -> UInt32? {
    get {
      guard let place = places[path.parent] else { return nil }
      let name = path.nameBytes
      let index = listings[place].place(of: name)
      return listings[place].isThere(name, at: index) ? listings[place].entries[index].number : nil
    }
    set {
      let (parent, name) = (path.parent, path.nameBytes)
      guard let place = places[parent] ?? (newValue == nil ? nil : add(parent)) else { return }
      let index = listings[place].place(of: name)
      let isThere = listings[place].isThere(name, at: index)
      switch newValue {
      case let number? where isThere: listings[place].entries[index].number = number
      case let number?:
        listings[place].insert(number, name, at: index)
        count += 1
      case nil where isThere:
        listings[place].remove(at: index)
        count -= 1
      case nil: break
      }
    }
  }

  private mutating func add(_ directory: ContainerPath) -> Int {
    places[directory] = listings.count
    listings.append(Listing(path: directory))
    return listings.count - 1
  }

  /// A path with a number. It looks at each: a million take milliseconds.
  package func path(of number: UInt32) -> ContainerPath? {
    for listing in listings {
      if let index = listing.entries.firstIndex(where: { $0.number == number }) {
        return listing.child(index)
      }
    }
    return nil
  }

  /// The paths that are directly in a directory, sorted.
  package func children(of directory: ContainerPath) -> [ContainerPath] {
    guard let place = places[directory] else { return [] }
    return listings[place].entries.indices.map(listings[place].child).filter { !$0.isRoot }
  }

  package func hasChildren(_ directory: ContainerPath) -> Bool {
    guard let place = places[directory] else { return false }
    // The root is listed in itself, with an empty name, which comes first.
    return listings[place].entries.last != nil && listings[place].names.count > 0
  }
}

/// In the order of the paths.
extension PathNumbers: Sequence {
  package struct Iterator: IteratorProtocol {
    private let listings: [Listing]
    /// Listings that have begun and are not over, from outer to inner ones, with the next entry of each.
    private var open: [(listing: Listing, next: Int)] = []
    private var begun = 0

    fileprivate init(_ numbers: PathNumbers) { listings = numbers.listings.sorted { $0.path < $1.path } }

    package mutating func next() -> (path: ContainerPath, number: UInt32)? {
      while true {
        let top = open.last
        if let top, top.next == top.listing.entries.count {
          open.removeLast()
          continue
        }
        let path = top.map { $0.listing.child($0.next) }
        // What is in a directory comes right after it.
        if begun < listings.count, path.map({ listings[begun].path < $0 }) ?? true {
          open.append((listings[begun], 0))
          begun += 1
          continue
        }
        guard let top, let path else { return nil }
        open[open.count - 1].next += 1
        return (path, top.listing.entries[top.next].number)
      }
    }
  }

  package func makeIterator() -> Iterator { Iterator(self) }

  package var underestimatedCount: Int { count }
}
