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

/// Corrects a container's history where the user confirms it.
package struct Repair: Sendable {
  /// Migrations that were modified after they were applied: their present files are recorded as applied.
  package var accept: [Int]
  /// Migrations whose files are missing: they are removed from the history.
  package var remove: [Int]

  /// Whether the records of migrations that have another number now get that number.
  package var renumber: Bool

  package init(accept: [Int] = [], remove: [Int] = [], renumber: Bool = false) {
    (self.accept, self.remove, self.renumber) = (accept, remove, renumber)
  }

  /// Rewrites the history, and the version markers when the version changes.
  ///
  /// - Returns: notes on what was done.
  /// - Throws: ``DrydockError`` `usage` for a migration in another state.
  package func run(_ catalog: MigrationCatalog, on stage: StagedContainer) throws -> [String] {
    let status = try MigrationStatus(catalog, of: stage)
    var history = status.detected.history
    var notes: [String] = []
    for number in accept.sorted() {
      let entry = try Self.entry(number, .edited, "accept", status)
      guard let migration = entry.migration, var record = entry.record else { continue }
      guard !entry.isOfAnother else {
        throw DrydockError(
          .usage,
          "\(entry.identifier) is another migration than \(record.name), which was applied: both its name and its "
            + "content differ; if it is the same one, restore its name and accept its content first")
      }
      let renamed = record.name == migration.name ? "" : " (it was named \(record.name))"
      (record.name, record.checksum) = (migration.name, migration.checksum)
      history.replace(record)
      notes.append("\(migration.identifier): its present files are recorded as applied\(renamed)")
    }
    for number in remove.sorted() {
      let entry = try Self.entry(number, .missing, "remove", status)
      history.remove(number)
      notes.append("\(entry.identifier): removed from the history")
    }
    if renumber { notes += try Self.renumber(&history, status) }
    try history.write(to: stage)
    if history.version != status.detected.version {
      notes += try stage.writeMarkers(version: history.version)
    }
    return notes
  }

  /// All at once: after a merge two migrations may have each other's number.
  private static func renumber(_ history: inout MigrationHistory, _ status: MigrationStatus) throws
    -> [String]
  {
    let entries = status.entries.filter { $0.state == .renumbered }
    if entries.isEmpty { throw DrydockError(.usage, "no applied migration has another number now") }
    for entry in entries { history.remove(entry.number) }
    return try entries.compactMap { entry in
      guard let migration = entry.migration, var record = entry.record else { return nil }
      if let other = history.record(migration.number) {
        throw DrydockError(
          .usage,
          "\(entry.identifier) cannot become \(migration.identifier): the history has that number for \(other.name); "
            + "restore the files of \(other.name) under another number")
      }
      record.formerly = record.formerly ?? record.number
      (record.number, record.name, record.checksum) = (migration.number, migration.name, migration.checksum)
      history.add(record)
      return "\(entry.identifier): recorded as \(migration.identifier)"
    }
  }

  private static func entry(
    _ number: Int, _ state: MigrationStatus.State, _ verb: String, _ status: MigrationStatus
  ) throws -> MigrationStatus.Entry {
    guard let entry = status.entries.first(where: { $0.number == number }) else {
      throw DrydockError(.usage, "migration \(number) is neither in the files nor in the history")
    }
    guard entry.state == state || (state == .edited && entry.hasLaterDownFile) else {
      throw DrydockError(
        .usage,
        "`\(verb)` is for migrations that are \(state.rawValue), and \(entry.identifier) is \(entry.state.rawValue)"
      )
    }
    return entry
  }
}

/// Sets the version of a container without running migrations.
package enum Baseline {
  /// Writes the history for a version, and updates the version markers. Existing records up to that version are kept, and
  /// later ones removed.
  ///
  /// - Returns: notes, such as on markers that could not be written.
  /// - Throws: ``DrydockError`` `usage` for a version that the migrations do not have.
  package static func set(
    _ version: Int, catalog: MigrationCatalog, on stage: StagedContainer, stamp: MigrationStamp
  ) throws -> [String] {
    guard catalog.hasVersion(version) else {
      throw DrydockError(
        .usage,
        "version \(version) does not exist: the migrations go from \(catalog.base) to \(catalog.latest)",
        path: catalog.directory)
    }
    // Baseline replaces a history that cannot be read.
    let old = try MigrationHistory.readable(stage) ?? MigrationHistory()
    var history = MigrationHistory()
    for migration in catalog.migrations where migration.number <= version {
      history.add(
        old.record(migration.number) ?? MigrationRecord(migration, origin: .baseline, stamp: stamp))
    }
    let lacking = try ReplayedSchema(
      catalog, applied: catalog.migrations.filter { $0.number <= version }, recorded: [], version: version,
      of: stage)
    var notes =
      lacking.map(\.lines).flatMap { $0.isEmpty ? nil : $0 }.map {
        ["the database lacks what its migrations make: " + $0.joined(separator: ", ")]
      } ?? []
    try history.write(to: stage)
    notes += try stage.updateToolRecord(history, catalog)
    notes += try stage.writeMarkers(version: version)
    if old.version > version {
      notes.append(
        "the history had version \(old.version): later migrations than \(version) will be run again")
    }
    return notes
  }
}
