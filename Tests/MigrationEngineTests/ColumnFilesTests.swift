import ContainerTransaction
import FileSystem
import Foundation
import GRDB
import TestSupport
import Testing

@testable import MigrationEngine

/// Values of a column that become files, and the other way round.
@Suite("Columns and files") struct ColumnFilesTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  static let photos = """
    CREATE TABLE photo (id INTEGER PRIMARY KEY, name TEXT, image, size INTEGER);
    INSERT INTO photo VALUES (1, 'a', x'0001ff', 3), (2, 'b', 'text', 4), (3, 'c', NULL, 0), (4, 'd', x'', 0);
    """

  private func with<T>(
    _ step: String, sql: String = photos, setUp: (Lab) throws -> Void = { _ in },
    _ body: (inout StepLab) throws -> T
  ) throws -> T {
    try Lab.with { lab in
      try lab.database(Lab.oldDatabase, sql)
      try lab.write("Documents/taken.bin", "there")
      try setUp(lab)
      var test = try StepLab(lab, step)
      return try body(&test)
    }
  }

  private func rows(_ stage: StagedContainer, _ sql: String = "SELECT id, image FROM photo") throws
    -> [String]
  {
    try stage.readDatabase(at: Lab.oldDatabase) { db in
      try Row.fetchAll(db, sql: sql).map { row in row.databaseValues.map { "\($0)" }.joined(separator: "|") }
    }
  }

  private func files(_ stage: StagedContainer) throws -> [String] {
    try stage.children(of: "Library/Images").map { "\($0.nameString) \(try stage.read($0))" }
  }

  private static func export(to path: String = "'Library/Images/' || id || '.bin'", _ rest: String) -> String
  {
    "files.export-column: {database: notes, table: photo, column: image, to: \"\(path)\", \(rest)}"
  }

  @Test("Each value becomes a file, and the revert gives the values back")
  func export() throws {
    let expected = [
      "path": ["1|Library/Images/1.bin", "2|Library/Images/2.bin", "3|NULL", "4|Library/Images/4.bin"].map {
        $0.replacing(/\|(L.*)/) { "|\"\($0.1)\"" }
      }, "null": ["1|NULL", "2|NULL", "3|NULL", "4|NULL"],
    ]
    for replacement in ["path", "null", "keep"] {
      try with(Self.export("replace-with: \(replacement)")) { test in
        let before = try rows(test.stage)
        #expect(try test.apply() == [])
        #expect(try files(test.stage) == ["1.bin [0, 1, 255]", "2.bin [116, 101, 120, 116]", "4.bin []"])
        #expect(try rows(test.stage) == expected[replacement] ?? before)
        #expect(try test.revert() == [])
        #expect(try rows(test.stage) == before)
        #expect(try test.stage.status(of: "Library/Images") == nil)
      }
    }
  }

  @Test("What the app changed since is moved back, or stays with a note")
  func revertOfChanges() throws {
    try with(Self.export("replace-with: path")) { test in
      _ = try test.apply()
      try test.write("Library/Images/1.bin", "newer")
      try test.stage.remove("Library/Images/2.bin")
      try test.stage.writeDatabase(at: Lab.oldDatabase) {
        try $0.execute(sql: "UPDATE photo SET image = 'own' WHERE id = 4")
      }
      #expect(
        try test.revert() == [
          "`Library/Images/2.bin` does not exist: row 2 is left unchanged",
          "row 4 was changed since: left unchanged, and `Library/Images/4.bin` too",
        ])
      #expect(
        try rows(test.stage, "SELECT CAST(image AS TEXT) FROM photo WHERE id < 3") == [
          "\"newer\"", "\"Library/Images/2.bin\"",
        ])
      #expect(try test.stage.text("Library/Images/4.bin") == "")
      #expect(throws: StepFailure.self) { try test.revert(withPriorValues: false) }
    }
  }

  @Test("What exists is kept, replaced or refused; the same content is no conflict")
  func existing() throws {
    func with(
      _ ifExists: String, setUp: (Lab) throws -> Void = { _ in }, _ body: (inout StepLab) throws -> Void
    ) throws {
      let rest = "where: id = 1, replace-with: null\(ifExists)"
      try self.with(Self.export(to: "'Documents/taken.bin'", rest), setUp: setUp, body)
    }
    try with("") { test in expectFailure("exists already: say `if-exists") { try test.apply() } }
    try with(", if-exists: keep") { test throws in
      #expect(try test.apply() == ["`Documents/taken.bin` exists already: kept, and row 1 too"])
      #expect(try rows(test.stage).first?.contains("NULL") == false)
      #expect(try test.stage.text("Documents/taken.bin") == "there")
    }
    try with(", if-exists: replace") { test throws in
      #expect(try test.apply() == [])
      #expect(try test.stage.read("Documents/taken.bin") == [0, 1, 255])
    }
    try with("", setUp: { try $0.write("Documents/taken.bin", [0, 1, 255]) }) { test throws in
      #expect(try test.apply() == [])
      #expect(try rows(test.stage).first == "1|NULL")
      #expect(try test.revert() == [])
      #expect(try test.stage.read("Documents/taken.bin") == [0, 1, 255])
    }
  }

  @Test("A replaced file returns with the rollback and with the revert")
  func replaced() throws {
    try lab.database(Lab.oldDatabase, Self.photos)
    try lab.write("Documents/1.bin", "old")
    try lab.baseline(0)
    let before = try lab.tree()
    let step = Self.export(to: "'Documents/' || id || '.bin'", "replace-with: path, if-exists: replace")
    try lab.run(step)
    #expect(
      try lab.column("SELECT image FROM photo WHERE id = 1", in: Lab.oldDatabase) == ["Documents/1.bin"])
    try lab.rollback()
    #expect(try lab.tree().differences(from: before) == [])
    #expect(try lab.expectComesBack(step))
  }

  @Test("A failure in the middle leaves the container as it was")
  func failureInTheMiddle() throws {
    try lab.database(
      Lab.oldDatabase,
      Self.photos
        + "CREATE TRIGGER no BEFORE UPDATE ON photo WHEN old.id = 4 BEGIN SELECT RAISE(ABORT, 'not this row'); END;"
    )
    try lab.baseline(0)
    let before = try lab.tree()
    expectFailure("photo.image: not this row") { try lab.run(Self.export("replace-with: null")) }
    #expect(try lab.tree().differences(from: before) == [])
  }

  @Test(
    "Paths that no step may write, and values that are no files",
    arguments: [
      ("'../x'", "the expression gives no path"), ("'/etc/passwd'", "the expression gives no path"),
      ("'a/../../x'", "the expression gives no path"), ("''", "gives the container itself"),
      ("NULL", "`to` gives NULL"),
      ("x'61'", "gives data, not a path"), ("'a'", "the same path as for row"),
      ("'Documents/database.sqlite'", "`Documents/database.sqlite` is a database"),
      ("'Documents/database.sqlite-wal'", "`Documents/database.sqlite-wal` is a database"),
      ("'Library/Application Support/.drydock/history.json'", "Drydock keeps its history"),
      ("'Library/Application Support/.drydock/x'", "Drydock keeps its history"),
      ("'Library/Preferences/com.example.notes.plist'", "is a settings file"),
      ("'Library/Vault/vault.age'", "is the vault"),
      ("'Documents/taken.bin/' || id", "a file exists at this path"),
      ("'Documents/' || nosuch", "no such column: nosuch"),
      ("'a', 'b'", "syntax error|row value|sub-select|expected"),
      ("load_extension('x')", "not authorized|no such function"),
      ("'x' || datetime('now')", "depends on the current time"),
      ("'a' ) FROM photo; DROP TABLE photo; --", "statement"),
    ])
  func paths(_ expression: String, _ words: String) throws {
    try lab.database(Lab.oldDatabase, Self.photos)
    try lab.write("Documents/taken.bin", "there")
    try lab.baseline(0)
    let before = try lab.tree()
    for ifExists in ["fail", "replace"] {
      let error = lab.failing(Self.export(to: expression, "replace-with: null, if-exists: \(ifExists)"))
      #expect(words.split(separator: "|").contains { error.contains($0) }, "\(error)")
      #expect(error.hasPrefix("0001_test.yaml:2:"), "\(error)")
    }
    #expect(try lab.tree().differences(from: before) == [])
  }

  @Test(
    "Rows that cannot become files, and tables that are none",
    arguments: [
      ("table: photo, column: size", photos, "in row 1: the value is a number"),
      ("table: phot, column: image", photos, "no table `phot`; did you mean `photo`?"),
      ("table: photo, column: imag", photos, "no column `imag`; did you mean `image`?"),
      ("table: photo, column: image, where: 1 +", photos, "syntax error"),
      ("table: photo, column: image, where: id = 3, if-missing: fail", photos, "no row of photo has a value"),
      ("table: t, column: a", "CREATE TABLE t (a TEXT PRIMARY KEY) WITHOUT ROWID;", "has no row IDs"),
      (
        "table: t, column: a", "CREATE TABLE t (a NOT NULL); INSERT INTO t VALUES ('y');",
        "NOT NULL constraint"
      ),
      (
        "table: t, column: a",
        "PRAGMA encoding = 'UTF-16le'; CREATE TABLE t (a); INSERT INTO t VALUES ('y');",
        "stores text as UTF-16"
      ),
    ])
  func otherRefusals(_ arguments: String, _ sql: String, _ message: String) throws {
    try lab.database(Lab.oldDatabase, sql)
    let rest = "to: \"'x'\", replace-with: null"
    lab.expectFailing("files.export-column: {database: notes, \(arguments), \(rest)}", message)
  }

  private static let paths = """
    CREATE TABLE photo (id INTEGER PRIMARY KEY, image);
    INSERT INTO photo VALUES (1, 'Documents/one.bin'), (2, NULL), (3, 'Documents/none.bin');
    """
  private static let load =
    "files.import-column: {database: notes, table: photo, column: image, from: image, files: "

  @Test("Files become values, and the revert makes them files again", arguments: ["remove", "keep"])
  func load(_ after: String) throws {
    try lab.database(Lab.oldDatabase, Self.paths)
    try lab.write("Documents/one.bin", "one")
    chmod(lab.path("Documents/one.bin"), 0o640)
    try lab.baseline(0)
    let before = try lab.tree()
    let notes = try lab.run(Self.load + "\(after)}")
    expectOne(notes, end: "row 3: `Documents/none.bin` does not exist: skipped")
    let quoted = { try lab.column("SELECT quote(image) FROM photo", in: Lab.oldDatabase) }
    #expect(try quoted() == ["X'6F6E65'", "NULL", "'Documents/none.bin'"])
    #expect(try lab.exists("Documents/one.bin") == (after == "keep"))
    #expect(try lab.revert() == [])
    #expect(try quoted() == ["'Documents/one.bin'", "NULL", "'Documents/none.bin'"])
    // The file itself comes back, with its mode and times.
    let now = try lab.tree()
    #expect(now.differences(from: before).filter { $0.contains("one.bin") } == [])
  }

  @Test("What the app wrote since goes into the file, and what is in the way stays")
  func revertOfLoad() throws {
    let setUp = { (lab: Lab) throws in try lab.write("Documents/one.bin", "one") }
    try with(Self.load + "remove}", sql: Self.paths, setUp: setUp) { test in
      _ = try test.apply()
      try test.stage.writeDatabase(at: Lab.oldDatabase) {
        try $0.execute(sql: "UPDATE photo SET image = x'4e' WHERE id = 1")
      }
      #expect(try test.revert() == [])
      #expect(try test.stage.text("Documents/one.bin") == "N")
    }
    try with(Self.load + "remove}", sql: Self.paths, setUp: setUp) { test in
      _ = try test.apply()
      try test.write("Documents/one.bin", "other")
      #expect(try test.revert() == ["`Documents/one.bin` has another content: kept, and row 1 too"])
    }
  }

  @Test("Values that exist, text, and files that are missing or no files")
  func loadRules() throws {
    func outcome(_ arguments: String, _ from: String = "'Documents/taken.bin'") throws -> String {
      try with(
        "files.import-column: {database: notes, table: photo, column: image, where: id = 1, files: keep, from: \"\(from)\"\(arguments)}"
      ) { test in
        do {
          let notes = try test.apply()
          return
            (notes + (try rows(test.stage, "SELECT typeof(image) || hex(image) FROM photo WHERE id = 1")))
            .joined(separator: "; ")
        } catch let failure as StepFailure {
          return failure.message
        }
      }
    }
    #expect(try outcome("").contains("photo.image in row 1: the column has a value already: say `if-exists"))
    #expect(
      try outcome(", if-exists: keep")
        == "row 1: the column has a value already: kept, and `Documents/taken.bin` too; \"blob0001FF\"")
    #expect(try outcome(", if-exists: replace") == "\"blob7468657265\"")
    #expect(try outcome(", if-exists: replace, as: text") == "\"text7468657265\"")
    #expect(try outcome(", if-missing: fail", "'nowhere'").contains("`nowhere` is not in the container"))
    #expect(try outcome("", "'../x'").contains("the expression gives no path"))
    #expect(try outcome("", "'Documents/database.sqlite'").contains("is a database"))
    #expect(try outcome("", "NULL") == "\"blob0001FF\"")
  }

  @Test("A large value goes in and out in pieces")
  func large() throws {
    var random = SeededRandom(seed: 5)
    let bytes = random.bytes(1 << 16)
    var content = Data()
    // Each part begins with its number: no two are the same.
    for number in 0...(ColumnFiles.largeSize + 3_000_000) / bytes.count {
      content.append(contentsOf: [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)])
      content.append(contentsOf: bytes)
    }
    try lab.database(
      Lab.oldDatabase,
      "CREATE TABLE photo (id INTEGER PRIMARY KEY, image); INSERT INTO photo VALUES (1, NULL);")
    try content.write(to: URL(fileURLWithPath: lab.path("Documents/big.bin")))
    let file = "from: \"'Documents/big.bin'\", files: remove"
    try lab.run("files.import-column: {database: notes, table: photo, column: image, \(file)}")
    #expect(try lab.query(Lab.oldDatabase, "SELECT image FROM photo").first?[0] as Data? == content)
    #expect(try !lab.exists("Documents/big.bin"))
    try lab.migration("0002_b.yaml", step: Self.export(to: "'Documents/again.bin'", "replace-with: null"))
    try lab.migrate()
    #expect(try Data(contentsOf: URL(fileURLWithPath: lab.path("Documents/again.bin"))) == content)
  }

  @Test("`validate` finds errors in the expressions, where the migrations make the table")
  func validation() throws {
    let made =
      "sql: {database: notes, up: 'CREATE TABLE photo (id INTEGER PRIMARY KEY, image)', down: DROP TABLE photo}"
    try lab.migration(
      "0001_a.yaml",
      steps: [
        made,
        "files.export-column: {database: nots, table: photo, column: image, to: \"'x' ||\", replace-with: keep}",
        "files.export-column: {database: notes, table: photo, column: image, to: \"'x' || id\"}",
        "files.import-column: {database: notes, table: photo, column: image, from: image, files: burn}",
      ])
    let texts = try lab.problems()
    #expect(
      zip(
        texts,
        [
          "0001_a.yaml:3:37: drydock.yaml has no database `nots`",
          "0001_a.yaml:3:76: near \")\": syntax error",
          "0001_a.yaml:4:26: files.export-column needs the key `replace-with`",
          "0001_a.yaml:5:93: `files` of files.import-column is one of remove, keep",
        ]
      ).allSatisfy { $0.hasPrefix($1) } && texts.count == 4, "\(texts)")
    try lab.migration("0001_a.yaml", steps: [made, Self.export(to: "'x' || idd", "replace-with: keep")])
    expectOne(try lab.problems(), "0001_a.yaml:3:77: no such column: idd")
  }
}
