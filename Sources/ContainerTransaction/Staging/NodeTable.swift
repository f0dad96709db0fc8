import Cryptography
import FileSystem

/// Many node records, each 48 bytes: what is the same for most files is stored once.
struct NodeTable: Sendable {
  // In this order no byte is lost between them.
  private struct Entry {
    var modified: Int64 = 0
    var digest = SHA256.Digest.zero
    var size: UInt32 = 0
    var kind: UInt32 = 0
  }

  /// Records without what an entry has: with a digest when it has one, and with a size that is too large for it.
  private var kinds = DistinctValues<NodeRecord>()
  private var entries: [Entry] = []

  /// Makes room for records that are set later: an array that grows is twice as large for a moment.
  ///
  /// - Returns: the number of the first.
  mutating func reserve(_ count: Int) -> UInt32 {
    entries.append(contentsOf: repeatElement(Entry(), count: count))
    return UInt32(entries.count - count)
  }

  /// Adds a record; returns its number.
  mutating func append(_ record: NodeRecord) -> UInt32 {
    let number = reserve(1)
    self[number] = record
    return number
  }

  subscript(number: UInt32) -> NodeRecord {
    get {
      let entry = entries[Int(number)]
      var record = kinds[entry.kind]
      record.metadata.modified = entry.modified
      if record.size == 0 { record.size = UInt64(entry.size) }
      if record.digest != nil { record.digest = entry.digest }
      return record
    }
    set {
      var kind = newValue
      let size = UInt32(exactly: newValue.size)
      kind.metadata.modified = 0
      if size != nil { kind.size = 0 }
      if newValue.digest != nil { kind.digest = .zero }
      entries[Int(number)] = Entry(
        modified: newValue.metadata.modified, digest: newValue.digest ?? .zero, size: size ?? 0,
        kind: kinds.number(of: kind))
    }
  }
}
