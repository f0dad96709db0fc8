/// A property list with any value on top, in the format that its file has.
package struct PropertyListDocument: Sendable, Equatable {
  /// How it is written; kept when it is written again.
  package var format: PropertyListFile.Format
  /// The value on top.
  package var value: PropertyListValue

  /// A property list from its parts.
  package init(format: PropertyListFile.Format, value: PropertyListValue) {
    (self.format, self.value) = (format, value)
  }

  /// Reads a file's content.
  ///
  /// - Throws: `DrydockError` (`.malformed`) when it is neither format, cut or damaged.
  package init(bytes: [UInt8]) throws {
    if Self.isBinary(bytes) {
      self.init(format: .binary, value: try BinaryPropertyListReader.read(bytes))
    } else {
      self.init(format: .xml, value: try XMLPropertyList.read(bytes))
    }
  }

  /// The file's content. The same value gives the same bytes.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the XML format cannot hold.
  package func encoded() throws -> [UInt8] {
    switch format {
    case .binary: BinaryPropertyListWriter.write(value)
    case .xml: try XMLPropertyListWriter.write(value)
    }
  }

  /// Whether bytes begin as the binary format does.
  package static func isBinary(_ bytes: [UInt8]) -> Bool { bytes.starts(with: BinaryPropertyList.magic) }

  /// Whether bytes begin as a property list does, and no JSON: with the binary format's magic, or with a `<`.
  package static func isBegun(by bytes: [UInt8]) -> Bool {
    if isBinary(bytes) { return true }
    return bytes.first { !($0 <= 0x20 || $0 >= 0x80) } == UInt8(ascii: "<")
  }
}
