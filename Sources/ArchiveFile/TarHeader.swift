import DrydockErrors

/// Accepts the headers of a member only as the format has them: one ustar block, or a pax header and one.
///
/// libarchive understands much more: global headers, GNU's long names, volumes, sparse maps, numbers in base 256,
/// records that come twice. Other programs read those differently or not at all, so that an archive with them could
/// show one thing here and another there.
enum TarHeader {
  private static let block = Int(ArchiveFormat.tarBlock)
  private static let attributePrefix = "SCHILY.xattr."

  /// Checks all blocks before a member's content. Throws `DrydockError` `.damaged`.
  static func check(_ bytes: [UInt8], of member: ArchiveMember) throws {
    let wrong = { (what: String) in
      DrydockError.damaged(
        "the tar header of \(member.printableName) has \(what), which is not allowed in an archive")
    }
    var rest = bytes[...]
    var records: [String: ArraySlice<UInt8>] = [:]
    if kind(rest) == UInt8(ascii: "x") {
      guard isPlain(rest.prefix(block)), let size = octal(rest.dropFirst(124).prefix(12)),
        size <= rest.count - block
      else { throw wrong("an odd pax header") }
      let extra = rest.dropFirst(block).prefix(size)
      guard let found = Self.records(in: extra), found.allSatisfy(isKnown) else {
        throw wrong("a pax record that is unknown, malformed or duplicate")
      }
      records = found
      rest = rest.dropFirst(block + (size + block - 1) / block * block)
    }
    guard rest.count == block, let kind = kind(rest), "0125".utf8.contains(kind), isPlain(rest, records)
    else {
      throw wrong("a block of another kind")
    }
    // Others than files have no content: tar programs disagree on whether some follows them all the same.
    guard kind == UInt8(ascii: "0") || records["size"] == nil && octal(rest.dropFirst(124).prefix(12)) == 0
    else {
      throw wrong("a size, and is not a file")
    }
  }

  /// Whether tar programs agree on what a record says: an empty one takes back what was said before, and after a malformed number
  /// some go on with the digits.
  private static func isKnown(_ key: String, _ value: ArraySlice<UInt8>) -> Bool {
    let isNumber = { (digits: ArraySlice<UInt8>) in !digits.isEmpty && digits.allSatisfy(\.isDigit) }
    switch key {
    case "path", "linkpath", "hdrcharset", "SCHILY.fflags": return !value.isEmpty
    case "size", "uid", "gid": return isNumber(value)
    case "mtime":
      let parts = (value.first == UInt8(ascii: "-") ? value.dropFirst() : value)
        .split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      return parts.count <= 2 && parts.allSatisfy(isNumber)
    default:
      return key.hasPrefix(attributePrefix)
        && LibArchive.isEncodedAttribute(Array(key.utf8.dropFirst(attributePrefix.utf8.count)))
    }
  }

  private static func kind(_ header: ArraySlice<UInt8>) -> UInt8? { header.dropFirst(156).first }

  /// A ustar block whose numbers are octal, but for those that a pax record replaces, and without names of owners: tar programs
  /// take those before the numbers.
  private static func isPlain(
    _ header: ArraySlice<UInt8>, _ records: [String: ArraySlice<UInt8>] = [:]
  ) -> Bool {
    let numbers =
      [(100, 8), (148, 8)]
      + [("uid", 108, 8), ("gid", 116, 8), ("size", 124, 12), ("mtime", 136, 12)]
      .filter { records[$0.0] == nil }.map { ($0.1, $0.2) }
    return header.count == block && header.dropFirst(257).prefix(8).elementsEqual("ustar\u{0}00".utf8)
      && header.dropFirst(265).prefix(64).allSatisfy { $0 == 0 }
      // Name, target and prefix end at the first NUL; nothing is behind it, or behind the fields.
      && [(0, 100), (157, 100), (345, 155)].allSatisfy { place, width in
        header.dropFirst(place).prefix(width).drop { $0 != 0 }.allSatisfy { $0 == 0 }
      } && header.dropFirst(500).allSatisfy { $0 == 0 }
      && numbers.allSatisfy { octal(header.dropFirst($0.0).prefix($0.1)) != nil }
      // The numbers of a device, which only a device has.
      && [329, 337].map { header.dropFirst($0).prefix(8) }
        .allSatisfy { field in octal(field) != nil || field.allSatisfy { $0 == 0 } }
  }

  /// Octal digits, and spaces or NULs behind them: before them, some tar programs skip these, and others read zero.
  private static func octal(_ field: ArraySlice<UInt8>) -> Int? {
    let digits = field.prefix { (0x30...0x37).contains($0) }
    guard !digits.isEmpty, field.dropFirst(digits.count).allSatisfy({ $0 == 0 || $0 == 0x20 }) else {
      return nil
    }
    return digits.reduce(0) { $0 << 3 | Int($1 - 0x30) }
  }

  /// Pax records, each `LENGTH KEY=VALUE\n`; nil when one is malformed or comes twice.
  private static func records(in text: ArraySlice<UInt8>) -> [String: ArraySlice<UInt8>]? {
    var records: [String: ArraySlice<UInt8>] = [:]
    var rest = text
    while !rest.isEmpty {
      let digits = rest.prefix { $0 != 0x20 }
      guard digits.count < 8, let length = Int(String(decoding: digits, as: UTF8.self)), length <= rest.count,
        length > digits.count + 3, digits.first != UInt8(ascii: "+"), digits.first != UInt8(ascii: "0")
      else { return nil }
      let record = rest.prefix(length)
      guard record.last == UInt8(ascii: "\n"), let equals = record.firstIndex(of: UInt8(ascii: "=")) else {
        return nil
      }
      let key = String(decoding: record[(digits.endIndex + 1)..<equals], as: UTF8.self)
      guard records.updateValue(record[(equals + 1)...].dropLast(), forKey: key) == nil else { return nil }
      rest = rest.dropFirst(length)
    }
    return records
  }
}
