import FileSystem

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
