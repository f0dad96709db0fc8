#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

/// A value for each of many paths. A path takes four bytes besides its name and its value: a dictionary takes ten times the
/// memory.
///
/// What depends on the type of the values is inlined where the table is used: modules are not optimized across their borders.
package struct PathTable<Value: Sendable>: Sendable {
  @usableFromInline package var index = PathIndex()
  /// For each directory of the index the values, in the order of the names.
  @usableFromInline package var values: [[Value]] = []

  package init() {}

  package var count: Int { index.count }

  package var isEmpty: Bool { count == 0 }

  @inlinable package subscript(path: ContainerPath) -> Value? {
    get { index.position(of: path).map { self[$0] } }
    set {
      guard let newValue else {
        if let position = index.remove(path) { values[position.directory].remove(at: position.name) }
        return
      }
      let (position, isNew) = index.insert(path)
      if position.directory == values.count { values.append([]) }
      if isNew {
        values[position.directory].insert(newValue, at: position.name)
      } else {
        values[position.directory][position.name] = newValue
      }
    }
  }

  @inlinable package subscript(position: PathIndex.Position) -> Value {
    values[position.directory][position.name]
  }

  package func path(at position: PathIndex.Position) -> ContainerPath { index.path(at: position) }

  /// Visits all values, in no order.
  @inlinable package func forEachPosition(_ visit: (PathIndex.Position, Value) -> Void) {
    for directory in values.indices {
      for name in values[directory].indices {
        visit(PathIndex.Position(directory, name), values[directory][name])
      }
    }
  }

  /// All paths, sorted.
  package var paths: LazyMapSequence<PathTable, ContainerPath> { lazy.map(\.path) }

  /// The paths that are directly in a directory, sorted.
  package func children(of directory: ContainerPath) -> [ContainerPath] { index.children(of: directory) }

  package func hasChildren(_ directory: ContainerPath) -> Bool { index.hasChildren(directory) }
}

/// In the order of the paths.
extension PathTable: Sequence {
  package struct Iterator: IteratorProtocol {
    @usableFromInline package let table: PathTable
    @usableFromInline package var walk: PathIndex.Walk

    @inlinable package init(_ table: PathTable) { (self.table, walk) = (table, PathIndex.Walk(table.index)) }

    @inlinable package mutating func next() -> (path: ContainerPath, value: Value)? {
      walk.next().map { ($0.path, table[$0.position]) }
    }
  }

  @inlinable package func makeIterator() -> Iterator { Iterator(self) }

  package var underestimatedCount: Int { count }
}

/// The paths of a table, and where the value of each is.
///
/// The names of each directory are in one array, sorted by their bytes: paths are added fast in their order, and slowly in
/// another one.
package struct PathIndex: Sendable {
  /// Where a path is, until another one is added or removed.
  package struct Position: Sendable {
    private let directoryNumber, nameNumber: UInt32

    @usableFromInline package init(_ directory: Int, _ name: Int) {
      (directoryNumber, nameNumber) = (UInt32(directory), UInt32(name))
    }

    /// The number of its directory, in no order.
    @usableFromInline package var directory: Int { Int(directoryNumber) }
    /// The number of its name in the directory.
    @usableFromInline package var name: Int { Int(nameNumber) }
  }

  private struct Listing: Sendable {
    let path: ContainerPath
    var names = SortedNames()

    func child(_ index: Int) -> ContainerPath { path.appending(unchecked: names[index]) }
  }

  private var listings: [Listing] = []
  /// The number of the listing of each directory.
  private var numbers: [ContainerPath: Int] = [:]
  fileprivate private(set) var count = 0

  @usableFromInline package func position(of path: ContainerPath) -> Position? {
    guard let number = numbers[path.parent] else { return nil }
    let (index, isThere) = listings[number].names.place(of: path.nameBytes)
    return isThere ? Position(number, index) : nil
  }

  fileprivate func path(at position: Position) -> ContainerPath {
    listings[position.directory].child(position.name)
  }

  /// Adds a path, unless it is there. A new directory has the number that comes next.
  @usableFromInline package mutating func insert(_ path: ContainerPath) -> (Position, isNew: Bool) {
    let parent = path.parent
    let number = numbers[parent] ?? listings.count
    if number == listings.count {
      numbers[parent] = number
      listings.append(Listing(path: parent))
    }
    let name = path.nameBytes
    let (index, isThere) = listings[number].names.place(of: name)
    if !isThere {
      listings[number].names.insert(name, at: index)
      count += 1
    }
    return (Position(number, index), !isThere)
  }

  /// Removes a path; returns where it was.
  @usableFromInline package mutating func remove(_ path: ContainerPath) -> Position? {
    guard let position = position(of: path) else { return nil }
    listings[position.directory].names.remove(at: position.name)
    count -= 1
    return position
  }

  fileprivate func children(of directory: ContainerPath) -> [ContainerPath] {
    guard let number = numbers[directory] else { return [] }
    return listings[number].names.indices.map(listings[number].child).filter { !$0.isRoot }
  }

  fileprivate func hasChildren(_ directory: ContainerPath) -> Bool {
    numbers[directory].map { listings[$0].names.hasBytes } ?? false
  }

  /// Visits the paths in their order.
  package struct Walk: Sendable {
    private let listings: [Listing]
    /// The numbers of the listings, in the order of their paths.
    private let order: [Int]
    /// Listings that have begun and are not over, from outer to inner ones, with the next entry of each.
    private var open: [(listing: Int, next: Int)] = []
    private var begun = 0

    @usableFromInline package init(_ index: PathIndex) {
      let listings = index.listings
      self.listings = listings
      order = listings.indices.sorted { listings[$0].path < listings[$1].path }
    }

    @usableFromInline package mutating func next() -> (path: ContainerPath, position: Position)? {
      while true {
        let top = open.last
        if let top, top.next == listings[top.listing].names.indices.count {
          open.removeLast()
          continue
        }
        let path = top.map { listings[$0.listing].child($0.next) }
        // What is in a directory comes right after it.
        if begun < order.count, path.map({ listings[order[begun]].path < $0 }) ?? true {
          open.append((order[begun], 0))
          begun += 1
          continue
        }
        guard let top, let path else { return nil }
        open[open.count - 1].next += 1
        return (path, Position(top.listing, top.next))
      }
    }
  }
}

/// The names in a directory, concatenated in the order of their bytes.
private struct SortedNames: Sendable {
  private var bytes: [UInt8] = []
  /// Where each name ends.
  private var ends: [UInt32] = []

  /// Whether there is a name besides the empty one: the root is listed in itself.
  var hasBytes: Bool { !bytes.isEmpty }

  var indices: Range<Int> { ends.indices }

  private func start(of index: Int) -> Int { index == 0 ? 0 : Int(ends[index - 1]) }

  subscript(index: Int) -> ArraySlice<UInt8> { bytes[start(of: index)..<Int(ends[index])] }

  /// The index of a name, or the one to insert it at.
  func place(of name: ArraySlice<UInt8>) -> (index: Int, isThere: Bool) {
    bytes.withUnsafeBytes { bytes in
      name.withUnsafeBytes { name in
        // Names that are added in their order come last.
        if let last = ends.indices.last, order(of: last, in: bytes, to: name) < 0 { return (last + 1, false) }
        let index = ends.indices.first(since: { order(of: $0, in: bytes, to: name) >= 0 })
        return (index, index < ends.count && order(of: index, in: bytes, to: name) == 0)
      }
    }
  }

  /// Below 0 when a name comes before another one, 0 when they are the same.
  private func order(
    of index: Int, in bytes: UnsafeRawBufferPointer, to name: UnsafeRawBufferPointer
  ) -> Int {
    let own = UnsafeRawBufferPointer(rebasing: bytes[start(of: index)..<Int(ends[index])])
    // The name of the root has no bytes, and no address.
    guard let left = own.baseAddress, let right = name.baseAddress else { return own.count - name.count }
    let order = memcmp(left, right, min(own.count, name.count))
    return order == 0 ? own.count - name.count : Int(order)
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
