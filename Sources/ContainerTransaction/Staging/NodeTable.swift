import Cryptography
import FileSystem

/// Many node records, each 56 bytes: what is the same for most files is stored once.
struct NodeTable: Sendable {
  // In this order no byte is lost between them.
  private struct Entry {
    var modified: Int64
    var size: UInt64
    var digest: SHA256.Digest?
    var kind: UInt32
  }

  /// Records without what an entry has.
  private var kinds = DistinctValues<NodeRecord>()
  private var entries: [Entry] = []

  /// Adds a record; returns its number.
  mutating func append(_ record: NodeRecord) -> UInt32 {
    var kind = record
    (kind.metadata.modified, kind.size, kind.digest) = (0, 0, nil)
    let number = kinds.number(of: kind)
    entries.append(
      Entry(modified: record.metadata.modified, size: record.size, digest: record.digest, kind: number))
    return UInt32(entries.count - 1)
  }

  subscript(number: UInt32) -> NodeRecord {
    let entry = entries[Int(number)]
    var record = kinds[entry.kind]
    (record.metadata.modified, record.size, record.digest) = (entry.modified, entry.size, entry.digest)
    return record
  }
}
