/// A value for each of many paths. A path takes four bytes besides its name and its value: a dictionary takes ten times the
/// memory.
///
/// The names of each directory are in one array, sorted by their bytes: paths are added fast in their order, and slowly in
/// another one.
package struct PathTable<Value: Sendable>: Sendable {
  private struct Listing: Sendable {
    let path: ContainerPath
    var names = SortedNames()
    /// In the order of the names.
    var values: [Value] = []

    func child(_ index: Int) -> ContainerPath { path.appending(unchecked: names[index]) }
  }

  private var listings: [Listing] = []
  /// The number of the listing of each directory.
  private var numbers: [ContainerPath: Int] = [:]
  package private(set) var count = 0

  package init() {}

  package var isEmpty: Bool { count == 0 }

  package subscript(path: ContainerPath) -> Value? {
    get {
      guard let number = numbers[path.parent] else { return nil }
      let (index, isThere) = listings[number].names.place(of: path.nameBytes)
      return isThere ? listings[number].values[index] : nil
    }
    set {
      let (parent, name) = (path.parent, path.nameBytes)
      guard let number = numbers[parent] ?? (newValue == nil ? nil : add(parent)) else { return }
      let (index, isThere) = listings[number].names.place(of: name)
      switch newValue {
      case let value? where isThere: listings[number].values[index] = value
      case let value?:
        listings[number].names.insert(name, at: index)
        listings[number].values.insert(value, at: index)
        count += 1
      case nil where isThere:
        listings[number].names.remove(at: index)
        listings[number].values.remove(at: index)
        count -= 1
      case nil: break
      }
    }
  }

  private mutating func add(_ directory: ContainerPath) -> Int {
    numbers[directory] = listings.count
    listings.append(Listing(path: directory))
    return listings.count - 1
  }

  /// All paths, sorted.
  package var paths: LazyMapSequence<PathTable, ContainerPath> { lazy.map(\.path) }

  /// The paths that are directly in a directory, sorted.
  package func children(of directory: ContainerPath) -> [ContainerPath] {
    guard let number = numbers[directory] else { return [] }
    return listings[number].values.indices.map(listings[number].child).filter { !$0.isRoot }
  }

  package func hasChildren(_ directory: ContainerPath) -> Bool {
    numbers[directory].map { listings[$0].names.hasBytes } ?? false
  }
}

/// The names in a directory, concatenated in the order of their bytes.
private struct SortedNames: Sendable {
  private var bytes: [UInt8] = []
  /// Where each name ends.
  private var ends: [UInt32] = []

  /// Whether there is a name besides the empty one: the root is listed in itself.
  var hasBytes: Bool { !bytes.isEmpty }

  private func start(of index: Int) -> Int { index == 0 ? 0 : Int(ends[index - 1]) }

  subscript(index: Int) -> ArraySlice<UInt8> { bytes[start(of: index)..<Int(ends[index])] }

  /// The index of a name, or the one to insert it at.
  func place(of name: ArraySlice<UInt8>) -> (index: Int, isThere: Bool) {
    if let last = ends.indices.last, self[last].lexicographicallyPrecedes(name) { return (last + 1, false) }
    let index = ends.indices.first(since: { !self[$0].lexicographicallyPrecedes(name) })
    return (index, index < ends.count && self[index] == name)
  }

  mutating func insert(_ name: ArraySlice<UInt8>, at index: Int) {
    let start = start(of: index)
    bytes.insert(contentsOf: name, at: start)
    ends.insert(UInt32(start + name.count), at: index)
    for later in ends.indices[(index + 1)...] { ends[later] += UInt32(name.count) }
  }

  mutating func remove(at index: Int) {
    let name = start(of: index)..<Int(ends[index])
    bytes.removeSubrange(name)
    ends.remove(at: index)
    for later in ends.indices[index...] { ends[later] -= UInt32(name.count) }
  }
}

extension PathTable {
  /// Where a path is, until another one is added or removed.
  package struct Position: Sendable {
    fileprivate let listing, index: UInt32
  }

  package subscript(position: Position) -> Value {
    listings[Int(position.listing)].values[Int(position.index)]
  }

  package func path(at position: Position) -> ContainerPath {
    listings[Int(position.listing)].child(Int(position.index))
  }

  /// Visits all values, in no order.
  package func forEachPosition(_ visit: (Position, Value) -> Void) {
    for (number, listing) in listings.enumerated() {
      for (index, value) in listing.values.enumerated() {
        visit(Position(listing: UInt32(number), index: UInt32(index)), value)
      }
    }
  }
}

/// In the order of the paths.
extension PathTable: Sequence {
  package struct Iterator: IteratorProtocol {
    private let listings: [Listing]
    /// Listings that have begun and are not over, from outer to inner ones, with the next entry of each.
    private var open: [(listing: Int, next: Int)] = []
    private var begun = 0

    fileprivate init(_ table: PathTable) { listings = table.listings.sorted { $0.path < $1.path } }

    package mutating func next() -> (path: ContainerPath, value: Value)? {
      while true {
        let top = open.last
        if let top, top.next == listings[top.listing].values.count {
          open.removeLast()
          continue
        }
        let path = top.map { listings[$0.listing].child($0.next) }
        // What is in a directory comes right after it.
        if begun < listings.count, path.map({ listings[begun].path < $0 }) ?? true {
          open.append((begun, 0))
          begun += 1
          continue
        }
        guard let top, let path else { return nil }
        open[open.count - 1].next += 1
        return (path, listings[top.listing].values[top.next])
      }
    }
  }

  package func makeIterator() -> Iterator { Iterator(self) }

  package var underestimatedCount: Int { count }
}
