import FileSystem
import Formats
import Foundation
import GRDB
import Testing

@Suite struct UnarchiveTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let date = Date(timeIntervalSinceReferenceDate: 700_000_000.5)

  private func archive(
    _ object: Any, _ format: PropertyListSerialization.PropertyListFormat = .binary
  ) -> [UInt8] {
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    archiver.outputFormat = format
    archiver.encode(object, forKey: NSKeyedArchiveRootObjectKey)
    archiver.finishEncoding()
    return [UInt8](archiver.encodedData)
  }

  private func note(_ title: String) -> [UInt8] {
    archive(["title": title, "tags": ["a", "b"], "edited": Self.date as NSDate] as NSDictionary)
  }

  private func json(_ title: String) -> String {
    #"{"edited":"2023-03-08T20:26:40.5Z","tags":["a","b"],"title":"\#(title)"}"#
  }

  /// A file has the JSON, indented.
  private func expectFile(_ path: ContainerPath, _ title: String) throws {
    let text = try lab.text(path)
    #expect(text.hasPrefix("{\n  \"edited\": ") && text.hasSuffix("\n}\n"))
    #expect(text.replacing(/\s/, with: "") == json(title))
  }

  @Test func aFileInPlaceAndUnderAnotherName() throws {
    try lab.write("Documents/note", note("one"))
    try lab.write("Documents/other.archive", note("two"))
    try lab.run(
      "files.unarchive: {path: Documents/note}",
      "files.unarchive: {path: Documents/other.archive, to: Documents/new/other.json}")
    try expectFile("Documents/note", "one")
    try expectFile("Documents/new/other.json", "two")
    #expect(try !lab.exists("Documents/other.archive"))
  }

  @Test func allFilesOfAPatternKeepTheirMode() throws {
    for name in ["a.note", ".b.note", "c"] {
      try lab.write(try ContainerPath("Documents/notes/" + name), note(name))
    }
    let path = lab.path("Documents/notes/a.note")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    try lab.run("files.unarchive: {path: 'Documents/notes/*.note', extension: .json}")
    let names = try lab.look { try $0.children(of: "Documents/notes").map(\.nameString) }
    #expect(names == [".b.json", "a.json", "c"])
    #expect(try lab.tree()["Documents/notes/a.json"]?.mode == 0o600)
  }

  @Test func aPropertyListKeepsItsFormat() throws {
    let object: NSDictionary = ["a": 5, "date": Date(timeIntervalSinceReferenceDate: 5), "none": NSNull()]
    try lab.write("binary", archive(object))
    try lab.write("xml", archive(object, .xml))
    try lab.write("list", archive([NSNull()] as NSArray))
    try lab.run("files.unarchive: {path: binary, as: plist}", "files.unarchive: {path: xml, as: plist}")
    let expected: PropertyListDictionary = [
      "a": 5, "date": .date(Date(timeIntervalSinceReferenceDate: 5)),
    ]
    for (path, format) in [("binary", PropertyListFile.Format.binary), ("xml", .xml)] {
      let file = try PropertyListFile(bytes: try lab.bytes(ContainerPath(path)))
      #expect(file == PropertyListFile(format: format, root: expected))
    }
  }

  @Test(arguments: [
    ("{path: z, if-missing: fail}", "0001_test.yaml:2:5: files.unarchive: no file matches `z`"),
    ("{path: text}", "`text` cannot be unarchived: not a keyed archive: not a property list"),
    ("{path: note, to: text}", "the target `text` of `note` exists already: say `if-exists: keep`"),
    ("{path: list, as: plist}", "a property list cannot contain null in a list"),
    ("{path: Library/Application Support/.drydock/history.json, if-missing: fail}", "no file matches"),
    ("{path: note, to: Library/Application Support/.drydock/x}", "where Drydock keeps its history"),
  ])
  func failuresChangeNothing(_ step: String, _ message: String) throws {
    let data = note("one")
    try lab.write("note", data)
    try lab.write("list", archive([NSNull()] as NSArray))
    try lab.write("text", "hello")
    expectFailure(message) { try lab.run("files.unarchive: \(step)") }
    #expect(try lab.bytes("note") == data)
  }

  @Test func whatIsNoArchiveIsKeptOrDeleted() throws {
    try lab.write("text", "hello")
    try lab.write("other", "hello")
    let notes = try lab.run(
      "files.unarchive: {path: text, unmapped: keep}", "files.unarchive: {path: other, unmapped: delete}",
      "files.unarchive: {path: none}")
    #expect(notes.count == 3)
    #expect(notes.first?.contains("`text`: not a keyed archive") == true)
    #expect(try lab.exists("text") && !lab.exists("other"))
  }

  @Test func settings() throws {
    let value = PropertyListValue.data(note("one"))
    try lab.set(["a": value, "b": value, "c": value, "d": value, "n": 4])
    let notes = try lab.run(
      "files.unarchive: {key: a}",
      "files.unarchive: {key: b, to: e, store: data, dates: seconds-since-2001}",
      "files.unarchive: {key: c, as: plist}", "files.unarchive: {key: d, to: a, if-exists: keep}",
      "files.unarchive: {key: n, unmapped: keep}", "files.unarchive: {key: z}")
    let seconds = json("one").replacing("\"2023-03-08T20:26:40.5Z\"", with: "700000000.5")
    #expect(
      try lab.settings() == [
        "a": .string(json("one")), "e": .data(Array(seconds.utf8)), "d": value, "n": 4,
        "c": .dictionary(["title": "one", "tags": .array(["a", "b"]), "edited": .date(Self.date)]),
      ])
    #expect(notes.count == 3)
    #expect(notes[1].contains("the setting `n`: it is neither data nor text: left unchanged"))
  }

  /// An error says where it is, and no value.
  @Test func errorsHoldNoValues() throws {
    let secret: NSDictionary = [NSNumber(value: 4): "hunter2-hunter2-hunter2"]
    try lab.set(["session": .data(archive(secret))])
    let error = failure { try lab.run("files.unarchive: {key: session}") }
    #expect(error.text.contains("the setting `session` cannot be unarchived: object 1 (`NSDictionary`) of"))
    #expect(!error.text.contains("hunter2"))
  }

  @Test(arguments: [
    "path: one", "path: one, to: new/place", "path: one, to: two, if-exists: replace",
    "path: two, unmapped: delete",
    "path: '*e', extension: json", "path: two, unmapped: keep", "key: a", "key: a, to: b, as: plist",
  ])
  func whatWasThereComesBack(_ arguments: String) throws {
    let data = note("one")
    try lab.write("one", data)
    try lab.write("two", "two")
    try lab.set(["a": .data(data), "c": 1])
    try lab.expectComesBack("files.unarchive: {\(arguments)}")
  }

  @Test func whatTheAppWroteSinceStays() throws {
    try lab.write("one", note("one"))
    try lab.set(["a": .data(note("a"))])
    try lab.run("files.unarchive: {path: one}", "files.unarchive: {key: a}")
    try lab.write("one", "newer")
    try lab.set(["a": "newer"])
    let notes = try lab.revert()
    #expect(notes.count == 2, "\(notes)")
    #expect(try lab.text("one") == "newer")
    #expect(try lab.settings() == ["a": "newer"])
  }

  private func database(_ lab: Lab, _ schema: String, _ rows: [DatabaseValue]) throws {
    try lab.database(Lab.oldDatabase, schema)
    try lab.change(Lab.oldDatabase) { db in
      for (index, row) in rows.enumerated() {
        try db.execute(sql: "INSERT INTO note VALUES (?, ?)", arguments: [index + 1, row])
      }
    }
  }

  @Test(arguments: ["", " WITHOUT ROWID"]) func columns(_ kind: String) throws {
    let rows = [Data(note("one")).databaseValue, .null, Data(note("three")).databaseValue]
    try database(lab, "CREATE TABLE note (id INTEGER PRIMARY KEY, body BLOB)\(kind);", rows)
    try lab.run("files.unarchive: {database: notes, table: Note, column: body, where: 'id < 9 -- all'}")
    let found = try lab.query(Lab.oldDatabase, "SELECT id, body FROM note ORDER BY id")
    #expect(
      found == [
        ["id": 1, "body": json("one")], ["id": 2, "body": nil], ["id": 3, "body": json("three")],
      ])
  }

  @Test func columnsAsDataAndWithRemarks() throws {
    let rows = [Data(note("one")).databaseValue] + Array(repeating: "text".databaseValue, count: 8)
    try database(lab, "CREATE TABLE note (id INTEGER PRIMARY KEY, body BLOB);", rows)
    let arguments = "database: notes, table: note, column: body"
    let notes = try lab.run(
      "files.unarchive: {\(arguments), store: data, unmapped: keep}",
      "files.unarchive: {\(arguments), where: id > 99}")
    #expect(notes.count == 7)
    #expect(notes[0].contains("note.body in row 2: not a keyed archive"))
    #expect(notes[5].contains("note.body: 3 more notes of this kind"))
    #expect(notes[6].contains("no row of note has a value in body that `where` selects: skipped"))
    let found = try lab.query(Lab.oldDatabase, "SELECT body FROM note WHERE id = 1")
    #expect(found == [["body": Data(json("one").utf8)]])
  }

  @Test(arguments: [
    ("table: note, column: body", "note.body in row 2 cannot be unarchived: not a keyed archive"),
    ("table: nope, column: body", "2:47: the database notes has no table `nope`; did you mean `note`?"),
    ("table: note, column: boddy", "the table note has no column `boddy`; did you mean `body`?"),
    ("table: note, column: body, where: 'idd > 2'", "0001_test.yaml:2:74: no such column: idd"),
    ("table: note, column: body, where: '1); DELETE FROM note; --'", "multiple statements"),
    ("table: note, column: body, where: id > 9, if-missing: fail", "no row of note has a value in body"),
  ])
  func failedColumnsChangeNothing(_ arguments: String, _ message: String) throws {
    let data = Data(note("one"))
    let rows = [data.databaseValue, "text".databaseValue]
    try database(lab, "CREATE TABLE note (id INTEGER PRIMARY KEY, body BLOB);", rows)
    expectFailure(message) { try lab.run("files.unarchive: {database: notes, \(arguments)}") }
    let found = try lab.query(Lab.oldDatabase, "SELECT body FROM note ORDER BY id")
    #expect(found == [["body": data], ["body": "text"]])
  }
}
