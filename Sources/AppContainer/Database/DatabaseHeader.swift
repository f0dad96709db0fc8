import DrydockErrors
import FileSystem
import SystemPackage

/// A database that SQLite would not open: encrypted or damaged.
struct UnreadableDatabase: Error {
  let reason: String
}

/// What the start of page 1 says of a database (<https://www.sqlite.org/fileformat2.html#the_database_header>).
struct DatabaseHeader {
  /// The header, and the header of the b-tree on page 1.
  static let length = 108

  /// Bytes of a page.
  let pageSize: Int
  /// Whether it is written through a write-ahead log.
  let usesLog: Bool
  /// Pages of the database.
  let pageCount: UInt64

  /// Reads and checks it: what SQLite checks when it opens a database, and that page 1 can be what it must be. Damage
  /// in any other page is not seen.
  ///
  /// - Parameter fileSize: bytes of the database without its log; nil when the log tells.
  /// - Throws: ``UnreadableDatabase``.
  init(_ bytes: [UInt8], fileSize: UInt64?) throws {
    guard bytes.count == Self.length, bytes.starts(with: DatabaseFormat.headerMagic) else {
      throw UnreadableDatabase(reason: "file is not a database")
    }
    let number = { (offset: Int) in bytes.withUnsafeBytes { $0.bigEndian(at: offset) } }
    let stored = Int(bytes[16]) << 8 | Int(bytes[17])
    guard let pageSize = Self.pageSize(stored == 1 ? 65_536 : stored),
      (1...2).contains(bytes[19]), bytes[18] > 0, bytes[21...23] == [64, 32, 32],
      pageSize - Int(bytes[20]) >= 480
    else { throw UnreadableDatabase(reason: "its header is damaged") }
    self.pageSize = pageSize
    usesLog = bytes[19] == 2
    // The count is right only when it was written by who wrote the change counter: an old SQLite does not know it.
    let inFile = fileSize.map { ($0 + UInt64(pageSize) - 1) / UInt64(pageSize) }
    let counted = number(24) == number(92) ? UInt64(number(28)) : 0
    pageCount = counted > 0 ? counted : inFile ?? 0
    if let inFile, pageCount > inFile {
      throw UnreadableDatabase(reason: "its header tells \(pageCount) pages, and the file has \(inFile)")
    }
    // Format 0 is a database without any table; the free list, and the root of all other trees on page 1.
    guard number(44) <= 4, number(56) <= 3, inFile == nil || UInt64(number(32)) <= pageCount,
      UInt64(number(36)) <= max(pageCount, 1) || inFile == nil, [5, 13].contains(bytes[100]),
      Int(bytes[103]) << 8 | Int(bytes[104]) <= pageSize / 2
    else { throw UnreadableDatabase(reason: "its first page is damaged") }
  }

  /// A page size, when it can be one.
  static func pageSize(_ size: Int) -> Int? {
    (512...65_536).contains(size) && size & (size - 1) == 0 ? size : nil
  }
}

/// Bytes 18 and 19 of the header are 2 when a database has a write-ahead log.
extension Directory {
  /// Whether a closed private database file says that it is written through a log.
  package func hasWriteAheadLog(_ path: ContainerPath) throws -> Bool {
    let file = try open(path, .readOnly)
    defer { try? file.close() }
    var versions: [UInt8] = [0, 0]
    do {
      _ = try versions.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 18, into: $0) }
    } catch let error as Errno {
      throw DrydockError.system("cannot read", full(path), error)
    }
    return versions == [2, 2]
  }

  /// Makes a closed private database file, without sidecars, say whether it is written through a log.
  package func setWriteAheadLog(_ path: ContainerPath, _ isLogged: Bool) throws {
    let file = try open(path, .readWrite)
    defer { try? file.close() }
    do {
      _ = try file.writeAll(toAbsoluteOffset: 18, [UInt8](repeating: isLogged ? 2 : 1, count: 2))
    } catch let error as Errno {
      throw DrydockError.system("cannot write", full(path), error)
    }
  }
}
