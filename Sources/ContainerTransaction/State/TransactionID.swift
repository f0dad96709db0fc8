import AgeEncryption
import AppContainer
import Foundation

/// Names a transaction: the UTC second it began in, and 32 random bits, so that names sort by time.
public struct TransactionID: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Such as `20261120T101500Z-1f2e3d4c`.
  public let description: String

  /// A new name.
  public static func new() throws -> TransactionID {
    let random = try RandomBytes.make(4).map { String(format: "%02x", $0) }.joined()
    return TransactionID(UTCTime.compact(Date()) + "-" + random)
  }

  init(_ text: String) { description = text }

  /// From its text.
  public init(from decoder: any Decoder) throws {
    description = try decoder.singleValueContainer().decode(String.self)
  }

  /// As its text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
