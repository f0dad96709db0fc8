import ContainerTransaction
import Formats

/// `files.unarchive`: makes what `NSKeyedArchiver` wrote JSON or a property list, in files, a setting or a column.
struct Unarchive: MigrationOperation {
  static let name = "files.unarchive"
  static let keys =
    ["path", "key", "column", "to", "extension", "store", "if-missing", "if-exists"] + DefaultsTarget.keys
    + ArchiveConversion.keys + ArchivedColumn.keys

  /// How JSON is stored where both text and data can be.
  enum Store: String, CaseIterable, Sendable { case text, data }

  private enum Place: Sendable {
    case files(ArchivedFiles)
    case setting(ArchivedSetting)
    case column(ArchivedColumn)
  }

  private let place: Place
  private let conversion: ArchiveConversion

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    conversion = try ArchiveConversion(reading: reader)
    let places = ["path", "key", "column"].filter { reader[$0] != nil }
    guard let first = places.first else {
      throw reader.position.error(
        "files.unarchive needs `path` (files), `key` (a setting) or `column` (of a database's `table`)")
    }
    if places.count > 1, let node = reader[places[1]] {
      throw node.position.error("name one of `path`, `key` and `column`, not two")
    }
    switch first {
    case "path":
      try reader.refuse(DefaultsTarget.keys + ArchivedColumn.keys + ["store"], with: "path")
      place = .files(try ArchivedFiles(reading: reader))
    case "key":
      try reader.refuse(ArchivedColumn.keys + ["extension"], with: "key")
      place = .setting(try ArchivedSetting(reading: reader))
    default:
      try reader.refuse(DefaultsTarget.keys + ["extension", "to", "if-exists"], with: "column")
      place = .column(try ArchivedColumn(reading: reader))
    }
    if conversion.form == .plist, let node = reader["store"] {
      throw node.position.error("`store` is for JSON: a property list is stored as it is")
    }
  }

  /// Rows of a database are kept nowhere by themselves.
  var wayBack: WayBack {
    if case .column = place { .none } else { .byMemory }
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    switch place {
    case .files(let files): try files.convert(conversion, on: stage, &memory)
    case .setting(let setting): try setting.convert(conversion, on: stage, &memory)
    case .column(let column): try column.convert(conversion, on: stage)
    }
  }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    let memory = try StepMemory.required(memory)
    switch place {
    case .files: return try memory.revertConverted(on: stage)
    case .setting: return try memory.revertSettings(on: stage)
    case .column:
      throw StepFailure(
        message:
          "what a column held before files.unarchive is not kept by itself: the migration needs `down` steps")
    }
  }
}

extension YAMLReader {
  /// Refuses arguments that make no sense beside another one.
  fileprivate func refuse(_ keys: [String], with other: String) throws {
    for key in keys {
      if let node = self[key] { throw node.position.error("`\(key)` makes no sense with `\(other)`") }
    }
  }
}
