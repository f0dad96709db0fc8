import Formats
import Foundation
import Testing

@Suite struct CoreDataTests {
  private func run(
    _ sql: String, _ arguments: String = "", versionInfo: String? = nil, store: String? = nil,
    check: (Lab) throws -> Void = { _ in }
  ) throws -> (notes: [String], error: String) {
    try Lab.with { lab in
      try lab.database(Lab.oldDatabase, try store ?? CoreDataStore.sql())
      try lab.baseline(0)
      try lab.migration("0001_test/VersionInfo.plist", try versionInfo ?? CoreDataStore.versionInfo())
      try lab.migration("0001_test/up.sql", sql)
      try lab.migration(
        "0001_test/migration.yaml",
        "steps:\n  - sql: {database: notes, file: up.sql, destructive: test\(arguments)}\nirreversible: true\n"
      )
      var notes: [String] = []
      let error = failure { notes = try lab.migrate().migrations.first?.notes ?? [] }
      try check(lab)
      return (notes, error.text)
    }
  }

  private func metadata(_ lab: Lab) throws -> PropertyListDictionary {
    let rows = try lab.query(Lab.oldDatabase, "SELECT Z_PLIST FROM Z_METADATA")
    let data = try #require(rows.first.map { $0["Z_PLIST"] as Data })
    return try PropertyListFile(bytes: [UInt8](data)).root
  }

  private func maxima(_ lab: Lab) throws -> [Int?] {
    try lab.query(Lab.oldDatabase, "SELECT Z_MAX FROM Z_PRIMARYKEY ORDER BY Z_ENT").map { $0["Z_MAX"] }
  }

  private static let coreData = ", core-data: {version-info: VersionInfo.plist}"

  @Test(arguments: [
    ("SELECT 1;\nALTER TABLE ZNOTE ADD COLUMN ZCOLOUR VARCHAR;", "up.sql:2:1: the database is a Core Data"),
    ("CREATE INDEX i ON ZNOTE (ZTITLE);", "up.sql:1:1: the database is a Core Data store"),
    ("DROP TABLE ZPHOTO;", "up.sql:1:1: the database is a Core Data store"),
    ("CREATE TABLE other (a);\nDROP TABLE other;", "up.sql:1:1: the database is a Core Data store"),
    ("UPDATE Z_METADATA SET Z_PLIST = x'00';", "change Z_METADATA, which belongs to Core Data"),
    ("DELETE FROM Z_METADATA;", "change Z_METADATA, which belongs to Core Data"),
    ("INSERT INTO ZNOTE VALUES (9, 2, 1, 'x', NULL);", "leave 1 rows of Note with a Z_ENT"),
    ("UPDATE ZPHOTO SET Z_ENT = NULL;", "leave 2 rows of Photo with a Z_ENT that is not its own"),
    ("DELETE FROM Z_PRIMARYKEY WHERE Z_ENT = 3;", "leave 1 rows of Photo with a Z_ENT"),
  ])
  func refused(_ sql: String, _ message: String) throws {
    let result = try run(sql) { (lab: Lab) throws in
      #expect(try metadata(lab) == CoreDataStore.metadata)
      #expect(try maxima(lab) == [2, 2, 0, 0])
      #expect(try lab.history()?.version == 0)
    }
    #expect(result.error.contains(message), "\(result.error)")
  }

  @Test func rowsThatCoreDataDidNotWrite() throws {
    let sql = """
      INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (12, 1, 1, 'new');
      INSERT INTO ZPHOTO (Z_ENT, Z_OPT, ZNOTE) VALUES (3, 1, 12);
      INSERT INTO ACHANGE VALUES (7, 16001, 1, 1);
      CREATE TEMPORARY TABLE t (a);
      ANALYZE;
      """
    let result = try run(sql) { (lab: Lab) throws in
      #expect(try maxima(lab) == [12, 3, 0, 7])
      #expect(try metadata(lab) == CoreDataStore.metadata)
      #expect(try lab.query(Lab.oldDatabase, "SELECT Z_CONTENT FROM Z_MODELCACHE").count == 1)
    }
    #expect(result.error == "no error")
    #expect(
      result.notes.contains { $0.hasSuffix("the largest key of Note is 12 now (was 2)") }, "\(result.notes)")
  }

  /// What was wrong before is not the step's fault.
  @Test func strayRowsFromBefore() throws {
    let store = try CoreDataStore.sql() + "UPDATE ZNOTE SET Z_ENT = 7 WHERE Z_PK = 1;"
    #expect(try run("UPDATE ZNOTE SET ZTITLE = 'x';", store: store).error == "no error")
    let worse = try run("UPDATE ZNOTE SET Z_ENT = 7;", store: store)
    #expect(worse.error.contains("leave 1 rows of Note"), "\(worse.error)")
  }

  @Test func aNewModel() throws {
    let result = try run("ALTER TABLE ZNOTE ADD COLUMN ZCOLOUR VARCHAR;", Self.coreData) {
      (lab: Lab) throws in
      var expected = CoreDataStore.metadata
      expected["NSStoreModelVersionHashes"] = .dictionary(CoreDataStore.second)
      expected["NSStoreModelVersionChecksumKey"] = "listed"
      let digest = "Fc8VB0y55JNpz2QOdg+0W3SavkOYW8M9QRmspeMYsYxFRAB0uNANe1ODeFC6sK3ti8uov4eKT6m6+lsDFUd9YQ=="
      expected["NSStoreModelVersionHashesDigest"] = .string(digest)
      #expect(try metadata(lab) == expected)
      #expect(try lab.query(Lab.oldDatabase, "SELECT * FROM Z_MODELCACHE").isEmpty)
      let uuid = try lab.query(Lab.oldDatabase, "SELECT Z_UUID FROM Z_METADATA")
      #expect(uuid == [["Z_UUID": "1F3B2C4D-0000-4000-8000-000000000000"]])
    }
    #expect(result.error == "no error")
  }

  @Test func aNewEntity() throws {
    let table = "CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR);\n"
    let row = "INSERT INTO Z_PRIMARYKEY VALUES (4, 'Tag', 0, 0);\n"
    let arguments = ", core-data: {version-info: VersionInfo.plist, version: Notes 3}"
    let done = try run(table + row + "INSERT INTO ZTAG VALUES (5, 4, 1, 'x');", arguments) {
      (lab: Lab) throws in
      #expect(try maxima(lab) == [2, 2, 0, 5, 0])
      #expect(try metadata(lab)["NSStoreModelVersionHashes"] == .dictionary(CoreDataStore.withTag))
    }
    #expect(done.error == "no error")
    #expect(try run(table, arguments).error.contains("has the entity Tag, and Z_PRIMARYKEY does not"))
    #expect(try run(row, arguments).error.contains("the entity Tag has no table ZTAG"))
    #expect(
      try run(table + row, Self.coreData).error.contains("Z_PRIMARYKEY has the entity Tag, and the model"))
  }

  @Test(arguments: [
    (", core-data: {version-info: Info.plist}", "the migration has no file `Info.plist`"),
    (", core-data: {version-info: up.sql}", "not a property list"),
    (", core-data: {version-info: VersionInfo.plist, version: Notes 4}", "the model has no version"),
    (", core-data: {}", "core-data needs the key `version-info`"),
    (", core-data: {versioninfo: a}", "unknown key `versioninfo` in core-data; did you mean `version-info`?"),
  ])
  func models(_ arguments: String, _ message: String) throws {
    let result = try run("SELECT 1;", arguments)
    #expect(result.error.contains(message), "\(result.error)")
  }

  @Test func modelsThatAreNone() throws {
    let versions = "NSManagedObjectModel_VersionHashes"
    func said(_ key: String, _ value: PropertyListValue?) throws -> String {
      let info = try CoreDataStore.versionInfo { $0[key] = value }
      return try run("SELECT 1;", Self.coreData, versionInfo: info).error
    }
    let other = PropertyListValue.dictionary(CoreDataStore.hashes(["Recipe": 1]))
    #expect(try said(versions, ["Notes 2": other]).contains("has no entity in common"))
    let short = try said(versions, ["Notes 2": ["Note": .data([1])]])
    #expect(short.contains("have no hashes of 32 bytes"))
    #expect(try said(versions, nil).contains("is not the VersionInfo.plist"))
    #expect(try said("NSManagedObjectModel_CurrentVersionName", nil).contains("name it with `version`"))
    let damaged = try CoreDataStore.sql() + "UPDATE Z_METADATA SET Z_PLIST = x'0102';"
    #expect(try run("SELECT 1;", Self.coreData, store: damaged).error.contains("metadata is corrupt"))
  }

  @Test func theWayBackNamesTheModelToo() throws {
    try Lab.with { lab in
      try lab.database(Lab.oldDatabase, try CoreDataStore.sql())
      try lab.baseline(0)
      try lab.migration("0001_test/VersionInfo.plist", try CoreDataStore.versionInfo())
      func step(_ coreData: String) throws {
        try lab.migration(
          "0001_test/migration.yaml",
          """
          steps:
            - sql:
                database: notes
                up: ALTER TABLE ZNOTE ADD COLUMN ZCOLOUR VARCHAR;
                down: ALTER TABLE ZNOTE DROP COLUMN ZCOLOUR;
                core-data: {version-info: VersionInfo.plist\(coreData)}

          """)
      }
      try step("")
      expectFailure("after it with `down-version`") { try lab.catalog() }
      try step(", down-version: Notes")
      try lab.migrate()
      #expect(try metadata(lab)["NSStoreModelVersionHashes"] == .dictionary(CoreDataStore.second))
      try lab.rollback(down: true)
      #expect(try metadata(lab)["NSStoreModelVersionHashes"] == .dictionary(CoreDataStore.first))
      #expect(try lab.query(Lab.oldDatabase, "SELECT * FROM ZNOTE").first?.count == 5)
    }
  }

  /// Tables of these names alone make no store, and other databases are not looked at.
  @Test func whatIsNoStore() throws {
    let store = "CREATE TABLE Z_METADATA (a); CREATE TABLE Z_PRIMARYKEY (a);"
    #expect(try run("CREATE TABLE t (a);", store: store).error == "no error")
    #expect(
      try run("CREATE TABLE t (a);", Self.coreData, store: store).error.contains("is not a Core Data store"))
  }

  @Test func archivesInAStore() throws {
    try Lab.with { lab in
      let archiver = NSKeyedArchiver(requiringSecureCoding: false)
      archiver.encode(["a"] as NSArray, forKey: NSKeyedArchiveRootObjectKey)
      archiver.finishEncoding()
      let archive = archiver.encodedData.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      try lab.database(
        Lab.oldDatabase, try CoreDataStore.sql() + "UPDATE ZNOTE SET ZBODY = x'\(archive)' WHERE Z_PK = 1;")
      try lab.run("files.unarchive: {database: notes, table: ZNOTE, column: ZBODY}")
      let found = try lab.query(Lab.oldDatabase, "SELECT ZBODY FROM ZNOTE ORDER BY Z_PK")
      #expect(found == [["ZBODY": #"["a"]"#], ["ZBODY": nil]])
      #expect(try metadata(lab) == CoreDataStore.metadata)
    }
  }
}
