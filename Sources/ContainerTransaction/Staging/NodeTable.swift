import Cryptography
import FileSystem

/// Many node records, each 56 bytes: what is the same for most files is stored once.
struct NodeTable: Sendable {
  private struct Kind: Hashable {
    var type: FileType
    /// Without the time.
    var metadata: FileMetadata
    var flags: InodeFlags?
  }

  // In this order no byte is lost between them.
  private struct Entry {
    var modified: Int64
    var size: UInt64
    var digest: SHA256.Digest?
    var kind: UInt32
  }

  private var kinds = DistinctValues<Kind>()
  private var entries: [Entry] = []

  /// Adds a record; returns its number.
  mutating func append(_ record: NodeRecord) -> UInt32 {
    var metadata = record.metadata
    metadata.modified = 0
    let kind = kinds.number(of: Kind(type: record.type, metadata: metadata, flags: record.flags))
    entries.append(
      Entry(modified: record.metadata.modified, size: record.size, digest: record.digest, kind: kind))
    return UInt32(entries.count - 1)
  }

  subscript(number: UInt32) -> NodeRecord {
    let entry = entries[Int(number)]
    let kind = kinds[entry.kind]
    var metadata = kind.metadata
    metadata.modified = entry.modified
    return NodeRecord(
      type: kind.type, metadata: metadata, size: entry.size, digest: entry.digest, flags: kind.flags)
  }
}
