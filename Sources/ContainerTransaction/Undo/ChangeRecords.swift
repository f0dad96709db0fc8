import FileSystem

/// Change records, sorted by path, parents first. There may be a million: one of a new file takes 16 bytes besides its name,
/// or 64 when its node is stored here. They are read by number, in parts and from the end, and keep the order of
/// the file that they are in: so the paths are a `PathList`, and not a `PathTable`.
struct ChangeRecords: Sendable {
  /// The places of nodes, see ``node(_:)``, and whether names have the usual form.
  private typealias Packed = (
    before: UInt32, after: UInt32, isKept: Bool, hasSettingsAfter: Bool, granularity: ChangeRecord.Granularity
  )

  private var paths = PathList()
  private var packed: [Packed] = []
  private var nodes = NodeTable()
  /// The nodes of another owner, which are not stored twice.
  private let shared: NodeTable
  /// By the numbers of changes, the names that do not have the usual form.
  private var names: [Int: (kept: ContainerPath?, settingsAfter: ContainerPath?)] = [:]
  private var isSorted = true

  /// Marks a node's place in ``shared``.
  private static let mark: UInt32 = 1 << 31

  init(sharing nodes: NodeTable = NodeTable()) { shared = nodes }

  init(_ changes: some Sequence<ChangeRecord>) {
    self.init()
    for change in changes { append(change) }
  }

  /// - Parameter number: of what is after the change, when that is shared.
  mutating func append(_ change: ChangeRecord, sharedAfter number: UInt32? = nil) {
    let count = count
    let isKept = change.kept.map { $0 == Self.name("before", count) } ?? false
    let hasSettingsAfter = change.settingsAfter.map { $0 == Self.name("after", count) } ?? false
    var new: Packed = (0, 0, isKept, hasSettingsAfter, change.granularity)
    if !(isKept || change.kept == nil) || !(hasSettingsAfter || change.settingsAfter == nil) {
      names[count] = (change.kept, change.settingsAfter)
    }
    if let before = change.before { new.before = nodes.append(before) + 1 }
    if let number {
      new.after = Self.mark | number
    } else if let after = change.after {
      new.after = nodes.append(after) + 1
    }
    if let last = paths.last, change.path < last { isSorted = false }
    paths.append(change.path)
    packed.append(new)
  }

  private func node(_ place: UInt32) -> NodeRecord? {
    if place == 0 { return nil }
    return place & Self.mark != 0 ? shared[place & ~Self.mark] : nodes[place - 1]
  }

  /// The usual name of a file of a change in the entry's folder.
  static func name(_ prefix: String, _ number: Int) -> ContainerPath {
    ContainerPath(name: Array("\(prefix)-\(number)".utf8))
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
    let (change, names) = (packed[position], names.isEmpty ? nil : names[position])
    return ChangeRecord(
      path: paths[position], granularity: change.granularity, before: node(change.before),
      after: node(change.after), kept: change.isKept ? Self.name("before", position) : names?.kept,
      settingsAfter: change.hasSettingsAfter ? Self.name("after", position) : names?.settingsAfter)
  }
}

extension ChangeRecords: Codable {
  init(from decoder: any Decoder) throws { self.init(try [ChangeRecord](from: decoder)) }

  func encode(to encoder: any Encoder) throws { try Array(self).encode(to: encoder) }
}
