/// Paths, in the order in which they were added. A path takes four bytes besides its name, and eight more when it is in
/// another directory than the one before: a million arrays of bytes take several times the memory.
///
/// It is not a `PathTable`, which keeps neither the order nor numbers.
public struct PathList: Sendable {
  private var directories = DistinctValues<ContainerPath>()
  /// The numbers of the directories, each for the paths from one to that of the next.
  private var runs: [(first: UInt32, directory: UInt32)] = []
  private var names: [UInt8] = []
  /// Where the name of each path ends in the bytes of all names.
  private var ends: [UInt32] = []

  /// An empty list.
  public init() {}

  package init(_ paths: some Sequence<ContainerPath>) {
    for path in paths { append(path) }
  }

  package mutating func append(_ path: ContainerPath) {
    let parent = path.parent
    if runs.last.map({ directories[$0.directory] != parent }) ?? true {
      runs.append((UInt32(ends.count), directories.number(of: parent)))
    }
    names += path.nameBytes
    ends.append(UInt32(names.count))
  }

  /// Sorts the paths. Costs nothing when they are in order.
  package mutating func sort() {
    var previous: ContainerPath?
    for path in self {
      if let last = previous, path < last {
        let order = (0..<UInt32(count)).sorted { self[Int($0)] < self[Int($1)] }
        self = PathList(order.lazy.map { [self] in self[Int($0)] })
        return
      }
      previous = path
    }
  }

  /// Adds the paths of another list; both are sorted, and so is what they give together.
  package mutating func merge(_ others: PathList) {
    var merged = PathList()
    var rest = others.makeIterator()
    var next = rest.next()
    for path in self {
      while let other = next, other < path {
        merged.append(other)
        next = rest.next()
      }
      merged.append(path)
    }
    while let other = next {
      merged.append(other)
      next = rest.next()
    }
    self = merged
  }
}

extension PathList: RandomAccessCollection {
  public var startIndex: Int { 0 }
  public var endIndex: Int { ends.count }

  public subscript(position: Int) -> ContainerPath {
    let start = position == 0 ? 0 : Int(ends[position - 1])
    let next = runs.indices.first(since: { runs[$0].first > position })
    return directories[runs[next - 1].directory].appending(unchecked: names[start..<Int(ends[position])])
  }
}

extension PathList: Equatable, Codable {
  public static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }

  public init(from decoder: any Decoder) throws { self.init(try [ContainerPath](from: decoder)) }

  public func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}
