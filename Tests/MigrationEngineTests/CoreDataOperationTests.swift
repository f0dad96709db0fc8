import AppStores
import Formats
import Foundation
import GRDB
import TestSupport
import Testing

@testable import MigrationEngine

/// The operations on the stores of `CoreDataStores`; the store of the second model, which another program wrote, is what they
/// must make of the first one.
@Suite struct CoreDataOperationTests {
  private static let model =
    "core-data: {version-info: VersionInfo.plist, version: Notes 2, down-version: Notes}"
  private static let toSecond = [
    "coredata.rename-attribute: {database: notes, entity: Note, attribute: pinned, to: favourite, \(model)}",
    "coredata.add-attribute: {database: notes, entity: Note, attribute: language, type: string, default: en, \(model)}",
    "coredata.rename-entity: {database: notes, entity: Tag, to: Label, \(model)}",
    "coredata.add-entity: {database: notes, entity: Comment, attributes: {written: date, text: string}, \(model)}",
  ]

  private let lab: Lab
  init() throws { lab = try Lab() }

  private func prepare(_ steps: [String], sql: String = "") throws {
    try lab.write(Lab.oldDatabase, CoreDataSamples.bytes("Notes.sqlite"))
    if !sql.isEmpty { try lab.change(sql, in: Lab.oldDatabase) }
    try lab.baseline(0)
    try lab.migration("0001_test/VersionInfo.plist", Samples.text(CoreDataSamples.versionInfo))
    try lab.migration("0001_test/migration.yaml", "steps:\n" + steps.map { "  - \($0)\n" }.joined())
  }

  /// All that a store has, in a form that does not depend on the order of columns and rows.
  private static func content(_ db: Database) throws -> [String: [String]] {
    var content: [String: [String]] = [:]
    for table in try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'") {
      let columns = try Row.fetchAll(db, sql: "PRAGMA table_info(\(quotedIdentifier(table)))")
      content["columns of " + table] = columns.map { "\($0["name"] as String) \($0["type"] as String)" }
        .sorted()
      content["rows of " + table] = try Row.fetchAll(db, sql: "SELECT * FROM \(quotedIdentifier(table))").map
      { row in
        row.filter { $0.0 != "Z_PLIST" && $0.0 != "Z_CONTENT" }.map { "\($0.0)=\($0.1)" }.sorted()
          .joined(separator: " ")
      }.sorted()
    }
    let indexes = try Row.fetchAll(
      db, sql: "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    for index in indexes {
      let name: String = index["name"]
      content["index " + name] =
        [index["tbl_name"]]
        + (try String.fetchAll(db, sql: "SELECT name FROM pragma_index_info(?)", arguments: [name]))
    }
    content["rows of Z_MODELCACHE"] = nil
    guard let plist = try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA") else { return content }
    let root = try PropertyListFile(bytes: [UInt8](plist)).root
    content["metadata"] = root.sorted().map { "\($0.key)=\($0.value)" }
    if case .dictionary(let hashes)? = root["NSStoreModelVersionHashes"] {
      content["hashes"] = hashes.sorted().map { pair in
        if case .data(let bytes) = pair.value { "\(pair.key) \(bytes)" } else { pair.key }
      }
    }
    content["integrity"] = try String.fetchAll(db, sql: "PRAGMA integrity_check")
    return content
  }

  private func content(_ lab: Lab) throws -> [String: [String]] {
    try lab.look { try $0.readDatabase(at: Lab.oldDatabase, Self.content) }
  }

  private func content(of sample: String) throws -> [String: [String]] {
    try TemporaryDirectory.with { directory in
      try RawFiles.write(CoreDataSamples.bytes(sample), to: Array(directory("a").utf8))
      return try DatabaseQueue(path: directory("a")).read(Self.content)
    }
  }

  private func expectEqual(_ found: [String: [String]], _ expected: [String: [String]]) {
    for key in Set(found.keys).union(expected.keys).sorted() {
      #expect(found[key] == expected[key], "\(key)")
    }
  }

  @Test("The steps make what another program writes for the new model, and down steps what was there")
  func wholeModel() throws {
    try prepare(Self.toSecond)
    let notes = try lab.migrate().migrations.first?.notes ?? []
    expectEqual(try content(lab), try content(of: "Notes2.sqlite"))
    #expect(try lab.query(Lab.oldDatabase, "SELECT * FROM Z_MODELCACHE").isEmpty)
    #expect(
      notes.contains {
        $0.contains("not yet of the model `Notes 2`: it is without Comment, Label, and with Tag")
      })
    #expect(!notes.contains { $0.contains("keeps its name") }, "\(notes)")
    try lab.rollback(down: true)
    expectEqual(try content(lab), try content(of: "Notes.sqlite"))
  }

  @Test("Each order of the steps leads to the same store")
  func orders() throws {
    try prepare(Self.toSecond.reversed())
    try lab.migrate()
    expectEqual(try content(lab), try content(of: "Notes2.sqlite"))
  }

  @Test("What is not understood stays")
  func unknownTables() throws {
    let sql = """
      CREATE TABLE Z_5OTHER (a, b); INSERT INTO Z_5OTHER VALUES (1, 2);
      CREATE TABLE ZNOTHING (Z_PK INTEGER PRIMARY KEY, x); INSERT INTO ZNOTHING VALUES (1, 'kept');
      CREATE TABLE later (Z_ENT); INSERT INTO later VALUES (5);
      CREATE VIEW titles AS SELECT ZTITLE FROM ZNOTE;
      CREATE INDEX own ON ZTAG (ZNAME);
      CREATE INDEX Z_Tag_byName ON ZTAG (ZNAME COLLATE BINARY ASC);
      """
    try prepare(Self.toSecond, sql: sql)
    try lab.migrate()
    let found = try content(lab)
    #expect(found["rows of Z_5OTHER"] == ["a=1 b=2"])
    #expect(found["rows of ZNOTHING"] == ["Z_PK=1 x=\"kept\""])
    #expect(found["rows of later"] == ["Z_ENT=5"])
    #expect(try lab.query(Lab.oldDatabase, "SELECT * FROM titles").count == 5)
    #expect(found["index own"] == ["ZLABEL", "ZNAME"])
    #expect(found["index Z_Label_byName"] == ["ZLABEL", "ZNAME"])
  }

  @Test("Relationships are renamed with their order and index, and numbered columns with their entities")
  func relationships() throws {
    let sql =
      "ALTER TABLE ZFOLDER ADD COLUMN Z5_COVER INTEGER; CREATE INDEX ZFOLDER_Z5_COVER_INDEX ON ZFOLDER (Z5_COVER);"
    let rename =
      "coredata.rename-attribute: {database: notes, entity: Note, attribute: folder, to: place, \(Self.model)}"
    try prepare([rename] + Self.toSecond, sql: sql)
    try lab.migrate()
    let found = try content(lab)
    #expect(found["columns of ZNOTE"]?.contains("ZPLACE INTEGER") == true)
    #expect(found["columns of ZNOTE"]?.contains("Z_FOK_PLACE INTEGER") == true)
    #expect(found["index ZNOTE_ZPLACE_INDEX"] == ["ZNOTE", "ZPLACE"])
    #expect(found["index ZNOTE_ZFOLDER_INDEX"] == nil)
    // Note is the entity 7 now.
    #expect(found["index ZFOLDER_Z7_COVER_INDEX"] == ["ZFOLDER", "Z7_COVER"])
  }

  @Test("An entity with a parent shares its table")
  func inheritance() throws {
    let steps = [
      "coredata.add-attribute: {database: notes, entity: Photo, attribute: height, type: integer-32, default: 480, \(Self.model)}",
      "coredata.rename-entity: {database: notes, entity: Tag, to: Label, \(Self.model)}",
      "coredata.add-entity: {database: notes, entity: Comment, parent: Label, attributes: {text: string}, \(Self.model)}",
    ]
    try prepare(steps)
    try lab.migrate()
    let found = try content(lab)
    let heights = try lab.column("SELECT quote(ZHEIGHT) FROM ZATTACHMENT ORDER BY Z_PK", in: Lab.oldDatabase)
    #expect(heights == ["NULL", "480", "NULL"])
    #expect(found["columns of ZLABEL"]?.contains("ZTEXT VARCHAR") == true)
    #expect(found["index ZLABEL_Z_ENT_INDEX"] == ["ZLABEL", "Z_ENT"])
    #expect(found["rows of Z_PRIMARYKEY"]?.contains("Z_ENT=6 Z_MAX=0 Z_NAME=\"Comment\" Z_SUPER=5") == true)
    try lab.rollback(down: true)
    expectEqual(try content(lab), try content(of: "Notes.sqlite"))
  }

  @Test("Down steps say what is lost")
  func lost() throws {
    try prepare(Self.toSecond)
    try lab.migrate()
    try lab.change(
      "UPDATE ZNOTE SET ZLANGUAGE = 'de' WHERE Z_PK < 3; INSERT INTO ZCOMMENT (Z_PK, Z_ENT) VALUES (1, 4);",
      in: Lab.oldDatabase)
    let notes = try lab.revert()
    #expect(
      notes.contains { $0.contains("Note.language: lost values other than the default: 2") }, "\(notes)"
    )
    #expect(notes.contains { $0.contains("Comment: lost rows: 1") }, "\(notes)")
  }

  private static let rating: String = "entity: Note, attribute: rating"

  @Test(arguments: [
    ("rename-attribute", "entity: Note, attribute: pined, to: x", "column ZPINED; did you mean `pinned`?"),
    ("rename-attribute", "entity: Note, attribute: pinned, to: Title", "has an attribute `Title` already"),
    ("rename-attribute", "entity: Notes, attribute: a, to: b", "no entity `Notes`; did you mean `Note`?"),
    ("rename-attribute", "entity: CHANGE, attribute: a, to: b", "the store has no entity `CHANGE`"),
    ("rename-attribute", "entity: Note, attribute: 'a b', to: b", "`a b` is not a name in a Core Data model"),
    ("add-attribute", "entity: Note, attribute: rating, type: string", "has a column ZRATING already"),
    ("add-attribute", "entity: Note, attribute: x, type: text", "`type` of coredata.add-attribute is one of"),
    (
      "add-attribute", "entity: Note, attribute: x, type: integer-16, default: 70000",
      "`default` is the integer 70000, which does not fit the type integer-16"
    ),
    ("add-attribute", "entity: Note, attribute: x", "coredata.add-attribute needs the key `type`"),
    ("rename-entity", "entity: Tag, to: Lable", "`Notes 2` has no entity `Lable`; did you mean `Label`?"),
    ("rename-entity", "entity: Tag, to: Note", "the store has an entity `Note` already"),
    ("add-entity", "entity: Folder", "the store has an entity `Folder` already"),
    ("add-entity", "entity: Comment, parent: Nothing", "the store has no entity `Nothing`"),
    ("add-entity", "entity: Comment, attributes: {a: strin}", "type of attributes; did you mean `string`?"),
    ("add-entity", "entity: Comment, attributes: {a: string, A: date}", "two of the names differ"),
    ("add-entity", "entity: Comment, parent: Tag, to-one: [note]", "gets its relationships with `sql`"),
    ("convert", "\(rating), map: {1: 2, 2: 3}", "`Note.rating` has 3 values that the map has no entry for"),
    ("convert", "\(rating), sql: ratin", "the expression for `Note.rating`: no such column: ratin"),
    ("convert", "\(rating), sql: ''", "syntax error"),
    ("convert", "\(rating), sql: '1); DROP TABLE ZNOTE; --'", "the expression for"),
    ("convert", rating, "coredata.convert needs `map` or `sql`"),
    ("convert", "\(rating), map: {}", "`map` is empty"),
    ("convert", "\(rating), map: {1: [2]}", "an attribute has a single value, not a list"),
    ("convert", "\(rating), map: {1: 2}, down: x", "`down` is for `sql`"),
    ("convert", "\(rating), sql: x, unmapped: keep", "`unmapped` is for a `map`"),
    ("convert", "\(rating), map: {1: 18446744073709551615}", "SQLite has no integer above"),
  ])
  func refused(_ operation: String, _ arguments: String, _ message: String) throws {
    let model = operation == "convert" ? "" : ", \(Self.model)"
    try prepare(["coredata.\(operation): {database: notes, \(arguments)\(model)}"])
    expectFailure(message) { try lab.migrate() }
    expectEqual(try content(lab), try content(of: "Notes.sqlite"))
  }

  @Test(arguments: [
    ("UPDATE Z_PRIMARYKEY SET Z_ENT = 60 WHERE Z_ENT = 6; UPDATE ZTAG SET Z_ENT = 60", "are not numbered in"),
    ("UPDATE Z_PRIMARYKEY SET Z_SUPER = 2 WHERE Z_ENT = 1", "are not numbered in the order of their names"),
    ("CREATE TABLE ANSCKRECORDMETADATA (Z_PK INTEGER PRIMARY KEY)", "CloudKit mirrors the store"),
    ("DROP TABLE ZTAG", "the entity Tag has no table: the store is corrupt"),
    ("DELETE FROM Z_METADATA", "Z_METADATA has not one row with a Z_PLIST"),
    ("DROP TABLE Z_PRIMARYKEY", "is not a Core Data store"),
    ("CREATE TABLE ZLABEL (a)", "the store has a table ZLABEL already"),
  ])
  func otherStores(_ sql: String, _ message: String) throws {
    try prepare([Self.toSecond[2]], sql: sql)
    let before = try? content(lab)
    expectFailure(message) { try lab.migrate() }
    if let before { expectEqual(try content(lab), before) }
  }

  @Test("A numbered column makes an attribute ambiguous")
  func ambiguous() throws {
    let step =
      "coredata.rename-attribute: {database: notes, entity: Sketch, attribute: width, to: w, \(Self.model)}"
    try prepare([step], sql: "ALTER TABLE ZATTACHMENT ADD COLUMN ZWIDTH1 INTEGER")
    expectFailure("has a numbered column beside ZWIDTH") { try lab.migrate() }
  }

  @Test("Without `down-version` a step cannot be reverted")
  func irreversible() throws {
    let step =
      "coredata.rename-attribute: {database: notes, entity: Note, attribute: pinned, to: favourite, core-data: {version-info: VersionInfo.plist}}"
    try prepare([step])
    let migration = try lab.catalog().migrations.first
    #expect(migration?.isReversible == false)
  }

  @Test(
    "Values are converted by a map or an expression, in the rows of the entity; what has an inverse is reverted",
    arguments: [
      ("\(rating), map: {1: 5, 2: 4, 3: 3, 4: 2, 5: 1}", "ZRATING", "5 4 3 2 1", true),
      ("\(rating), map: {1: 2, 2: 3}, unmapped: keep", "ZRATING", "2 3 3 4 5", false),
      ("\(rating), map: {1: 2, 2: null}, unmapped: delete", "ZRATING", "2 NULL NULL NULL NULL", false),
      (
        "entity: Note, attribute: body, map: {'…': short, null: none}, unmapped: keep", "ZBODY",
        "'short' '……' '………' 'none' '……………'", false
      ),
      ("\(rating), sql: rating * 10 + pinned", "ZRATING", "11 20 31 40 51", false),
      ("\(rating), sql: rating * 10, down: rating / 10", "ZRATING", "10 20 30 40 50", true),
      (
        "entity: Note, attribute: title, sql: \"'<' || lower(Title) || '>' -- loud\"", "ZTITLE",
        "'<note 1>' '<note 2>'", false
      ),
      ("entity: Photo, attribute: name, sql: upper(name)", "ZNAME", "'a.txt' 'B.JPG' 'c'", false),
      ("entity: Attachment, attribute: name, sql: upper(name)", "ZNAME", "'A.TXT' 'B.JPG' 'C'", false),
    ])
  func conversions(_ arguments: String, _ column: String, _ expected: String, _ hasInverse: Bool) throws {
    try prepare(["coredata.convert: {database: notes, \(arguments)}"])
    let table = arguments.hasPrefix("entity: Note") ? "ZNOTE" : "ZATTACHMENT"
    let values = {
      try lab.column("SELECT quote(\(column)) FROM \(table) ORDER BY Z_PK", in: Lab.oldDatabase)
    }
    let before = try values()
    try lab.migrate()
    let after = try values()
    #expect(after.joined(separator: " ").hasPrefix(expected), "\(after)")
    if !hasInverse { return }
    try lab.rollback(down: true)
    #expect(try values() == before)
  }

  @Test("A missing database is skipped, or fails", arguments: ["skip", "fail"])
  func missing(_ word: String) throws {
    try lab.migration(
      "0001_test.yaml",
      step: "coredata.convert: {database: notes, \(Self.rating), sql: '1', if-missing: \(word)}")
    try lab.baseline(0)
    let error = failure { try lab.migrate() }.text
    let expected = word == "fail" ? "the database notes is not in the container" : "no error"
    #expect(error.contains(expected), "\(error)")
  }
}
