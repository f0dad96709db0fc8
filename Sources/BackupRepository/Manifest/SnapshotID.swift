import AgeEncryption

/// The snapshot id: SHA-256 over the canonical list of entries, in the order of their paths. The same container
/// gives the same id, whenever and however it was captured.
///
/// Each entry is its path, kind, mode, size, content hash, link target, hard link and exclusion flags (the names of
/// the rules that flags on the path itself speak for, joined by commas), each field as its length (8 bytes,
/// big-endian) and its bytes.
final class SnapshotID {
  private let hash: SHA256

  init() throws { hash = try SHA256() }

  func add(_ entry: ManifestEntry) throws {
    field(entry.path.bytes)
    field(Array(entry.kind.rawValue.utf8))
    field(Array(String(entry.metadata.mode, radix: 8).utf8))
    field(Array(String(entry.size).utf8))
    field(entry.digest?.bytes ?? [])
    field(entry.linkTarget ?? [])
    field(entry.hardLink?.bytes ?? [])
    field(Array(entry.metadata.exclusionFlags.map(\.rawValue).joined(separator: ",").utf8))
  }

  private func field(_ bytes: [UInt8]) {
    withUnsafeBytes(of: UInt64(bytes.count).bigEndian) { hash.update($0) }
    bytes.withUnsafeBytes { hash.update($0) }
  }

  func finish() throws -> SHA256.Digest { try hash.finalize() }
}
