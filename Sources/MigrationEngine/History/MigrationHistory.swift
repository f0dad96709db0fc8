import ContainerTransaction
import Cryptography
import DrydockErrors
import Formats
import Foundation

/// The migrations that a container has, from its history file: one record for each, in order.
package struct MigrationHistory: Sendable, Equatable {
  /// Numbers ascending.
  package private(set) var records: [MigrationRecord]

  /// The schema version: the number of the last record, 0 without any.
  package var version: Int { records.last?.number ?? 0 }

  package init() { records = [] }

  package func record(_ number: Int) -> MigrationRecord? { records.first { $0.number == number } }

  mutating func removeAll(after version: Int) { records.removeAll { $0.number > version } }

  /// Inserts a record by its number.
  mutating func add(_ record: MigrationRecord) {
    let index = records.lastIndex { $0.number < record.number }.map { $0 + 1 } ?? 0
    records.insert(record, at: index)
  }

  /// Replaces the record with the same number.
  mutating func replace(_ record: MigrationRecord) {
    records = records.map { $0.number == record.number ? record : $0 }
  }

  mutating func remove(_ number: Int) { records.removeAll { $0.number == number } }

  static let format = 1

  private struct File: Codable {
    var format: Int
    var migrations: [MigrationRecord]
  }

  /// Decodes a history file strictly, since a wrong version would run migrations twice.
  ///
  /// - Throws: ``DrydockError`` with code `damagedHistory`.
  package init(bytes: [UInt8], path: String) throws {
    func damaged(_ what: String, _ cause: (any Error)? = nil) -> DrydockError {
      DrydockError(
        .damagedHistory,
        "the history of migrations \(what); restore it from a backup, or remove it and set "
          + "the version", path: path, cause: cause)
    }
    struct Head: Decodable { var format: Int }
    let data = Data(bytes)
    guard let head = try? JSONDecoder().decode(Head.self, from: data) else {
      throw damaged("is not the JSON that Drydock writes")
    }
    guard head.format == Self.format else {
      throw DrydockError(
        .damagedHistory,
        "the history of migrations has format \(head.format), and this Drydock supports \(Self.format): use a newer "
          + "one", path: path)
    }
    do {
      let decoder = JSONDecoder()
      // Times are ISO 8601 in UTC.
      decoder.dateDecodingStrategy = .custom { decoder in
        let container = try decoder.singleValueContainer()
        if let date = YAMLDate.parse(try container.decode(String.self)) { return date }
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a time in ISO 8601")
      }
      records = try decoder.decode(File.self, from: data).migrations
    } catch {
      throw damaged("has an incomplete record", error)
    }
    for (previous, next) in zip(records, records.dropFirst()) where previous.number >= next.number {
      throw damaged("has the number \(next.number) after \(previous.number)")
    }
    if let first = records.first, first.number < 1 { throw damaged("has the number \(first.number)") }
  }

  /// The file's content: indented JSON with sorted keys.
  package func encoded() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .custom { try YAMLDate.text($0).encode(to: $1) }
    let data = try encoder.encode(File(format: Self.format, migrations: records))
    return [UInt8](data) + [UInt8(ascii: "\n")]
  }

  /// Reads the history of a container; nil when it has none.
  package static func read(_ stage: StagedContainer) throws -> MigrationHistory? {
    let path = stage.container.historyPath
    guard try stage.status(of: path) != nil else { return nil }
    return try MigrationHistory(bytes: try stage.read(path), path: path.description)
  }

  /// As ``read(_:)``, but nil for a corrupt one.
  static func readable(_ stage: StagedContainer) throws -> MigrationHistory? {
    do { return try read(stage) } catch let error as DrydockError where error.code == .damagedHistory {
      return nil
    }
  }

  package func write(to stage: StagedContainer) throws {
    try stage.write(try encoded(), to: stage.container.historyPath)
  }
}

/// One record of a container's history.
package struct MigrationRecord: Sendable, Codable, Equatable {
  package enum Origin: String, Sendable, Codable {
    /// Drydock ran the migration.
    case applied
    /// `drydock baseline` set the version.
    case baseline
    /// It was applied externally, by the app or another tool.
    case app
  }

  package var number: Int
  /// The number that it ran under, which the undo log has, if it was renumbered since.
  package var formerly: Int?
  /// Without the number.
  package var name: String
  /// SHA-256 over its files when it was recorded.
  package var checksum: SHA256.Digest
  /// When it was recorded; whole seconds.
  package var time: Date
  /// How long it ran, in milliseconds; nil when Drydock did not run it.
  package var milliseconds: Int?
  /// The version of Drydock that recorded it.
  package var tool: String
  package var transaction: String
  package var origin: Origin

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
}

/// The values that all records of one run share.
package struct MigrationStamp: Sendable {
  /// The version of Drydock.
  package var tool: String
  package var transaction: String
  /// When it began; whole seconds.
  package var time: Date

  /// Fractions of a second are dropped.
  package init(tool: String, transaction: String, time: Date = Date()) {
    self.tool = tool
    self.transaction = transaction
    self.time = Date(timeIntervalSinceReferenceDate: time.timeIntervalSinceReferenceDate.rounded(.down))
  }
}
