import DrydockErrors
import FileSystem
import SystemPackage

/// The format of SQLite's files (<https://www.sqlite.org/fileformat2.html>), as far as it is needed to recognize them, and what
/// the start of page 1 says about one (<https://www.sqlite.org/fileformat2.html#the_database_header>).
package struct DatabaseFormat {
  package static let headerMagic = Array("SQLite format 3\0".utf8)
  static let journalMagic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
  static let walMagics: [[UInt8]] = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]]

  /// The suffixes of the files that SQLite keeps beside a database.
  package static let sidecarSuffixes = ["-journal", "-shm", "-wal"]

  /// The bytes of the main file that SQLite locks (<https://www.sqlite.org/fileformat2.html#the_lock_byte_page>).
  static let pendingLock: Range<Int64> = 0x4000_0000..<0x4000_0001
  static let reservedLock: Range<Int64> = 0x4000_0001..<0x4000_0002
  static let sharedLock: Range<Int64> = 0x4000_0002..<0x4000_0200
  static let allLocks: Range<Int64> = 0x4000_0000..<0x4000_0200

  /// The smallest database is one page of 512 bytes.
  static let smallestPage: UInt64 = 512
  /// Extensions of files that are never databases, of which there may be thousands.
  private static let otherEndings = Set(
    [
      "jpg", "jpeg", "png", "gif", "heic", "webp", "mp4", "mov", "m4a", "mp3", "aac", "wav", "pdf", "txt",
      "md",
      "html", "css", "js", "json", "xml", "plist", "strings", "csv", "log", "ttf", "otf", "zip", "gz",
    ].map { packed($0.utf8) })

  /// Up to eight bytes as a number, in lower case: fast, since it is computed for every file.
  private static func packed(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1.isCapital ? $1 | 0x20 : $1) }
  }

  /// Whether a file can have SQLite's header: its size is a multiple of a page, or it is larger than a page (SQLite opens
  /// databases with appended data, which occur in device backups) and its name has no other file's extension.
  ///
  /// - Parameter name: nil to ignore the name.
  package static func mayBeDatabase(size: UInt64, name: ContainerPath? = nil) -> Bool {
    guard size >= smallestPage, size % smallestPage != 0, let end = name?.bytes.suffix(9),
      let dot = end.lastIndex(of: UInt8(ascii: "."))
    else { return size >= smallestPage }
    return !otherEndings.contains(packed(end[(dot + 1)...]))
  }

  /// The length of the header at the start of page 1.
  package static let headerLength = 100

  /// The page size in a header (bytes 16 and 17); 4,096 when it has none.
  package static func pageSize(ofHeader bytes: [UInt8]) -> Int {
    bytes.count >= 18 ? storedPageSize(bytes) ?? 4096 : 4096
  }

  private static func storedPageSize(_ header: [UInt8]) -> Int? {
    let stored = Int(header[16]) << 8 | Int(header[17])
    return pageSize(stored == 1 ? 65_536 : stored)
  }

  /// Zeroes the header fields that differ between two captures of the same content: the change counter
  /// (24..<28), version-valid-for (92..<96), and the number of the SQLite version that wrote them (96..<100).
  package static func normalize(header: UnsafeMutableRawBufferPointer) {
    for index in Array(24..<28) + Array(92..<100) where index < header.count { header[index] = 0 }
  }

  /// The header and the b-tree header of page 1.
  static let startLength = 108

  let pageSize: Int
  let usesLog: Bool
  let pageCount: UInt64

  /// Checks what SQLite checks when it opens a database, and that page 1 is plausible. Other pages are not checked.
  ///
  /// - Parameter fileSize: the size of the main file; nil when the log has the page count.
  /// - Throws: ``DrydockError`` (`malformed`).
  init(_ bytes: [UInt8], fileSize: UInt64?) throws {
    guard bytes.count == Self.startLength, bytes.starts(with: Self.headerMagic) else {
      throw DrydockError.unreadable("file is not a database")
    }
    let number = { (offset: Int) in bytes.withUnsafeBytes { $0.bigEndian(at: offset) } }
    guard let pageSize = Self.storedPageSize(bytes),
      (1...2).contains(bytes[19]), bytes[18] > 0, bytes[21...23] == [64, 32, 32],
      pageSize - Int(bytes[20]) >= 480
    else { throw DrydockError.unreadable("its header is corrupt") }
    self.pageSize = pageSize
    usesLog = bytes[19] == 2
    // The page count is valid only together with the change counter: old versions of SQLite do not write it.
    let inFile = fileSize.map { $0 / UInt64(pageSize) }
    let counted = number(24) == number(92) ? UInt64(number(28)) : 0
    pageCount = counted > 0 ? counted : inFile ?? 0
    if let inFile, pageCount > inFile {
      throw DrydockError.unreadable("its header has \(pageCount) pages, and the file \(inFile) whole ones")
    }
    if counted == 0, let fileSize, fileSize % UInt64(pageSize) != 0 {
      throw DrydockError.unreadable("its last page is cut")
    }
    // Format 0 is a database without tables. Then the free list, and the root of all other trees on page 1.
    guard number(44) <= 4, number(56) <= 3, inFile == nil || UInt64(number(32)) <= pageCount,
      UInt64(number(36)) <= max(pageCount, 1) || inFile == nil, [5, 13].contains(bytes[100]),
      Int(bytes[103]) << 8 | Int(bytes[104]) <= pageSize / 2
    else { throw DrydockError.unreadable("its first page is corrupt") }
  }

  static func pageSize(_ size: Int) -> Int? {
    (512...65_536).contains(size) && size & (size - 1) == 0 ? size : nil
  }
}

/// A database with all its files: one unit for capture, exclusion, restore and moves.
package struct DatabaseUnit: Hashable, Sendable {
  package let main: ContainerPath
  /// The existing sidecars: `-journal`, `-shm`, `-wal`.
  package let sidecars: [ContainerPath]
  /// Core Data's folder of external binary data, `.<name>_SUPPORT`, if it exists.
  package let externalData: ContainerPath?

  package init(main: ContainerPath, sidecars: [ContainerPath] = [], externalData: ContainerPath? = nil) {
    self.main = main
    self.sidecars = sidecars
    self.externalData = externalData
  }

  /// The unit with the sidecars that currently exist.
  func refreshed(in root: Directory) throws -> DatabaseUnit {
    let present = try DatabaseFormat.sidecarSuffixes.map(main.withSuffix).filter {
      try root.status($0)?.type == .file
    }
    return DatabaseUnit(main: main, sidecars: present, externalData: externalData)
  }

  /// The folder of external data of a main file.
  package static func externalDataPath(of main: ContainerPath) -> ContainerPath {
    let name = main.nameString
    let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
    return (try? main.parent.appending(".\(stem)_SUPPORT")) ?? main.withSuffix("_SUPPORT")
  }
}

extension DatabaseUnit {
  /// The main file of a sidecar's name; nil for other names.
  package static func main(ofSidecar path: ContainerPath) -> ContainerPath? {
    let name = path.nameBytes
    for suffix in DatabaseFormat.sidecarSuffixes where name.count > suffix.utf8.count {
      if name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) {
        return try? ContainerPath(bytes: path.bytes.dropLast(suffix.utf8.count))
      }
    }
    return nil
  }
}

extension Directory {
  /// Whether a path is a sidecar of an existing database.
  package func isSidecar(_ path: ContainerPath) throws -> Bool {
    guard let main = DatabaseUnit.main(ofSidecar: path), let status = try status(main) else { return false }
    return try databaseUnit(main, status: status) != nil
  }
}

extension DrydockError {
  /// SQLite cannot open a database: it is encrypted or corrupt.
  static func unreadable(_ reason: String) -> DrydockError { DrydockError(.malformed, reason) }
}

/// Bytes 18 and 19 of the header are 2 when a database has a write-ahead log.
extension Directory {
  /// Whether the header of a closed private database has a write-ahead log.
  package func hasWriteAheadLog(_ path: ContainerPath) throws -> Bool {
    let file = try open(path, .readOnly)
    defer { try? file.close() }
    return try DrydockError.translating("cannot read", full(path)) { try file.bytes(2, at: 18) } == [2, 2]
  }

  /// Sets whether the header of a closed private database without sidecars has a write-ahead log.
  package func setWriteAheadLog(_ path: ContainerPath, _ isLogged: Bool) throws {
    try write([UInt8](repeating: isLogged ? 2 : 1, count: 2), at: 18, inHeaderOf: path)
  }

  /// Overwrites a part of the header of a closed private database.
  func write(_ bytes: [UInt8], at offset: Int64, inHeaderOf path: ContainerPath) throws {
    let file = try open(path, .readWrite)
    defer { try? file.close() }
    _ = try DrydockError.translating("cannot write", full(path)) {
      try file.writeAll(toAbsoluteOffset: offset, bytes)
    }
  }
}

extension Directory {
  /// The database whose main file is a regular file; nil for other files.
  ///
  /// A main file has SQLite's header, whatever its name, or a `-wal` or `-journal` with its magic beside it. Images, texts and
  /// the like whose size is not a multiple of 512 (the smallest page) are not opened, unless the configuration names them:
  /// opening 8,000 of them would take longer than the rest of a settings migration.
  ///
  /// - Parameters:
  ///   - isNamed: whether the configuration names it; by default judged by the path.
  ///   - mayHaveSidecars: false when a caller that has listed the directory found none: that saves three system calls.
  package func databaseUnit(
    _ main: ContainerPath, status: FileStatus, isNamed: Bool? = nil,
    mayHaveSidecars: Bool = true
  ) throws -> DatabaseUnit? {
    guard status.type == .file else { return nil }
    let sidecars = mayHaveSidecars ? try DatabaseUnit(main: main).refreshed(in: self).sidecars : []
    let hasHeader =
      try DatabaseFormat.mayBeDatabase(
        size: status.size, name: isNamed ?? databases.contains(main) ? nil : main)
      && prefix(of: main, 16) == DatabaseFormat.headerMagic
    guard try hasHeader || sidecars.contains(where: isLogOrJournal) else { return nil }
    let external = DatabaseUnit.externalDataPath(of: main)
    let hasExternal = try self.status(external)?.type == .directory
    return DatabaseUnit(main: main, sidecars: sidecars, externalData: hasExternal ? external : nil)
  }

  private func isLogOrJournal(_ path: ContainerPath) throws -> Bool {
    let name = path.nameString
    if name.hasSuffix("-wal") { return try DatabaseFormat.walMagics.contains(prefix(of: path, 4)) }
    if name.hasSuffix("-journal") { return try prefix(of: path, 8) == DatabaseFormat.journalMagic }
    return false
  }

  /// The first bytes of a file. Does not close a descriptor of a file that this process has open.
  package func prefix(of path: ContainerPath, _ count: Int) throws -> [UInt8] {
    let status = try status(path)
    if let status, let bytes = try LockedFile.foreignPrefix(of: status, count) { return bytes }
    let file = try openFile(path, status)
    defer { try? file.close() }
    return try DrydockError.translating("cannot read", full(path)) { try file.bytes(count, at: 0) }
  }
}
