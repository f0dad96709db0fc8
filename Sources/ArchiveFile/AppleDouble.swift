import FileSystem

/// A file `._NAME`, in which macOS programs put extended attributes that an archive format cannot hold.
package enum AppleDouble {
  /// Where macOS programs put such files in a zip.
  package static let zipFolder = Array("__MACOSX".utf8)
  package static let prefix = Array("._".utf8)
  /// A larger file is something else.
  package static let sizeLimit = 16 << 20

  private static let finderInfo: UInt32 = 9
  private static let resourceFork: UInt32 = 2
  /// What macOS writes at 16 bytes of a fork where there is none.
  private static let emptyFork = "This resource fork intentionally left blank"
  /// Behind 32 bytes of Finder information and 2 of padding.
  private static let headerOffset = 34

  /// The attributes in it, with the Finder information and, last, the resource fork under Apple's names for them; nil for
  /// any other file, and none where it is corrupt.
  package static func attributes(in bytes: [UInt8]) -> [ExtendedAttribute]? {
    let fields = BigEndianFields(bytes: bytes)
    guard fields[0] == 0x0005_1607, fields[4] == 0x0002_0000, let count = fields.short(24) else { return nil }
    let entry = { (kind: UInt32) -> (start: Int, length: Int)? in
      let places = (0..<Int(count)).lazy.map { 26 + 12 * $0 }
      guard let place = places.first(where: { fields[$0] == kind }), let start = fields[place + 4],
        let length = fields[place + 8]
      else { return nil }
      return (Int(start), Int(length))
    }
    var found: [ExtendedAttribute] = []
    if let (start, _) = entry(finderInfo) {
      if let value = fields.bytes(start, 32), value.contains(where: { $0 != 0 }) {
        found.append(ExtendedAttribute(name: "com.apple.FinderInfo", value: Array(value)))
      }
      found += attributes(fields, at: start + headerOffset)
    }
    if let (start, length) = entry(resourceFork), length > 0, let value = fields.bytes(start, length),
      !value.dropFirst(16).starts(with: emptyFork.utf8)
    {
      found.append(ExtendedAttribute(name: "com.apple.ResourceFork", value: Array(value)))
    }
    return found
  }

  private static func attributes(_ fields: BigEndianFields, at start: Int) -> [ExtendedAttribute] {
    guard fields[start] == 0x4154_5452, let count = fields.short(start + 34) else { return [] }
    var attributes: [ExtendedAttribute] = []
    var place = start + 36
    // Values do not overlap: a hostile file would expand to many times its size.
    var left = fields.bytes.count
    for _ in 0..<Int(count) {
      guard let offset = fields[place], let length = fields[place + 4],
        let nameLength = fields.bytes(place + 10, 1)?.first,
        let name = fields.bytes(place + 11, Int(nameLength))?.prefix(while: { $0 != 0 }), !name.isEmpty,
        let value = fields.bytes(Int(offset), Int(length)), value.count <= left
      else { break }
      left -= value.count
      attributes.append(ExtendedAttribute(name: String(decoding: name, as: UTF8.self), value: Array(value)))
      place += (11 + Int(nameLength) + 3) / 4 * 4
    }
    return attributes
  }
}

/// Numbers in Apple's formats; nil outside of the bytes.
private struct BigEndianFields {
  let bytes: [UInt8]

  func bytes(_ start: Int, _ count: Int) -> ArraySlice<UInt8>? {
    start <= bytes.count && count <= bytes.count - start ? bytes[start..<start + count] : nil
  }

  func short(_ start: Int) -> UInt16? { bytes(start, 2).map { $0.reduce(0) { $0 << 8 | UInt16($1) } } }

  subscript(start: Int) -> UInt32? { bytes(start, 4).map { $0.reduce(0) { $0 << 8 | UInt32($1) } } }
}
