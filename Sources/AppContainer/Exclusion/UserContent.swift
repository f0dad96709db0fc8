import FileSystem

/// Tells what a person made from what a program can make again, by name and first bytes: with few false alarms, so
/// rather silent than wrong.
enum UserContent {
  /// What a file is that somebody would miss; nil for all others.
  static func kind(
    of name: ContainerPath, _ status: FileStatus, in directory: Directory
  ) -> ContainerWarning.Kind? {
    let text = name.nameString.lowercased()
    let ending = text.lastIndex(of: ".").map { String(text[text.index(after: $0)...]) } ?? ""
    if let magic = documents[ending] {
      return (try? directory.prefix(of: name, magic.count)) == magic ? .document : nil
    }
    if photos.contains(ending), status.size >= smallestPhoto {
      guard let start = try? directory.prefix(of: name, 64 << 10) else { return nil }
      return isPhoto(start) ? .photo : nil
    }
    return isDatabase(name, status, in: directory) ? .database : nil
  }

  private static let zip: [UInt8] = [0x50, 0x4b, 3, 4]
  private static let compound: [UInt8] = [0xd0, 0xcf, 0x11, 0xe0]
  private static let documents: [String: [UInt8]] = {
    var result = ["pdf": Array("%PDF-".utf8), "rtf": Array("{\\rtf".utf8)]
    for ending in ["docx", "xlsx", "pptx", "odt", "ods", "odp", "pages", "numbers", "key"] {
      result[ending] = zip
    }
    for ending in ["doc", "xls", "ppt"] { result[ending] = compound }
    return result
  }()

  // MARK: Photos

  private static let photos: Set = ["jpg", "jpeg", "heic", "heif", "dng"]
  /// Thumbnails are smaller.
  private static let smallestPhoto: UInt64 = 200_000

  /// Whether a camera made it: the Exif data of a JPEG, HEIC or DNG names the maker.
  private static func isPhoto(_ start: [UInt8]) -> Bool {
    if let range = start.firstRange(of: Array("Exif\0\0".utf8)) {
      return hasMaker(start[range.upperBound...])
    }
    return hasMaker(start[...])
  }

  private static func hasMaker(_ tiff: ArraySlice<UInt8>) -> Bool {
    let isLittle = tiff.starts(with: [0x49, 0x49, 0x2a, 0])
    guard isLittle || tiff.starts(with: [0x4d, 0x4d, 0, 0x2a]) else { return false }
    func number(_ offset: Int, _ count: Int) -> Int? {
      guard offset >= 0, offset + count <= tiff.count else { return nil }
      let bytes = tiff[(tiff.startIndex + offset)...].prefix(count)
      return (isLittle ? Array(bytes.reversed()) : Array(bytes)).reduce(0) { $0 << 8 | Int($1) }
    }
    guard let directory = number(4, 4), let count = number(directory, 2) else { return false }
    let maker = 0x010f
    return (0..<min(count, 100)).contains { number(directory + 2 + 12 * $0, 2) == maker }
  }

  // MARK: Databases

  /// Tables that systems and their libraries keep in a cache of their own.
  private static let cacheTables = ["sqlite_", "cfurl_cache_", "android_metadata", "room_master_table"]

  /// Whether it is a database whose schema, as far as its first pages show it, has a table of the app's own.
  private static func isDatabase(
    _ name: ContainerPath, _ status: FileStatus, in directory: Directory
  ) -> Bool {
    guard DatabaseFormat.mayBeDatabase(size: status.size, name: name),
      (try? directory.prefix(of: name, 16)) == DatabaseFormat.headerMagic
    else { return false }
    let pages = ["", "-wal"].map(name.withSuffix).compactMap { try? directory.prefix(of: $0, 64 << 10) }
    return pages.contains { page in
      var rest = page[...]
      let create = Array("CREATE TABLE ".utf8)
      while let found = rest.firstRange(of: create) {
        rest = rest[found.upperBound...]
        let table = rest.prefix(64).drop { " \"'`[".utf8.contains($0) }
        if !cacheTables.contains(where: { table.starts(with: $0.utf8) }) { return true }
      }
      return false
    }
  }
}
