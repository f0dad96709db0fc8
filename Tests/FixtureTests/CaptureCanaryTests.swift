import AppStores
import Cryptography
import Formats
import Foundation
import GRDB
import TestSupport
import Testing

/// Each plants something that must not be found in the fixture again, in whatever form.
@Suite("No secret stays in a captured fixture") struct CaptureCanaryTests {
  private let sandbox: CaptureSandbox
  init() throws { sandbox = try CaptureSandbox() }

  @Test("In settings: by their names, in what is nested, in text and data that are documents")
  func settings() throws {
    let nested = try PropertyListSerialization.data(
      fromPropertyList: ["api_token": "canary-nested-plist-1"], format: .binary, options: 0)
    let archive = try NSKeyedArchiver.archivedData(
      withRootObject: ["password": "canary-in-archive-2"] as NSDictionary, requiringSecureCoding: false)
    try sandbox.settings([
      "dataSchemaVersion": 3, "auth_token": "canary-Token-3", "session": ["refreshToken": "canary-refresh-4"],
      "state": #"{"user": {"secret": "canary-json-5", "n": 1}, "pin": 918273}"#, "nested": nested,
      "archive": archive, "note": "as told: sk_live_4242canary4242aaaaBBBB, keep it", "pin": 918_273,
      "list": ["plain", ["apiKey": Data("canary-data-6".utf8)]],
      "ghp_16C7e42F292c6912E7710c838347Ae178B4a": true,
    ])
    try sandbox.capture(hiding: [
      "canary-nested-plist-1", "canary-in-archive-2", "canary-Token-3", "canary-refresh-4", "canary-json-5",
      "sk_live_4242canary4242aaaaBBBB", "918273", "canary-data-6", "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ])
    let settings = try sandbox.settings()
    #expect(settings.contains(#"\"n\": 1"#), "what is no secret stays: \(settings)")
    #expect(settings.contains("as told: "))
  }

  @Test("Identifiers of the device and its containers are replaced in every form and place")
  func identifiers() throws {
    let (own, group, device) = (
      "3F2504E0-4F89-41D3-9A0C-0305E82C3301", "7D444840-9DC0-11D1-B245-5FFDCE74FAD2",
      "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
    )
    let bare = group.replacing("-", with: "")
    let raw = withUnsafeBytes(of: try #require(UUID(uuidString: group)).uuid) { Array($0) }
    let metadata = ".com.apple.mobile_container_manager.metadata.plist"
    sandbox.configuration.groups = ["group.com.example.notes": "../Group"]
    try sandbox.settings(
      ["MCMMetadataIdentifier": "com.example.notes", "MCMMetadataUUID": own], in: metadata)
    try sandbox.settings(
      ["MCMMetadataIdentifier": "group.com.example.notes", "MCMMetadataUUID": group],
      in: "../Group/\(metadata)")
    let wide = group.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
    let object = try #require(NSUUID(uuidString: group))
    let archive = try NSKeyedArchiver.archivedData(
      withRootObject: [object] as NSArray, requiringSecureCoding: false)
    let bookmark: [UInt8] = [0, 0x62, 0x6F, 0xFF] + Array(group.lowercased().utf8) + [0, 9] + raw
    let framed: [UInt8] = [0, 1, 0, 2] + wide + [0]
    let values: [String: Any] = [
      "dataSchemaVersion": 3, "bare": bare.lowercased(), "wide": Data(framed), "raw": Data(raw),
      "bookmark": Data(bookmark), "archive": archive,
      "path": "/private/var/mobile/Containers/Shared/AppGroup/\(group)/Library/a.txt",
      "simulator": "/Users/a/Library/Developer/CoreSimulator/Devices/\(device)/data/x",
      "again": "is \(device)", "plain": "DE305D54-75B4-431B-ADB2-EB6B9E546014",
    ]
    try sandbox.settings(values)
    try sandbox.write("Documents/\(group).txt", "in \(group.lowercased())")
    let cache: [UInt8] = [0, 0xFE, 0x80] + wide + raw + [0]
    try sandbox.write("Documents/cache.bin", cache)
    try sandbox.database(
      "CREATE TABLE t (a, b); INSERT INTO t VALUES (x'00ff\(bare)00', '\(own.lowercased())')")
    try sandbox.capture(hiding: [own, group, device, bare])
    let settings = try sandbox.settings()
    #expect(settings.contains("DE305D54-75B4-431B-ADB2-EB6B9E546014"))
    // The same one everywhere.
    let made = "\(try sandbox.built().root)/Library/Preferences/com.example.notes.plist"
    let built = try PropertyListFile(bytes: Array(RawFiles.read(Array(made.utf8)))).root
    guard case .string(let text) = built["bare"], case .data(let bytes) = built["raw"],
      case .string(let path) = built["path"], case .data(let found) = built["bookmark"]
    else { return #expect(Bool(false), "\(built)") }
    #expect(bytes.map { String(format: "%02x", $0) }.joined() == text && bytes != raw)
    #expect(path.replacing("-", with: "").lowercased().contains(text) && found.suffix(16) == bytes[...])
  }

  @Test("A long setting is searched in parts, and only the secrets in it are replaced")
  func large() throws {
    let words = String(repeating: "word after word, ", count: TestExtent.isFull ? 270_000 : 20_000)
    try sandbox.settings([
      "dataSchemaVersion": 3, "log": "\(words)password=canary-large-1 \(words.prefix(17_000))end",
    ])
    try sandbox.capture(hiding: ["canary-large-1"])
    let settings = try sandbox.settings()
    #expect(settings.utf8.count > words.utf8.count && settings.contains("word after word, end"))
  }

  @Test("In files: JSON, XML, text of many kinds, property lists of either format")
  func files() throws {
    try sandbox.write(
      "Documents/a.json",
      #"{"items": [{"name": "auth_token", "value": "canary-json-value-1"}], "plain": "stays"}"#)
    try sandbox.write(
      "Documents/app.log",
      """
      GET /v1/tasks
      Authorization: Bearer canaryBearer2canaryBearer2
      connect https://ada:canary-url-3@example.com/x
      all is well
      """)
    try sandbox.write("Documents/.env", "COLOR=blue\nDB_PASSWORD=canary-env-4\n")
    try sandbox.write(
      "Documents/prefs.xml",
      """
      <?xml version='1.0' encoding='utf-8' standalone='yes' ?>
      <map><string name="access_token">canary&amp;android-5</string><!-- password=canary-remark-10 -->
      <int name="pin" value="918273" /><string name="state">{&quot;secret&quot;:&quot;canary-entity-11&quot;}</string>
      <string name="theme">dark &amp; light</string><password>canary-element-12</password></map>
      """)
    try sandbox.write(
      "Documents/key.pem",
      """
      -----BEGIN PRIVATE KEY-----
      canaryPem6canaryPem6canaryPem6
      -----END PRIVATE KEY-----
      """)
    let putty = { (version: Int, end: String) in
      [
        "PuTTY-User-" + "Key-File-\(version): ssh-ed25519", "Encryption: none", "Comment: mine",
        "Public-Lines: 1", "publicPublicPublicPublic", "Private-Lines: 2", "canaryPpk\(version)canaryPpk",
        "canaryRest\(version)==", "Private-MAC: 0123456789abcdef\(version)canary", "",
      ].joined(separator: end)
    }
    try sandbox.write("Documents/2.ppk", putty(2, "\r\n"))
    try sandbox.write("Documents/3.ppk", putty(3, "\n"))
    try sandbox.settings(["client_secret": "canary-xml-8"], in: "Documents/x.plist", format: .xml)
    try sandbox.settings(["client_secret": "canary-binary-9"], in: "Documents/b.plist")
    try sandbox.write(
      "Documents/users.csv",
      "name,\"password\",color\nAda,\"canary-csv-13, too\",blue\nBob,canary-csv-14,red\n")
    try sandbox.capture(hiding: [
      "canary-csv-13, too", "canary-csv-14", "canary-json-value-1", "canaryBearer2canaryBearer2",
      "canary-url-3", "canary-env-4", "canary&android-5", "canary&amp;android-5", "canary-remark-10",
      "918273", "canary-entity-11", "canary-element-12", "canaryPem6canaryPem6canaryPem6", "canary-xml-8",
      "canary-binary-9", "canaryPpk2canaryPpk", "canaryRest2", "0123456789abcdef2", "canaryPpk3canaryPpk",
      "canaryRest3", "0123456789abcdef3",
    ])
    #expect(try sandbox.text("container/Documents/a.json").contains(#""plain": "stays""#))
    let key = try sandbox.text("container/Documents/3.ppk")
    #expect(key.contains("publicPublicPublicPublic\nPrivate-Lines: 2\n") && key.contains("\nPrivate-MAC: "))
    #expect(
      try sandbox.text("container/Documents/users.csv").contains(
        #/name,"password",color\nAda,"[^"]{18}",blue\nBob,[^,]+,red\n/#))
    let xml = try sandbox.text("container/Documents/prefs.xml")
    #expect(xml.contains("<string name=\"theme\">dark &amp; light</string>"), "\(xml)")
    #expect(
      xml.contains(#/<string name="state">\{&quot;secret&quot;:&quot;[a-z]{6}-[a-z]{6}-\d\d&quot;}</#),
      "\(xml)")
    #expect(try sandbox.text("container/Documents/.env").contains("COLOR=blue\nDB_PASSWORD="))
    #expect(try sandbox.text("container/Documents/app.log").contains("all is well"))
  }

  @Test("In databases: rows, what was deleted, the log, defaults, views, triggers, remarks, search tables")
  func databases() throws {
    let blob = try PropertyListSerialization.data(
      fromPropertyList: ["password": "canary-blob-1"], format: .binary, options: 0
    ).map { String(format: "%02x", $0) }.joined()
    try sandbox.database(
      """
      CREATE TABLE account (id INTEGER PRIMARY KEY, password TEXT DEFAULT 'canary-default-2', data BLOB, memo TEXT);
      INSERT INTO account VALUES (1, 'canary-row-3', x'\(blob)', 'his word is canary-ROW-3');
      INSERT INTO account VALUES (2, 'canary-deleted-4', NULL, NULL);
      CREATE TABLE filler (x); INSERT INTO filler WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
        SELECT 'canary-deleted-4 ' || i FROM n;
      DELETE FROM filler; DELETE FROM account WHERE id = 2;
      CREATE TABLE pair (key TEXT PRIMARY KEY, value TEXT); INSERT INTO pair VALUES ('api_key', 'canary-pair-5');
      CREATE VIEW mine AS SELECT * FROM account WHERE password = 'canary-row-3';
      CREATE TRIGGER t AFTER INSERT ON pair BEGIN UPDATE account SET memo = 'canary-row-3'; END;
      CREATE TABLE remark (x /* once it was canary-row-3 */);
      CREATE VIRTUAL TABLE search USING fts5(body); INSERT INTO search VALUES ('look for canary-row-3 here');
      CREATE INDEX "by memo" ON account (memo) WHERE memo != 'canary-row-3';
      """)
    try sandbox.capture(hiding: [
      "canary-blob-1", "canary-default-2", "canary-row-3", "canary-deleted-4", "canary-pair-5",
    ])
    let built = try sandbox.built()
    let memo = try sandbox.rows("SELECT password, memo FROM mine", in: built)
    #expect(memo.count == 1, "the view still finds the row")
    let password = memo.first.flatMap { String.fromDatabaseValue($0[0]) } ?? ""
    #expect(
      memo.first.flatMap { String.fromDatabaseValue($0[1]) }?.lowercased()
        == "his word is \(password)".lowercased())
    #expect(try sandbox.rows("SELECT count(*) FROM search('look')", in: built) == [[1.databaseValue]])
  }

  @Test("In a schema: beside the name of a secret, where no row has them")
  func schemas() throws {
    try sandbox.database(
      """
      CREATE TABLE t (a TEXT, token TEXT, CHECK (token<>'canary-check-1'), CHECK (typeof(token) <> 'blob'));
      CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET token='canary-set-3'; END;
      CREATE VIEW v AS SELECT a FROM t WHERE token = 'canary-where-4' OR token IN ('canary-in-5', 'canary-in-6');
      CREATE VIEW w AS SELECT 'canary-alias-7' AS password, 'stays' AS a;
      CREATE INDEX i ON t (a) WHERE token='canary-index-8';
      """)
    try sandbox.capture(hiding: [
      "canary-check-1", "canary-set-3", "canary-where-4", "canary-in-5", "canary-in-6",
      "canary-alias-7", "canary-index-8",
    ])
    let built = try sandbox.built()
    let row = try sandbox.rows("SELECT a, length(password) FROM w", in: built)
    #expect(row == [["stays".databaseValue, 14.databaseValue]])
    let sql = try sandbox.rows(
      "SELECT sql LIKE '%<> ''blob''%' FROM sqlite_schema WHERE name = 't'",
      in: built)
    #expect(sql == [[1.databaseValue]])
  }

  @Test("Rows in the log only, and their secrets")
  func log() throws {
    let path = sandbox.directory("Notes/Documents/w.sqlite")
    let queue = try DatabasePool(path: path)
    try queue.writeWithoutTransaction {
      try $0.execute(
        sql:
          "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (token TEXT); INSERT INTO t VALUES ('canary-wal-0123456789')"
      )
    }
    let report = try withExtendedLifetime(queue) { try sandbox.capture() }
    try queue.close()
    let leaks = try sandbox.leaks(["canary-wal-0123456789"], report)
    #expect(leaks == [])
    #expect(try sandbox.text("fixture.yaml").contains("only-in-wal:\n    - \"Documents/w.sqlite\""))
  }

  @Test("The vault's values, wherever else they stand and however they are written")
  func vault() throws {
    let binary: [UInt8] = [0, 200, 3, 4, 155, 6, 77, 8, 9, 210]
    try sandbox.vault([
      VaultItem(service: "s", account: "a", value: SecretBytes(Array("Canary-Vault-One".utf8))),
      VaultItem(
        service: "s", account: "json",
        value: SecretBytes(Array(#"{"token": "canary-vault-two", "user": "canary-name-3"}"#.utf8))),
      VaultItem(service: "s", account: "binary", value: SecretBytes(binary)),
    ])
    let base64 = Data("x:Canary-Vault-One".utf8).base64EncodedString()
    try sandbox.settings([
      "dataSchemaVersion": 3, "copy": "see Canary-Vault-One.", "header": "X \(base64)", "raw": Data(binary),
      "address": "app://open?x=canary%2Dvault%2Dtwo",
      "hex": Data("Canary-Vault-One".utf8).map { String(format: "%02x", $0) }.joined(),
      "CANARY-NAME-3": 1,
    ])
    try sandbox.write("Documents/canary-name-3/Of canary-vault-two.txt", "Canary-Vault-One\n")
    try ExtendedAttributes.set(
      "user.example.owner", Array("canary-name-3".utf8),
      of: Array(sandbox.directory("Notes/Documents/canary-name-3").utf8))
    try FileManager.default.createSymbolicLink(
      atPath: sandbox.directory("Notes/Documents/Latest"),
      withDestinationPath: "canary-name-3/Of canary-vault-two.txt")
    try sandbox.capture(hiding: ["Canary-Vault-One", "canary-vault-two", "canary-name-3"])
    let settings = try sandbox.settings()
    let copy = try #require(settings.firstMatch(of: #/copy: "see (?<fake>[^".]+)\."/#)).fake
    let header = try #require(settings.firstMatch(of: #/header: "X (?<base64>[^"]+)"/#)).base64
    // The first digit also has bits of what stands before.
    let decoded = String(decoding: Data(base64Encoded: String(header)) ?? Data(), as: UTF8.self)
    #expect(decoded.hasSuffix(copy.dropFirst()), "the same value stands in Base64: \(decoded), \(copy)")
    let listing = try TreeListing(sandbox.directory("Fixtures/made"))
    #expect(!listing.paths.contains { listing[$0]?.content.range(of: Data(binary)) != nil })
    let encoded = Data(binary).base64EncodedString()
    #expect(try !sandbox.text("fixture.yaml").contains(encoded))
    #expect(try !sandbox.settings().contains(encoded))
    let built = try sandbox.built()
    let items = try Vault(
      opening: RawFiles.readArray(built.root + "/Library/Vault/vault.age"), with: sandbox.keys, path: "v"
    ).sorted
    #expect(items.map(\.account) == ["a", "binary", "json"])
    #expect(items.map(\.value.count) == [16, 10, 54], "each is as long as it was")
    let latest = try FileManager.default.destinationOfSymbolicLink(atPath: built.root + "/Documents/Latest")
    #expect(
      FileManager.default.fileExists(atPath: built.root + "/Documents/" + latest),
      "the link still leads to the file")
  }

  @Test("Bytes that nothing refers to, remarks in XML, accents apart, a table that is named after a token")
  func corners() throws {
    // Reference 0 is all that the list's top is made of: the second object belongs to nothing.
    var list: [UInt8] = Array("bplist00".utf8)
    list += [0xD0, 0x5F, 0x10, 20]
    list += Array("password=canary-loose".utf8.prefix(20))
    let trailer: [UInt8] = [8, 9, 0, 0, 0, 0, 0, 0, 1, 1]
    list += trailer
    for number: UInt8 in [2, 0, 32] { list += [0, 0, 0, 0, 0, 0, 0, number] }
    try sandbox.write("Documents/loose.plist", list)
    try sandbox.write(
      "Documents/remark.xml",
      """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><!-- password=canary-remark --><dict><key>a</key><string>b</string></dict></plist>
      """)
    try sandbox.settings(["dataSchemaVersion": 3, "owner": "Zoë Müller-Canary"])
    try sandbox.write(
      "Documents/" + "Zoë Müller-Canary".decomposedStringWithCanonicalMapping + ".txt", "ZOË MÜLLER-CANARY")
    sandbox.options.keys = ["owner"]
    try sandbox.capture(hiding: [
      "canary-loos", "canary-remark", "Müller-Canary", "Müller-Canary".decomposedStringWithCanonicalMapping,
    ])
    try RawFiles.remove(Array(sandbox.directory("Fixtures/made").utf8))
    try sandbox.database("CREATE TABLE ghp_16C7e42F292c6912E7710c838347Ae178B4a (x)")
    let refusal = try sandbox.refusal()
    #expect(
      refusal.contains("a name in the schema of Documents/a.sqlite contains a value")
        && !refusal.contains("16C7e42F"))
  }

  @Test("A group's settings, and secrets in names that are no text of the app's")
  func groups() throws {
    sandbox.configuration.groups = ["group.com.example.notes": "../Shared"]
    try sandbox.settings(
      ["widget_token": "canary-group-1"], in: "../Shared/Library/Preferences/group.com.example.notes.plist")
    try sandbox.write("../Shared/canary.txt", "widget: canary-group-1")
    try sandbox.capture(hiding: ["canary-group-1"])
    let path = "groups/group.com.example.notes/Library/Preferences/group.com.example.notes.plist.yaml"
    #expect(try sandbox.text(path).contains("widget_token: "))
    #expect(try sandbox.built().groups.map(\.id) == ["group.com.example.notes"])
  }

  @Test("What no backup takes is left out; the directory with the flag stays, and is empty")
  func excluded() throws {
    try sandbox.write("Library/Caches/x.txt", "canary-cache")
    sandbox.configuration.exclude = ["*.part"]
    try sandbox.write("Documents/ghp_16C7e42F292c6912E7710c838347Ae178B4a.part", "half")
    try sandbox.write("Library/Offline/episode.txt", "canary-episode")
    try ExtendedAttributes.set(
      "user.com.apple.metadata:com_apple_backup_excludeItem", Array("com.apple.backupd".utf8),
      of: Array(sandbox.directory("Notes/Library/Offline").utf8))
    let report = try sandbox.capture(hiding: [
      "canary-cache", "canary-episode", "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ])
    #expect(Set(report.dropped.map(\.path)).isSuperset(of: ["Library/Caches", "Library/Offline"]))
    #expect(report.dropped.count == 3)
    let tree = try TreeListing(sandbox.built().root)
    #expect(tree["Library/Offline"]?.attributes.count == 1)
    #expect(tree["Library/Caches"] == nil)
  }
}

extension RawFiles {
  static func readArray(_ path: String) throws -> [UInt8] { [UInt8](try read(Array(path.utf8))) }
}
