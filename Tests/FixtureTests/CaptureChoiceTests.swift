import AppStores
import DrydockErrors
import DrydockTesting
import Foundation
import TestSupport
import Testing

@Suite("What is chosen is made up in a captured fixture") struct CaptureChoiceTests {
  private let sandbox: CaptureSandbox
  init() throws { sandbox = try CaptureSandbox() }

  private static let people = """
    CREATE TABLE person (email TEXT PRIMARY KEY, name TEXT, phone INTEGER, born TEXT);
    INSERT INTO person VALUES ('Ada.Lovelace@example.com', 'Ada Lovelace', 5550123456, '1815-12-10');
    INSERT INTO person VALUES ('grace@example.com', 'Grace Hopper', 5550654321, '1906-12-09');
    CREATE TABLE note (id INTEGER PRIMARY KEY, owner TEXT REFERENCES person (email), body TEXT);
    INSERT INTO note VALUES (1, 'Ada.Lovelace@example.com', 'ADA LOVELACE wrote to grace@example.com, 5550123456');
    """

  @Test("Columns and keys: the same value by the same one, in its shape, wherever it stands")
  func columns() throws {
    try sandbox.database(Self.people)
    try sandbox.settings([
      "dataSchemaVersion": 3, "lastUser": "ada.lovelace@example.com", "nick": "Countess 2", "count": 12,
    ])
    try sandbox.write("Documents/grace@example.com.txt", "Dear Grace Hopper,\nCountess 2 was here.\n")
    (sandbox.options.columns, sandbox.options.keys) = (
      ["person.email", "PERSON.name", "person.phone"], ["nick"]
    )
    let report = try sandbox.capture(hiding: [
      "Ada.Lovelace@example.com", "grace@example.com", "Ada Lovelace", "Grace Hopper", "5550123456",
      "5550654321", "Countess 2",
    ])
    let built = try sandbox.built()
    let rows = try sandbox.rows(
      "SELECT email, name, phone, body FROM note JOIN person ON owner = email",
      in: built)
    #expect(rows.count == 1, "the reference holds")
    let texts = rows.first?.compactMap { String.fromDatabaseValue($0) } ?? []
    try #require(texts.count == 3)
    #expect(
      texts[0].wholeMatch(of: #/[A-Z][a-z]{2}\.[A-Z][a-z]{7}@[a-z]{7}\.[a-z]{3}/#) != nil, "\(texts[0])")
    #expect(texts[1].wholeMatch(of: #/[A-Z][a-z]{2} [A-Z][a-z]{7}/#) != nil, "\(texts[1])")
    let phone = rows.first.flatMap { Int64.fromDatabaseValue($0[2]) } ?? 0
    #expect("\(phone)".count == 10)
    #expect(texts[2].hasPrefix(texts[1].uppercased() + " wrote to "))
    #expect(texts[2].hasSuffix(", \(phone)"))
    let settings = try sandbox.settings()
    #expect(settings.contains("lastUser: \"\(texts[0].lowercased())\""))
    #expect(settings.contains("count: 12"))
    let replaced = Dictionary(uniqueKeysWithValues: report.replaced.map { ($0.place, $0) })
    #expect(replaced["Documents/a.sqlite: person.name"]?.chosen == 2)
    #expect(replaced["Documents/a.sqlite: note.body"]?.others == 1)
    #expect(replaced["Library/Preferences/com.example.notes.plist: nick"]?.chosen == 1)
  }

  @Test("Two captures make up other values; equal secrets are equal in one")
  func keyed() throws {
    try sandbox.settings([
      "dataSchemaVersion": 3, "auth_token": "canary-0123456789", "password": "canary-0123456789",
    ])
    try sandbox.capture("one")
    try sandbox.capture("two")
    func values(_ name: String) throws -> [String] {
      try sandbox.settings(of: name).split(separator: "\n")
        .filter { !$0.hasPrefix("dataSchemaVersion") }.map { String($0.drop { $0 != " " }) }
    }
    #expect(Set(try values("one")).count == 1)
    #expect(Set(try values("one") + values("two")).count == 2)
  }

  @Test(
    "A name or a pattern that matches nothing is refused: what it was to replace would stay",
    arguments: [
      ("emial", [], [], "has a key emial"), ("email", ["*.md"], [], "matches *.md"),
      ("email", [], ["Documents/Draft"], "matches Documents/Draft"),
      ("email", ["*.txt"], ["Documents/Drafts"], nil),
      ("phone", [], [], nil),
    ] as [(String, [String], [String], String?)])
  func unknownNames(_ key: String, _ files: [String], _ dropped: [String], _ message: String?) throws {
    try sandbox.settings(["dataSchemaVersion": 3, "account": ["email": "grace@example.com"]])
    try sandbox.write("Documents/Drafts/x.txt", "phone: 5550100\n")
    (sandbox.options.keys, sandbox.options.files, sandbox.options.dropped) = ([key], files, dropped)
    guard let message else { return _ = try sandbox.capture() }
    let error = #expect(throws: DrydockError.self) { try sandbox.capture() }
    #expect(error?.code == .usage && error?.message.contains(message) == true, "\(String(describing: error))")
    #expect(!FileManager.default.fileExists(atPath: sandbox.directory("Fixtures/made")))
  }

  @Test("A file's whole content; what is dropped is not there")
  func files() throws {
    try sandbox.write("Documents/diary.md", "# Dear diary\n\nToday I met Grace.\n")
    try sandbox.write("Documents/Photos/a.jpg", [0xFF, 0xD8, 0, 1, 2, 3, 4, 200, 201])
    try sandbox.write("Documents/Drafts/Grace Hopper/x.txt", "canary-dropped")
    (sandbox.options.files, sandbox.options.dropped) = (["*.md", "*.jpg"], ["Documents/Drafts"])
    let report = try sandbox.capture(hiding: ["Dear diary", "Today I met Grace.", "canary-dropped"])
    let text = try sandbox.text("container/Documents/diary.md")
    #expect(
      text.wholeMatch(of: #/# [A-Z][a-z]{3} [a-z]{5}\n\n[A-Z][a-z]{4} [A-Z] [a-z]{3} [A-Z][a-z]{4}\.\n/#)
        != nil, "\(text)")
    #expect(
      try TreeListing(sandbox.directory("Fixtures/made"))["container/Documents/Photos/a.jpg"]?.size == 9)
    #expect(report.dropped.map(\.path) == ["Documents/Drafts"])
    #expect(report.binaries == [])
  }

  @Test(
    "What cannot be replaced or looked into stops the capture, says where and what to do, and leaves nothing")
  func refusals() throws {
    // A chosen word that is also a table's name, a key, a file's name.
    try sandbox.database("CREATE TABLE groceries (x TEXT); INSERT INTO groceries VALUES ('Groceries')")
    sandbox.options.columns = ["groceries.x"]
    let refusal = try sandbox.refusal()
    #expect(
      refusal.contains("a name in the schema of Documents/a.sqlite `groceries` contains a value"),
      "\(refusal)"
    )
    #expect(refusal.contains("keep groceries"))
    sandbox.options.kept = ["groceries"]
    try sandbox.capture("kept")
    #expect(
      try !sandbox.text("container/Documents/a.sqlite.sql", of: "kept").contains("Groceries"),
      "the value itself is made up")
    try RawFiles.remove(Array(sandbox.directory("Fixtures/kept").utf8))

    sandbox.options = CaptureOptions()
    try sandbox.write("Documents/x.gz", [0x1F, 0x8B, 0x08, 0, 1, 2, 3])
    #expect(try sandbox.refusal().contains("Documents/x.gz: data in gzip, which cannot be searched"))
    sandbox.options.kept = ["*.gz"]
    #expect(try sandbox.capture("kept").binaries == ["Documents/x.gz"])
    try RawFiles.remove(Array(sandbox.directory("Fixtures/kept").utf8))

    sandbox.options = CaptureOptions()
    try sandbox.write(
      "Documents/x.gz", [0, 1, 2] + Array("ghp_16C7e42F292c6912E7710c838347Ae178B4a".utf8) + [0, 255])
    let token = try sandbox.refusal()
    #expect(token.contains("Documents/x.gz: binary data in which something looks like a secret"), "\(token)")
    #expect(!token.contains("16C7e42F"))
    // A kept file with a secret that is known is refused all the same.
    try sandbox.settings(["dataSchemaVersion": 3, "auth_token": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"])
    sandbox.options.kept = ["*.gz"]
    let known = try sandbox.refusal()
    #expect(known.contains("Documents/x.gz: binary data with a secret of Library/Preferences"), "\(known)")
    #expect(!known.contains("16C7e42F"))
    sandbox.options.dropped = ["*.gz"]
    try sandbox.capture("kept")
    try RawFiles.remove(Array(sandbox.directory("Fixtures/kept").utf8))

    // A text in UTF-16, with a known secret or without.
    let wide = "canary-wide-1".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    try sandbox.write("Documents/wide.txt", [0xFF, 0xFE] + wide)
    #expect(try sandbox.refusal().contains("Documents/wide.txt: data in UTF-16, which cannot be searched"))
    try sandbox.settings(["dataSchemaVersion": 3, "auth_token": "canary-wide-1"])
    #expect(try sandbox.refusal().contains("Documents/wide.txt: binary data with a secret of Library"))
    try RawFiles.remove(Array(sandbox.directory("Notes/Documents/wide.txt").utf8))

    // What only the last look at every byte can find: our own words.
    try sandbox.settings(["dataSchemaVersion": 3, "mood": "Captured in use"])
    sandbox.options.keys = ["mood"]
    let last = try sandbox.refusal()
    #expect(last.contains("fixture.yaml:2: still contains a value of Library/Preferences"), "\(last)")
    #expect(!last.lowercased().contains("captured in use"))

    sandbox.options.keys = []
    sandbox.options.columns = ["groceries.y"]
    #expect(try sandbox.refusal().contains("has a column groceries.y"))
    sandbox.options.columns = []
    try sandbox.vault([])
    #expect(try sandbox.refusal(withKeys: false).contains("the device key"))
    sandbox.options.dropped.append("Library/Vault")
    try sandbox.capture("kept", withKeys: false)
    #expect(throws: DrydockError.self) { try sandbox.capture("kept", withKeys: false) }
    #expect(throws: DrydockError.self) { try sandbox.capture("../kept", withKeys: false) }
  }

  @Test("Numbers with a fraction, large integers and Booleans, in settings, JSON and SQL")
  func numbers() throws {
    try sandbox.settings([
      "dataSchemaVersion": 3, "latitude": 48.858844, "small": 1.25e-7, "premium": true, "balance": -1234.5,
      "largest": Int64.max, "place": ["lat": 52.520008, "isHome": false], "kept": 0.25, "flag": true,
      "note": "at 48.858844, not at 148.8588441",
    ])
    try sandbox.write(
      "Documents/a.json",
      #"{"latitude": 52.5200080, "premium": false, "largest": 9223372036854775806, "none": [null], "x": 1.5}"#
    )
    try sandbox.database(
      """
      CREATE TABLE visit (id INTEGER PRIMARY KEY, lat REAL, paid BOOLEAN CHECK (paid IN (0, 1)), data TEXT);
      INSERT INTO visit VALUES (1, 48.858844, 1, '{"lat": 1.25, "isHome": true}'), (2, 7.0, 0, NULL), (3, 1e-9, NULL, '[]');
      """)
    sandbox.options.keys = ["latitude", "small", "premium", "balance", "largest", "place", "none"]
    sandbox.options.columns = ["visit.lat", "visit.paid", "visit.data"]
    let report = try sandbox.capture()
    let originals = ["1234.5", "9223372036854775807", "9223372036854775806", "52.520008"]
    let leaks = try sandbox.leaks(originals, report).filter { !$0.contains(" in Base64 ") }
    #expect(leaks == [])
    let settings = try sandbox.settings()
    #expect(!settings.contains("at 48.858844") && !settings.contains(": 48.858844"), "\(settings)")
    #expect(settings.contains("premium: false") && settings.contains("isHome: true"), "\(settings)")
    #expect(settings.contains("kept: 0.25") && settings.contains("flag: true"))
    #expect(settings.contains(#/small: \d(\.\d{1,2})?e-07/#) && !settings.contains("1.25e-07"), "\(settings)")
    #expect(
      settings.contains(#/latitude: \d{2}\.\d{1,6}\n/#) && settings.contains(#/balance: -\d{4}(\.\d)?\n/#))
    let json = try sandbox.text("container/Documents/a.json")
    #expect(json.contains(#/^\{"latitude": \d{2}\.\d{7}, "premium": true, /#), "\(json)")
    #expect(json.hasSuffix(#""none": [null], "x": 1.5}"#))
    let rows = try sandbox.rows(
      "SELECT typeof(lat), lat, paid, data FROM visit ORDER BY id",
      in: sandbox.built())
    #expect(rows.map { String.fromDatabaseValue($0[0]) } == ["real", "real", "real"])
    #expect(rows.map { Int.fromDatabaseValue($0[2]) } == [0, 1, nil], "SQLite's Booleans are Booleans again")
    let data = try #require(String.fromDatabaseValue(rows[0][3]))
    #expect(data.contains("\"isHome\": false") && !data.contains("1.25"), "\(data)")
    let latitudes = rows.compactMap { Double.fromDatabaseValue($0[1]) }
    #expect(latitudes[1] != 7 && latitudes[2] != 1e-9 && latitudes[2] < 1e-8)
    // The same number by the same one.
    #expect(settings.contains("latitude: \(latitudes[0])\n"), "\(settings) \(latitudes)")
    // In a text it has as many digits as before, and may end in 0.
    let inText = settings.firstMatch(of: #/at ([0-9.]+), not at 148\.8588441/#).flatMap { Double($0.1) }
    #expect(inText == latitudes[0])
  }

  @Test("A chosen integer that fills its type has another one", arguments: 1...10)
  func filling(_ round: Int) throws {
    try sandbox.write(
      "shared_prefs/a.xml",
      "<?xml version='1.0' encoding='utf-8' standalone='yes' ?>\n<map>\n<int name=\"count\" value=\"2147483647\" />"
        + "<float name=\"ratio\" value=\"48.85\" /><boolean name=\"flag\" value=\"true\" /></map>\n")
    sandbox.configuration.layout = .android
    sandbox.configuration.versionMarkers = []
    sandbox.options.version = 3
    sandbox.options.keys = ["count", "ratio", "flag"]
    try sandbox.capture()
    let settings = try sandbox.text("container/shared_prefs/a.xml.yaml")
    #expect(settings.contains(#/count: !int \d{9,10}\n/#) && !settings.contains("2147483647"), "\(settings)")
    #expect(settings.contains(#/ratio: !float \d\d\.\d/#) && !settings.contains("48.85"), "\(settings)")
    #expect(settings.contains("flag: false"), "\(settings)")
  }

  @Test("A chosen file is made up although it is a settings file or a database")
  func stores() throws {
    try sandbox.settings(["city": "Canaryville", "ratio": 0.3125, "on": true], in: "Documents/b.plist")
    sandbox.configuration.defaults = ["b": "Documents/b.plist"]
    try sandbox.database("CREATE TABLE t (x TEXT, y REAL); INSERT INTO t VALUES ('canary words', 0.8125)")
    sandbox.options.files = ["Documents/b.plist", "*.sqlite"]
    try sandbox.capture(hiding: ["Canaryville", "0.3125", "canary words", "0.8125"])
    #expect(try sandbox.text("container/Documents/b.plist.yaml").contains("\"on\": false"))
  }

  @Test("A chosen word that is also one of SQL or of fixture.yaml does not stop the capture")
  func formatWords() throws {
    try sandbox.database("CREATE TABLE task (x TEXT); INSERT INTO task VALUES ('Create'), ('version')")
    sandbox.options.columns = ["task.x"]
    try sandbox.capture()
    let sql = try sandbox.text("container/Documents/a.sqlite.sql")
    #expect(sql.contains("INSERT INTO") && !sql.contains("'Create'") && !sql.contains("version"))
  }

  @Test("A database that SQLite cannot open, and a version that nothing says")
  func odd() throws {
    try sandbox.write(
      "Documents/bad.sqlite", Array("SQLite format 3\0".utf8) + [UInt8](repeating: 7, count: 4080))
    let refusal = try sandbox.refusal()
    #expect(refusal.contains("Documents/bad.sqlite") && refusal.contains("leave"), "\(refusal)")
    try RawFiles.remove(Array(sandbox.directory("Notes/Documents/bad.sqlite").utf8))
    try sandbox.settings(["theme": "dark"])
    #expect(try sandbox.refusal().contains("give the version"))
    sandbox.options.version = 4
    #expect(try sandbox.capture().isUnmarked)
    #expect(try Fixture.load(sandbox.directory("Fixtures/made")).version == 4)
  }

  @Test(
    "A column whose rule allows no other value cannot be made up: nothing is written, and the rule is reported"
  )
  func rules() throws {
    try sandbox.database("CREATE TABLE plan(name TEXT CHECK (name IN ('y'))); INSERT INTO plan VALUES ('y')")
    sandbox.options.columns = ["plan.name"]
    let refusal = try sandbox.refusal()
    #expect(refusal.contains("cannot be built: the SQL fails: CHECK constraint failed"), "\(refusal)")
    #expect(refusal.contains("container/Documents/a.sqlite.sql") && refusal.contains("leave"), "\(refusal)")
  }

  /// A letter is replaced by one of 26: one capture of thirteen would fail, and with five attempts one of 370,000.
  @Test("Values that violate a rule of the schema are made up again", arguments: 1...40)
  func again(_ round: Int) throws {
    try sandbox.database(
      "CREATE TABLE plan(name TEXT CHECK (name NOT IN ('a', 'b'))); INSERT INTO plan VALUES ('y')")
    sandbox.options.columns = ["plan.name"]
    #expect(try sandbox.capture().version == 3)
  }
}
