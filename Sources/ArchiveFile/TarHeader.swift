import DrydockErrors

/// Accepts the headers of a member only as the format has them: one ustar block, or a pax header and one.
///
/// libarchive understands much more: global headers, GNU's long names, volumes, sparse maps, numbers in base 256,
/// records that come twice. Other programs read those differently or not at all, so that an archive with them could
/// show one thing here and another there.
enum TarHeader {
  private static let block = Int(ArchiveFormat.tarBlock)
  private static let records: Set<String> = [
    "path", "linkpath", "size", "mtime", "uid", "gid", "hdrcharset",
    "SCHILY.fflags",
  ]
  private static let attributePrefix = "SCHILY.xattr."

  /// Checks all blocks before a member's content. Throws `DrydockError` `.damaged`.
  static func check(_ bytes: [UInt8], of member: ArchiveMember) throws {
    let wrong = { (what: String) in
      DrydockError.damaged(
        "the tar header of \(member.printableName) has \(what), which is not allowed in an archive")
    }
    var rest = bytes[...]
    var records: Set<String> = []
    if kind(rest) == UInt8(ascii: "x") {
      guard isPlain(rest.prefix(block)), let size = octal(rest.dropFirst(124).prefix(12)),
        size <= rest.count - block
      else { throw wrong("an odd pax header") }
      let extra = rest.dropFirst(block).prefix(size)
      guard let keys = keys(of: extra), Set(keys).count == keys.count,
        keys.allSatisfy({ Self.records.contains($0) || $0.hasPrefix(attributePrefix) })
      else { throw wrong("a pax record that is unknown, malformed or duplicate") }
      records = Set(keys)
      rest = rest.dropFirst(block + (size + block - 1) / block * block)
    }
    guard rest.count == block, let kind = kind(rest), "0125".utf8.contains(kind), isPlain(rest, records)
    else {
      throw wrong("a block of another kind")
    }
  }

  private static func kind(_ header: ArraySlice<UInt8>) -> UInt8? { header.dropFirst(156).first }

  /// A ustar block whose numbers are octal, but for those that a pax record replaces.
  private static func isPlain(_ header: ArraySlice<UInt8>, _ replaced: Set<String> = []) -> Bool {
    let numbers =
      [(100, 8), (148, 8), (329, 8), (337, 8)]
      + [("uid", 108, 8), ("gid", 116, 8), ("size", 124, 12), ("mtime", 136, 12)]
      .filter { !replaced.contains($0.0) }.map { ($0.1, $0.2) }
    return header.count == block && header.dropFirst(257).prefix(8).elementsEqual("ustar\u{0}00".utf8)
      && numbers.allSatisfy { octal(header.dropFirst($0.0).prefix($0.1)) != nil }
  }

  /// Octal digits up to a space or NUL; none are zero.
  private static func octal(_ field: ArraySlice<UInt8>) -> Int? {
    let digits = field.prefix { $0 != 0 && $0 != 0x20 }
    guard digits.allSatisfy({ (0x30...0x37).contains($0) }) else { return nil }
    return digits.reduce(0) { $0 << 3 | Int($1 - 0x30) }
  }

  /// The keys of pax records, each `LENGTH KEY=VALUE\n`; nil when malformed.
  private static func keys(of records: ArraySlice<UInt8>) -> [String]? {
    var keys: [String] = []
    var rest = records
    while !rest.isEmpty {
      let digits = rest.prefix { $0 != 0x20 }
      guard digits.count < 8, let length = Int(String(decoding: digits, as: UTF8.self)), length <= rest.count,
        length > digits.count + 3, digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "0")
      else { return nil }
      let record = rest.prefix(length)
      guard record.last == UInt8(ascii: "\n"), let equals = record.firstIndex(of: UInt8(ascii: "=")) else {
        return nil
      }
      keys.append(String(decoding: record[(digits.endIndex + 1)..<equals], as: UTF8.self))
      rest = rest.dropFirst(length)
    }
    return keys
  }
}
