import DrydockErrors
import FileSystem
import SystemPackage

/// What SQLite's files look like from outside (<https://www.sqlite.org/fileformat2.html>).
package enum DatabaseFormat {
  static let headerMagic = Array("SQLite format 3\0".utf8)
  static let journalMagic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
  static let walMagics: [[UInt8]] = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]]

  /// The endings of the files that SQLite keeps beside a database.
  package static let sidecarSuffixes = ["-journal", "-shm", "-wal"]

  /// The bytes of the main file that SQLite locks (<https://www.sqlite.org/fileformat2.html#the_lock_byte_page>).
  static let pendingLock: Range<Int64> = 0x4000_0000..<0x4000_0001
  static let reservedLock: Range<Int64> = 0x4000_0001..<0x4000_0002
  static let sharedLock: Range<Int64> = 0x4000_0002..<0x4000_0200
  static let allLocks: Range<Int64> = 0x4000_0000..<0x4000_0200

  /// The smallest database is one page of 512 bytes.
  static let smallestPage: UInt64 = 512
  /// Endings of files that no app keeps a database in. There may be thousands of them.
  private static let otherEndings = Set(
    [
      "jpg", "jpeg", "png", "gif", "heic", "webp", "mp4", "mov", "m4a", "mp3", "aac", "wav", "pdf", "txt",
      "md",
      "html", "css", "js", "json", "xml", "plist", "strings", "csv", "log", "ttf", "otf", "zip", "gz",
    ].map { packed($0.utf8) })

  /// Up to eight bytes as a number, letters as small ones: it is made for each file of a container.
  private static func packed(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64((0x41...0x5A).contains($1) ? $1 | 0x20 : $1) }
  }

  /// Whether a file can have SQLite's header: it is a number of pages, or of any size that a page fits in (SQLite opens
  /// a database that something was appended to, and backups of devices have such) and not of another kind by its name.
  ///
  /// - Parameter name: nil where the name says nothing.
  package static func mayBeDatabase(size: UInt64, name: ContainerPath? = nil) -> Bool {
    guard size >= smallestPage, size % smallestPage != 0, let end = name?.bytes.suffix(9),
      let dot = end.lastIndex(of: UInt8(ascii: "."))
    else { return size >= smallestPage }
    return !otherEndings.contains(packed(end[(dot + 1)...]))
  }
  /// Length of the header at the start of page 1.
  package static let headerLength = 100

  /// Zeroes the header fields that differ between two captures of the same content: the change counter
  /// (24..<28), version-valid-for (92..<96), and the number of the SQLite version that wrote them (96..<100).
  package static func normalize(header: UnsafeMutableRawBufferPointer) {
    for index in Array(24..<28) + Array(92..<100) where index < header.count { header[index] = 0 }
  }
}

/// A database with all that belongs to it: one unit for capture, exclusion, restore and moves.
package struct DatabaseUnit: Hashable, Sendable {
  /// The main file.
  package let main: ContainerPath
  /// The sidecars that exist now: `-journal`, `-shm`, `-wal`.
  package let sidecars: [ContainerPath]
  /// Core Data's folder of external binary data, `.<name>_SUPPORT`, when it exists.
  package let externalData: ContainerPath?

  /// A unit from its parts.
  package init(main: ContainerPath, sidecars: [ContainerPath] = [], externalData: ContainerPath? = nil) {
    self.main = main
    self.sidecars = sidecars
    self.externalData = externalData
  }

  /// Whether there is a sidecar that may hold content of its own: a log or a journal that is not empty.
  package func hasPendingContent(in root: Directory) throws -> Bool {
    try sidecars.contains { path in
      guard !path.nameString.hasSuffix("-shm") else { return false }
      return try (root.status(path)?.size ?? 0) > 0
    }
  }

  /// The unit with the sidecars that exist now.
  func refreshed(in root: Directory) throws -> DatabaseUnit {
    let present = try DatabaseFormat.sidecarSuffixes.map(main.withSuffix).filter {
      try root.status($0)?.type == .file
    }
    return DatabaseUnit(main: main, sidecars: present, externalData: externalData)
  }

  /// The folder of external data that belongs to a main file.
  package static func externalDataPath(of main: ContainerPath) -> ContainerPath {
    let name = main.nameString
    let stem = name.lastIndex(of: ".").map { String(name[..<$0]) } ?? name
    return (try? main.parent.appending(".\(stem)_SUPPORT")) ?? main.withSuffix("_SUPPORT")
  }
}

extension DatabaseUnit {
  /// The main file that a path would be a sidecar of, by its name; nil for other names.
  package static func main(ofSidecar path: ContainerPath) -> ContainerPath? {
    for suffix in DatabaseFormat.sidecarSuffixes where path.name.count > suffix.utf8.count {
      if path.bytes.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) {
        return try? ContainerPath(bytes: path.bytes.dropLast(suffix.utf8.count))
      }
    }
    return nil
  }
}

extension Directory {
  /// Whether a path is a sidecar of a database that is there.
  package func isSidecar(_ path: ContainerPath) throws -> Bool {
    guard let main = DatabaseUnit.main(ofSidecar: path), let status = try status(main) else { return false }
    return try databaseUnit(main, status: status) != nil
  }
}

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

extension Directory {
  /// The database that a regular file is the main file of, or nil.
  ///
  /// It is one when it has SQLite's header, whatever its name, or a `-wal` or `-journal` with its magic beside
  /// it. A picture, a text or the like whose size is not a multiple of 512 (the smallest page) is not even opened, unless
  /// the configuration names it: most files of an app are such, and reading 8,000 of them would cost more than everything
  /// else a settings migration does.
  ///
  /// - Parameters:
  ///   - isNamed: whether the configuration names it, where the path says nothing of that.
  ///   - mayExist: whether a name is worth a look; one who has listed the directory knows, and saves three looks for
  ///     each of its files.
  package func databaseUnit(
    _ main: ContainerPath, status: FileStatus, isNamed: Bool? = nil,
    mayExist: (ContainerPath) -> Bool = { _ in true }
  ) throws -> DatabaseUnit? {
    guard status.type == .file else { return nil }
    let isCandidate = DatabaseFormat.sidecarSuffixes.contains { mayExist(main.withSuffix($0)) }
    let sidecars = isCandidate ? try DatabaseUnit(main: main).refreshed(in: self).sidecars : []
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

  /// The first bytes of a file, without closing a descriptor of one that this process has open.
  func prefix(of path: ContainerPath, _ count: Int) throws -> [UInt8] {
    if let status = try status(path), let bytes = try OpenHere.prefix(of: status, count) { return bytes }
    let file = try open(path, .readOnly, options: [.nonBlocking])
    defer { try? file.close() }
    var bytes = [UInt8](repeating: 0, count: count)
    do {
      let read = try bytes.withUnsafeMutableBytes { try file.read(fromAbsoluteOffset: 0, into: $0) }
      return Array(bytes.prefix(read))
    } catch let error as Errno {
      throw DrydockError.system("cannot read", full(path), error)
    }
  }
}
