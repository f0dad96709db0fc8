import FileSystem

/// A file `._NAME`, in which macOS programs put extended attributes that an archive format cannot hold.
package enum AppleDouble {
  /// Where macOS programs put such files in a zip.
  package static let zipFolder = Array("__MACOSX".utf8)
  package static let prefix = Array("._".utf8)
  /// A larger file is something else.
  package static let sizeLimit = 16 << 20

  private static let finderInfo: UInt32 = 9
  /// Behind 32 bytes of Finder information and 2 of padding.
  private static let headerOffset = 34

  /// The attributes in it; nil for any other file, and none where it is corrupt.
  package static func attributes(in bytes: [UInt8]) -> [ExtendedAttribute]? {
    let fields = BigEndianFields(bytes: bytes)
    guard fields[0] == 0x0005_1607, fields[4] == 0x0002_0000, let count = fields.short(24) else { return nil }
    for number in 0..<Int(count) {
      let place = 26 + 12 * number
      guard fields[place] == finderInfo, let offset = fields[place + 4] else { continue }
      return attributes(fields, at: Int(offset) + headerOffset)
    }
    return []
  }

  private static func attributes(_ fields: BigEndianFields, at start: Int) -> [ExtendedAttribute] {
    guard fields[start] == 0x4154_5452, let count = fields.short(start + 34) else { return [] }
    var attributes: [ExtendedAttribute] = []
    var place = start + 36
    for _ in 0..<Int(count) {
      guard let offset = fields[place], let length = fields[place + 4],
        let nameLength = fields.bytes(place + 10, 1)?.first,
        let name = fields.bytes(place + 11, Int(nameLength))?.prefix(while: { $0 != 0 }), !name.isEmpty,
        let value = fields.bytes(Int(offset), Int(length))
      else { break }
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
