import AgeEncryption

/// The random name of an archive, 128 bits: what extents and parents refer to.
package struct ArchiveID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// 32 hexadecimal digits.
  package let description: String

  /// A new, random name.
  package static func new() throws -> ArchiveID {
    ArchiveID(unchecked: try RandomBytes.make(16).map { hexadecimal($0) }.joined())
  }

  init(unchecked text: String) { description = text }

  /// What stands in a file's name: the first 8 digits.
  package var short: String { String(description.prefix(8)) }

  /// From its text.
  package init(from decoder: any Decoder) throws {
    description = try decoder.singleValueContainer().decode(String.self)
    guard description.count == 32, description.allSatisfy(\.isHexDigit) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "not an archive id"))
    }
  }

  /// As its text.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

private func hexadecimal(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16) }
