/// Paths, in the order in which they were added. A path takes eight bytes besides its name: a million arrays of bytes take
/// several times the memory.
///
/// It is not a `PathTable`, which keeps neither the order nor numbers.
public struct PathList: Sendable {
  private var directories = DistinctValues<ContainerPath>()
  private var names: [UInt8] = []
  /// For each path its directory, and where its name ends in the bytes of all names.
  private var entries: [(directory: UInt32, nameEnd: UInt32)] = []

  /// An empty list.
  public init() {}

  package init(_ paths: some Sequence<ContainerPath>) {
    for path in paths { append(path) }
  }

  package mutating func append(_ path: ContainerPath) {
    let parent = path.parent
    var directory = entries.last?.directory
    if directory.map({ directories[$0] != parent }) ?? true { directory = directories.number(of: parent) }
    names += path.nameBytes
    entries.append((directory ?? 0, UInt32(names.count)))
  }

  /// Sorts the paths. Costs nothing when they are in order.
  package mutating func sort() {
    var previous: ContainerPath?
    for path in self {
      if let last = previous, path < last {
        self = PathList(Array(self).sorted())
        return
      }
      previous = path
    }
  }
}

extension PathList: RandomAccessCollection {
  public var startIndex: Int { 0 }
  public var endIndex: Int { entries.count }

  public subscript(position: Int) -> ContainerPath {
    let entry = entries[position]
    let start = position == 0 ? 0 : Int(entries[position - 1].nameEnd)
    return directories[entry.directory].appending(unchecked: names[start..<Int(entry.nameEnd)])
  }
}

extension PathList: Equatable, Codable {
  public static func == (left: Self, right: Self) -> Bool { left.elementsEqual(right) }

  public init(from decoder: any Decoder) throws { self.init(try [ContainerPath](from: decoder)) }

  public func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}
