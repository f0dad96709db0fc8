import FileSystem

/// Change records, sorted by path, parents first. There may be a million: one of a new file takes about 40 bytes besides its
/// name, or 100 when its node is stored here. They are read by number, in parts and from the end, and keep the order of
/// the file that they are in: so the paths are a `PathList`, and not a `PathTable`.
struct ChangeRecords: Sendable {
  /// The places of nodes and names; see ``node(_:)`` and ``name(_:_:)``.
  private typealias Packed = (
    before: UInt32, after: UInt32, kept: UInt32, settingsAfter: UInt32, granularity: ChangeRecord.Granularity
  )

  private var paths = PathList()
  private var packed: [Packed] = []
  private var nodes = NodeTable()
  /// The nodes of another owner, which are not stored twice.
  private let shared: NodeTable
  /// Names that do not have the usual form.
  private var names: [ContainerPath] = []
  private var isSorted = true

  /// Marks a node's place in ``shared``, and a name's place in ``names``.
  private static let mark: UInt32 = 1 << 31

  init(sharing nodes: NodeTable = NodeTable()) { shared = nodes }

  init(_ changes: some Sequence<ChangeRecord>) {
    self.init()
    for change in changes { append(change) }
  }

  /// - Parameter number: of what is after the change, when that is shared.
  mutating func append(_ change: ChangeRecord, sharedAfter number: UInt32? = nil) {
    var new: Packed = (0, 0, 0, 0, change.granularity)
    if let before = change.before { new.before = nodes.append(before) + 1 }
    if let number {
      new.after = Self.mark | number
    } else if let after = change.after {
      new.after = nodes.append(after) + 1
    }
    new.kept = place(change.kept, "before-")
    new.settingsAfter = place(change.settingsAfter, "after-")
    if let last = paths.last, change.path < last { isSorted = false }
    paths.append(change.path)
    packed.append(new)
  }

  private func node(_ place: UInt32) -> NodeRecord? {
    if place == 0 { return nil }
    return place & Self.mark != 0 ? shared[place & ~Self.mark] : nodes[place - 1]
  }

  private mutating func place(_ name: ContainerPath?, _ prefix: String) -> UInt32 {
    guard let name else { return 0 }
    if let number = UInt32(name.nameString.dropFirst(prefix.count)), number < Self.mark - 1,
      self.name(number + 1, prefix) == name
    {
      return number + 1
    }
    names.append(name)
    return Self.mark | UInt32(names.count - 1)
  }

  private func name(_ place: UInt32, _ prefix: String) -> ContainerPath? {
    if place == 0 { return nil }
    if place & Self.mark != 0 { return names[Int(place & ~Self.mark)] }
    return ContainerPath(name: Array("\(prefix)\(place - 1)".utf8))
  }

  /// The change of a path.
  subscript(path: ContainerPath) -> ChangeRecord? {
    let found = isSorted ? paths.indices.first(since: { paths[$0] >= path }) : paths.firstIndex(of: path)
    guard let found, found < count, paths[found] == path else { return nil }
    return self[found]
  }
}

extension ChangeRecords: RandomAccessCollection {
  var startIndex: Int { 0 }
  var endIndex: Int { packed.count }

  subscript(position: Int) -> ChangeRecord {
    let change = packed[position]
    return ChangeRecord(
      path: paths[position], granularity: change.granularity, before: node(change.before),
      after: node(change.after), kept: name(change.kept, "before-"),
      settingsAfter: name(change.settingsAfter, "after-"))
  }
}

extension ChangeRecords: Codable {
  init(from decoder: any Decoder) throws { self.init(try [ChangeRecord](from: decoder)) }

  func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}
