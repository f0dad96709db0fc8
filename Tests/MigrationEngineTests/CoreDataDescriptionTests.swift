import AppContainer
import AppFrameworks
import Formats
import Foundation
import GRDB
import TestSupport
import Testing

@Suite struct CoreDataDescriptionTests {
  private func describe(
    _ name: String = "Notes.sqlite", sql: String = "", model: String? = CoreDataSamples.model,
    files: [String: UInt64]? = [CoreDataSamples.reference: 280],
    configure: (inout ContainerConfiguration) -> Void = { _ in }
  ) throws -> DatabaseDescription {
    try #require(
      try CoreDataSamples.describe(name, sql: sql, model: model, files: files, configure: configure))
  }

  @Test func store() throws {
    let found = try describe()
    #expect(found.framework == .coreData)
    #expect(found.summary == "Core Data store, model Notes")
    let facts = Dictionary(uniqueKeysWithValues: found.facts.map { ($0.name, $0.value) })
    #expect(facts["model version"] == "Notes")
    // The identifier names another version, as in many real stores.
    #expect(facts["version identifiers"] == "Notes 3 (set by the app; may be outdated)")
    #expect(facts["metadata key com.example.notes.lastSync"] == "\"2026-11-20\"")
    #expect(facts["metadata key accessToken"]?.hasPrefix("(secret, 32 characters") == true)
    #expect(facts["persistent history"] == "1 transaction, 4 changes")
    #expect(facts["external binary data"] == "1 file, 280 bytes")
    #expect(facts.count == 6)
    let entities: [DatabaseDescription.Entity] = [
      .init(name: "Attachment", rows: 1), .init(name: "Photo", rows: 1, parent: "Attachment"),
      .init(name: "Sketch", rows: 1, parent: "Attachment"), .init(name: "Folder", rows: 2),
      .init(name: "Note", rows: 5), .init(name: "Tag", rows: 3),
    ]
    #expect(found.entities == entities)
    #expect(found.warnings == [])
    #expect(!"\(found)".contains("8f14e45f"))
  }

  @Test func modelVersions() throws {
    #expect(try describe("Notes2.sqlite").summary == "Core Data store, model Notes 2")
    let none = try describe(model: nil)
    #expect(none.summary == "Core Data store")
    #expect(none.facts.first?.value == "unknown: no compiled model is given")
    // Another app's model, given for all databases, says nothing about this one.
    let swift = try describe("default.store", files: nil)
    #expect(
      swift.facts.map(\.value).prefix(2) == [
        "SwiftData (by the name default.store)", "unknown: the model has other entities",
      ])
    #expect(swift.facts.contains(.init("CloudKit mirroring", "1 record")))
    #expect(swift.entities == [.init(name: "Trip", rows: 2)])
    #expect(swift.warnings == [])
    // The model of this database.
    let named = try describe("default.store", model: nil, files: nil) {
      $0.databases = ["trips": ["default.store"]]
      $0.coreDataModels = ["trips": CoreDataSamples.versionInfo]
    }
    #expect(named.warnings == ["the model in drydock.yaml has none of the store's entities"])
  }

  /// The metadata of a store with another property list.
  private func metadata(_ change: (inout PropertyListDictionary) -> Void) throws -> String {
    var values: PropertyListDictionary = [:]
    try TemporaryDirectory.with { directory in
      try RawFiles.write(CoreDataSamples.bytes("Notes.sqlite"), to: Array(directory("a").utf8))
      let data = try DatabaseQueue(path: directory("a")).read {
        try Data.fetchOne($0, sql: "SELECT Z_PLIST FROM Z_METADATA")
      }
      values = try PropertyListFile(bytes: [UInt8](#require(data))).root
    }
    change(&values)
    let hex = try PropertyListFile(root: values).encoded().map { String(format: "%02x", $0) }.joined()
    return "UPDATE Z_METADATA SET Z_PLIST = x'\(hex)'"
  }

  @Test func unknownVersion() throws {
    let changed = try metadata {
      guard case .dictionary(var hashes)? = $0["NSStoreModelVersionHashes"] else { return }
      hashes["Note"] = .data([UInt8](repeating: 7, count: 32))
      $0["NSStoreModelVersionHashes"] = .dictionary(hashes)
    }
    let found = try describe(sql: changed)
    #expect(found.facts.first?.value == "none of the model's versions")
    #expect(
      found.warnings == [
        "the store has none of the model's versions (entities that none has: Note): an app with this model cannot open it"
      ])
    // A store may be for some of a model's entities.
    let part = try metadata {
      guard case .dictionary(var hashes)? = $0["NSStoreModelVersionHashes"] else { return }
      hashes["Tag"] = nil
      $0["NSStoreModelVersionHashes"] = .dictionary(hashes)
    }
    #expect(try describe(sql: part).facts.first?.value == "Notes (some of its entities)")
  }

  @Test(arguments: [
    ("INSERT INTO ZNOTE (Z_PK, Z_ENT) VALUES (90, 5)", "the largest key of Note is 90"),
    ("UPDATE ZTAG SET Z_ENT = 5", "rows of Tag with a Z_ENT that is not one of the table's entities: 3"),
    ("UPDATE ZTAG SET Z_ENT = 'x'", "rows of Tag with a Z_ENT that is not one of the table's entities: 3"),
    ("DROP TABLE ZTAG", "the entity Tag has no table"),
    ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 2 WHERE Z_ENT = 1", "Z_PRIMARYKEY is corrupt: the entity Photo"),
    ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 77 WHERE Z_ENT = 6", "Z_PRIMARYKEY is corrupt: the entity Tag"),
    ("DELETE FROM Z_METADATA", "the Core Data store's metadata is corrupt: Z_METADATA"),
    ("UPDATE Z_METADATA SET Z_PLIST = 'text'", "the Core Data store's metadata is corrupt: not a property"),
    (
      "UPDATE ZATTACHMENT SET ZDATA = CAST(x'02' || '6D1B0F6A-6C1E-4E0B-9A57-0C1F5B1C2D3F' AS BLOB) WHERE Z_PK = 1",
      "values in missing files of external binary data: 1 of 2, such as 6D1B0F6A-6C1E-4E0B-9A57-0C1F5B1C2D3F"
    ),
    ("UPDATE ZATTACHMENT SET ZDATA = NULL", "files of external binary data that belong to no row: 1"),
  ])
  func warnings(_ sql: String, _ warning: String) throws {
    let warnings = try describe(sql: sql).warnings
    #expect(warnings.contains { $0.hasPrefix(warning) }, "\(warnings)")
  }

  /// Damage gives a description with warnings, or none, but no error and no crash.
  @Test(arguments: [
    "UPDATE Z_PRIMARYKEY SET Z_MAX = 9223372036854775807",
    "UPDATE Z_PRIMARYKEY SET Z_MAX = -1, Z_SUPER = 'x'", "UPDATE Z_PRIMARYKEY SET Z_SUPER = Z_ENT",
    "DELETE FROM Z_PRIMARYKEY", "UPDATE Z_PRIMARYKEY SET Z_NAME = x'ff00'",
    "UPDATE Z_PRIMARYKEY SET Z_NAME = NULL", "UPDATE Z_PRIMARYKEY SET Z_NAME = 'a\"; DROP TABLE ZNOTE; --'",
    "DROP TABLE ZNOTE; CREATE VIEW ZNOTE AS SELECT 1 AS Z_PK, 2 AS Z_ENT", "DROP TABLE ACHANGE",
    "DROP TABLE ATRANSACTION", "DROP TABLE ZATTACHMENT", "UPDATE Z_METADATA SET Z_PLIST = zeroblob(1000000)",
    #"ALTER TABLE ZATTACHMENT RENAME COLUMN ZDATA TO "a""b'; --""#, "ALTER TABLE ZNOTE DROP COLUMN Z_ENT",
    "DROP TABLE Z_METADATA",
    "PRAGMA writable_schema=ON; UPDATE sqlite_schema SET rootpage = 99999 WHERE name = 'ZNOTE'",
  ])
  func damage(_ sql: String) throws {
    _ = try CoreDataSamples.describe("Notes.sqlite", sql: sql, model: CoreDataSamples.model, files: [:])
  }

  @Test func damagedMetadata() throws {
    let hex = try metadata { _ in }.split(separator: "'")[1]
    let bytes = hex.count / 2
    for length in stride(from: 0, to: bytes, by: 41) {
      let sql = "UPDATE Z_METADATA SET Z_PLIST = substr(Z_PLIST, 1, \(length))"
      let found = try describe(sql: sql)
      #expect(found.warnings.contains { $0.contains("metadata is corrupt") })
    }
    for index in stride(from: 1, to: bytes, by: 29) {
      let sql =
        "UPDATE Z_METADATA SET Z_PLIST = substr(Z_PLIST, 1, \(index - 1)) || x'ff' || substr(Z_PLIST, \(index + 1))"
      _ = try describe(sql: "UPDATE Z_METADATA SET Z_PLIST = CAST(Z_PLIST AS BLOB);" + sql)
    }
  }

  @Test func otherDatabases() throws {
    for drop in ["Z_METADATA", "Z_PRIMARYKEY"] {
      #expect(
        try CoreDataSamples.describe("Notes.sqlite", sql: "DROP TABLE \(drop)", model: CoreDataSamples.model)
          == nil)
    }
  }

  @Test(arguments: [
    ("Notes.xcdatamodeld", "a file .xcdatamodeld does not list the versions of a model"),
    ("Notes.mom", "a file .mom does not list"), ("Missing.momd", "cannot open"),
    ("make_stores.py", "not a property list"),
  ])
  func models(_ name: String, _ message: String) throws {
    expectFailure(message) { try describe(model: CoreDataSamples.folder + "/" + name) }
  }

  @Test func configuration() throws {
    func read(_ text: String) throws -> ContainerConfiguration {
      try TemporaryDirectory.with { directory in
        try RawFiles.write(Array(text.utf8), to: Array(directory("drydock.yaml").utf8))
        return try ContainerConfiguration(file: directory("drydock.yaml"), sections: [.coreData])
      }
    }
    let read1 = try read("databases: {notes: a.sqlite}\ncore-data: {notes: Models/Notes.momd}\n")
    #expect(read1.coreDataModels["notes"]?.hasSuffix("/Models/Notes.momd") == true)
    expectFailure("drydock.yaml:2:13: `databases` has no `note`; did you mean `notes`?") {
      try read("databases: {notes: a.sqlite}\ncore-data: {note: Notes.momd}\n")
    }
  }
}
