import AgeEncryption
import Formats
import Foundation

/// Names a transaction: the UTC second it began in, and 32 random bits, so that names sort by time.
package struct TransactionID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Such as `20261120T101500Z-1f2e3d4c`.
  package let description: String

  /// A new name.
  package static func new() throws -> TransactionID {
    let random = try RandomBytes.make(4).map { String(format: "%02x", $0) }.joined()
    return TransactionID(UTCTime.compact(Date()) + "-" + random)
  }

  init(_ text: String) { description = text }

  /// `0` stands for a decimal digit, `f` for a hexadecimal one.
  private static let form = Array("00000000T000000Z-ffffffff".utf8)

  /// Whether it has the form of one: whatever else a record names would be a path of its own choice.
  var isWellFormed: Bool {
    // No regular expression: it would be parsed for each record of a journal.
    let bytes = description.utf8
    return bytes.count == Self.form.count
      && zip(bytes, Self.form).allSatisfy { byte, form in
        let isDigit = (0x30...0x39).contains(byte)
        switch form {
        case UInt8(ascii: "0"): return isDigit
        case UInt8(ascii: "f"): return isDigit || (0x61...0x66).contains(byte)
        default: return byte == form
        }
      }
  }

  /// From its text.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    description = try container.decode(String.self)
    guard isWellFormed else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not the id of a transaction")
    }
  }

  /// As its text.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
