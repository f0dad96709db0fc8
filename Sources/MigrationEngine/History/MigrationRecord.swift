import AgeEncryption
import Formats
import Foundation

/// One line of a container's history.
package struct MigrationRecord: Sendable, Codable, Equatable {
  /// How a container came to a version.
  package enum Origin: String, Sendable, Codable {
    /// Drydock ran the migration.
    case applied
    /// Somebody said so with `drydock baseline`.
    case baseline
    /// The app did it itself, and its version marker told.
    case app
  }

  /// The migration's number.
  package var number: Int
  /// Its name, without the number.
  package var name: String
  /// SHA-256 over its files when it was recorded.
  package var checksum: SHA256.Digest
  /// When it was recorded; whole seconds.
  package var time: Date
  /// How long it ran, in milliseconds; nil when Drydock did not run it.
  package var milliseconds: Int?
  /// The version of Drydock that recorded it.
  package var tool: String
  /// The transaction that it was recorded in.
  package var transaction: String
  /// How the container came to this version.
  package var origin: Origin

  private enum CodingKeys: String, CodingKey {
    case number, name, checksum, time, milliseconds, tool, transaction, origin
  }

  init(_ migration: Migration, origin: Origin, milliseconds: Int? = nil, stamp: MigrationStamp) {
    number = migration.number
    name = migration.name
    checksum = migration.checksum
    time = stamp.time
    self.milliseconds = milliseconds
    tool = stamp.tool
    transaction = stamp.transaction
    self.origin = origin
  }

  /// Reads a record.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    number = try container.decode(Int.self, forKey: .number)
    name = try container.decode(String.self, forKey: .name)
    checksum = try container.decode(SHA256.Digest.self, forKey: .checksum)
    guard let date = YAMLDate.parse(try container.decode(String.self, forKey: .time)) else {
      throw DecodingError.dataCorruptedError(
        forKey: .time, in: container, debugDescription: "not a time in ISO 8601")
    }
    time = date
    milliseconds = try container.decodeIfPresent(Int.self, forKey: .milliseconds)
    tool = try container.decode(String.self, forKey: .tool)
    transaction = try container.decode(String.self, forKey: .transaction)
    origin = try container.decode(Origin.self, forKey: .origin)
  }

  /// Writes a record; the time as ISO 8601 in UTC.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(number, forKey: .number)
    try container.encode(name, forKey: .name)
    try container.encode(checksum, forKey: .checksum)
    try container.encode(YAMLDate.text(time), forKey: .time)
    try container.encodeIfPresent(milliseconds, forKey: .milliseconds)
    try container.encode(tool, forKey: .tool)
    try container.encode(transaction, forKey: .transaction)
    try container.encode(origin, forKey: .origin)
  }
}

/// What every record of one run has in common.
package struct MigrationStamp: Sendable {
  /// The version of Drydock.
  package var tool: String
  /// The transaction's name.
  package var transaction: String
  /// When it began; whole seconds.
  package var time: Date

  /// A stamp from its parts; fractions of a second are dropped.
  package init(tool: String, transaction: String, time: Date = Date()) {
    self.tool = tool
    self.transaction = transaction
    self.time = Date(timeIntervalSinceReferenceDate: time.timeIntervalSinceReferenceDate.rounded(.down))
  }
}
