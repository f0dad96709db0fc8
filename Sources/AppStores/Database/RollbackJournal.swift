import DrydockErrors
import FileSystem
import SystemPackage

// The journal of a transaction that did not end. It is a hostile file: whoever rolls it back lets SQLite play a private
// copy that this has made harmless (<https://www.sqlite.org/fileformat2.html#the_rollback_journal>).
extension FileDescriptor {
  /// Takes the name of the super-journal from this copy of a journal, open for reading and writing. SQLite would look for
  /// that file, whatever its path is, and remove it after the rollback.
  ///
  /// The last 16 bytes are the name's length, the sum of its bytes (big-endian), and a magic number; the name is before them.
  ///
  /// - Parameters:
  ///   - mainSize: the bytes of the main file.
  ///   - path: for messages.
  /// - Returns: the name; nil when the transaction has one database.
  /// - Throws: ``DrydockError``: `malformed` when the journal would make the database larger than any transaction, `io`.
  package func takeSuperJournal(mainSize: UInt64, path: String) throws -> [UInt8]? {
    try DrydockError.translating("cannot work on a copy of the journal", path) {
      let size = Int(try seek(offset: 0, from: .end))
      try Self.checkJournal(bytes(28, at: 0), size, mainSize: mainSize)
      let end = try bytes(min(size, 16), at: Int64(max(0, size - 16)))
      guard end.count == 16, end.suffix(8).elementsEqual(DatabaseFormat.journalMagic) else { return nil }
      // Whatever the name is: no magic number, no super-journal.
      _ = try writeAll(toAbsoluteOffset: Int64(size - 8), [UInt8](repeating: 0, count: 8))
      let (length, sum) = end.withUnsafeBytes { (Int($0.bigEndian(at: 0)), $0.bigEndian(at: 4)) }
      // SQLite ignores a longer name.
      guard (1...512).contains(length), length <= size - 16 else { return nil }
      let name = try bytes(length, at: Int64(size - 16 - length))
      // A `char` has a sign on some processors.
      let sums = [
        name.reduce(UInt32(0)) { $0 &+ UInt32($1) },
        name.reduce(UInt32(0)) { $0 &+ UInt32(bitPattern: Int32(Int8(bitPattern: $1))) },
      ]
      return sums.contains(sum) ? name : nil
    }
  }

  /// The header has the database's pages before the transaction (bytes 16 to 19) and their size (24 to 27).
  private static func checkJournal(_ header: [UInt8], _ size: Int, mainSize: UInt64) throws {
    guard header.count == 28, header.starts(with: DatabaseFormat.journalMagic) else { return }
    let (pages, stored) = header.withUnsafeBytes { ($0.bigEndian(at: 16), $0.bigEndian(at: 24)) }
    let pageSize = DatabaseFormat.pageSize(Int(stored)) ?? 65_536
    // More than a transaction leaves of a database that was larger before it.
    let allowance: UInt64 = 1 << 30
    guard UInt64(pages) * UInt64(pageSize) <= mainSize + UInt64(size) + allowance else {
      throw DrydockError.unreadable(
        "its journal says that it had \(pages) pages, and the files have fewer")
    }
  }
}

extension Directory {
  /// Whether there is a rollback journal of an unfinished transaction.
  func hasPendingJournal(_ unit: DatabaseUnit) throws -> Bool {
    let journal = unit.main.withSuffix("-journal")
    guard let status = try status(journal), status.type == .file, status.size > 0 else { return false }
    // The first byte of a persistent journal is zero after its transaction.
    return try prefix(of: journal, 1) != [0]
  }

  /// Whether the super-journal of a transaction over several databases is in this container, and lists a database: without it
  /// the transaction is committed (<https://www.sqlite.org/atomiccommit.html#_multi_file_commit>).
  ///
  /// - Parameter name: its path on the device. It is looked for beside the database, and at each end of the path.
  func hasSuperJournal(_ name: [UInt8], of main: ContainerPath) throws -> Bool {
    let slash = UInt8(ascii: "/")
    let parts = name.split(separator: slash)
    guard let last = parts.last else { return false }
    let journal = main.withSuffix("-journal").name
    let ends = parts.indices.reversed().map { Array(parts[$0...].joined(separator: [slash])) }
    for bytes in [Array(main.bytes.dropLast(main.name.count)) + last] + ends {
      guard let path = try? ContainerPath(bytes: bytes), try status(path)?.type == .file else { continue }
      let names = try prefix(of: path, 1 << 16).split(separator: 0)
      if names.contains(where: { $0.split(separator: slash).last?.elementsEqual(journal) == true }) {
        return true
      }
    }
    return false
  }
}
