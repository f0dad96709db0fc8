import Foundation
import Testing

@testable import AppContainer
@testable import ContainerAudit
@testable import Formats

/// For each rule containers that it finds something in, and containers that look alike and are innocent.
struct AuditRuleCase: Sendable, CustomTestStringConvertible {
  typealias Build = @Sendable (AuditSandbox) throws -> Void

  let rule: AuditRuleID
  let name: String
  let isFinding: Bool
  let build: Build

  var testDescription: String { "\(rule.rawValue): \(name)" }

  private static func finds(
    _ rule: AuditRuleID, _ name: String, _ layout: ContainerLayout = .ios, _ build: @escaping Build
  ) -> Self {
    sample(rule, name, layout, isFinding: true, build)
  }

  private static func ignores(
    _ rule: AuditRuleID, _ name: String, _ layout: ContainerLayout = .ios, _ build: @escaping Build
  ) -> Self {
    sample(rule, name, layout, isFinding: false, build)
  }

  private static func sample(
    _ rule: AuditRuleID, _ name: String, _ layout: ContainerLayout, isFinding: Bool, _ build: @escaping Build
  ) -> Self {
    Self(rule: rule, name: name, isFinding: isFinding) {
      $0.configuration.layout = layout
      try build($0)
    }
  }

  private static func protectionRules(_ text: String) throws -> [ProtectionRule] {
    guard let node = try YAMLDocument(Array(text.utf8), file: "drydock.yaml").root else { return [] }
    return try ProtectionRule.list(node)
  }

  static let all = secrets + settings + vault + files + databases + declarations

  private static let secrets = [
    finds(.secretInSettings, "a named token") { try $0.settings(["auth_token": .string(MadeUp.password)]) },
    finds(.secretInSettings, "a known form of tokens") { try $0.settings(["last": .string(MadeUp.jwt)]) },
    finds(.secretInSettings, "a password in JSON in a text") {
      try $0.settings(["state": .string(#"{"user": {"password": "\#(MadeUp.password)"}}"#)])
    },
    finds(.secretInSettings, "a name beside a value") {
      try $0.settings(["headers": [["name": "auth_token", "value": .string(MadeUp.password)]]])
    },
    finds(.secretInSettings, "Android's shared preferences", .android) {
      try $0.put(
        "shared_prefs/app.xml",
        "<?xml version='1.0'?><map><string name=\"password\">\(MadeUp.password)</string></map>")
    },
    finds(.secretInSettings, "a passcode of digits") { try $0.settings(["userPasscode": "4711"]) },
    ignores(.secretInSettings, "settings about secrets") {
      try $0.settings([
        "showPassword": true, "passwordPolicy": "minimum 8 Characters", "tokenExpiry": 1_763_880_000,
        "passwordHint": "my1stDog", "biometricPasscodeEnabled": true, "tokenizer": "porter2Stemmer",
        "authTokenService": "com.example.notes", "cookieConsent": "accepted2024", "secretSanta": "Grace",
      ])
    },
    ignores(.secretInSettings, "tokens that open nothing") {
      try $0.settings([
        "pushToken": .string(MadeUp.password), "apnsDeviceToken": .string(MadeUp.password),
        "serverChangeToken": .data(Array(MadeUp.password.utf8)), "nextPageToken": "CAUQAA83hfK",
        "lastSessionID": "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90", "maxTokens": 4096,
      ])
    },
    ignores(.secretInSettings, "base64 of JSON, and examples") {
      try $0.settings([
        "cursor": .string("eyJ" + String(repeating: "abCD12", count: 10)),
        "sample": .string("AK" + "IAIOSFODNN7EXAMPLE"),
        "url": "https://example.com/?q=password", "order": 4_929_173_648_291_735,
      ])
    },
    finds(.secretInDocument, "a property list") {
      try $0.put(
        "Library/Application Support/session.plist",
        bytes: PropertyListFile(format: .xml, root: ["accessToken": .string(MadeUp.password)]).encoded())
    },
    finds(.secretInDocument, "JSON") {
      try $0.put("Documents/state.json", #"{"account": {"refresh_token": "\#(MadeUp.password)"}}"#)
    },
    finds(.secretInDocument, "a private key") { try $0.put("Documents/id_rsa", MadeUp.pem) },
    finds(.secretInDocument, "a configuration file") {
      try $0.put("Library/app.env", "API_KEY=\(MadeUp.password)\n")
    },
    finds(.secretInDocument, "far behind, across a border of pieces") {
      let filling = String(repeating: "lorem ipsum dolor ", count: 58_255)
      try $0.put("Library/notes.txt", filling + MadeUp.github)
    },
    ignores(.secretInDocument, "what a user writes") {
      try $0.put("Documents/note.txt", "My password: swordfish11\nThe token of the bus: 12 coins\n")
    },
    ignores(.secretInDocument, "certificates and public keys") {
      try $0.put("Library/ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n")
      try $0.put("Library/key.pub", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n")
    },
    ignores(.secretInDocument, "a picture that happens to have the bytes") {
      try $0.put("Documents/a.jpg", bytes: [0xff, 0xd8, 0] + Array(MadeUp.github.utf8))
    },
    finds(.secretInLog, "a header") {
      try $0.put("Library/Caches/Logs/http.log", "GET /\nAuthorization: Bearer \(MadeUp.password)\n")
    },
    finds(.secretInLog, "an assignment") {
      try $0.put("Documents/app.log.1", "login password=\(MadeUp.password) ok\n")
    },
    ignores(.secretInLog, "a log that hides them") {
      try $0.put(
        "Library/Logs/app.log", "password=******** token=(redacted) count=12\nAuthorization: hidden\n")
    },
    finds(.secretInDatabase, "a column") {
      try $0.database(
        "CREATE TABLE account(id INTEGER PRIMARY KEY, password TEXT); INSERT INTO account VALUES (1, '\(MadeUp.password)')"
      )
    },
    finds(.secretInDatabase, "a row of keys and values") {
      try $0.database(
        "CREATE TABLE setting(name TEXT, value TEXT); INSERT INTO setting VALUES ('theme', 'dark'), ('auth_token', '\(MadeUp.password)')"
      )
    },
    finds(.secretInDatabase, "JSON in a row") {
      try $0.database(
        "CREATE TABLE server(extra TEXT); INSERT INTO server VALUES ('{\"user\": \"ada\", \"password\": \"\(MadeUp.password)\"}')"
      )
    },
    ignores(.secretInDatabase, "columns that are empty, sealed, or words") {
      try $0.database(
        """
        CREATE TABLE account(password TEXT, encrypted_token BLOB, push_token TEXT, session_id TEXT);
        INSERT INTO account VALUES ('', x'00112233445566778899aabbccddeeff0123', '\(MadeUp.password)', 'a1b2c3d4');
        CREATE TABLE token(token TEXT, count INTEGER); INSERT INTO token VALUES ('house', 3), ('garden', 4);
        """)
    },
    finds(.tokenInRows, "a token in a text") {
      try $0.database("CREATE TABLE note(body TEXT); INSERT INTO note VALUES ('use \(MadeUp.stripe) for it')")
    },
    ignores(.tokenInRows, "a text about tokens") {
      try $0.database(
        "CREATE TABLE note(body TEXT); INSERT INTO note VALUES ('A GitHub token starts with ghp_, a password: swordfish11')"
      )
    },
  ]

  /// A keyed archive of an object of a class.
  private static func archive(_ name: String) -> PropertyListValue {
    let file = PropertyListFile(root: [
      "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": [:],
      "$objects": ["$null", ["$classname": .string(name), "$classes": [.string(name), "NSObject"]]],
    ])
    return .data((try? file.encoded()) ?? [])
  }

  private static let path =
    "/var/mobile/Containers/Data/Application/6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90/Documents/a.jpg"

  /// The names of its keysets are all that EncryptedSharedPreferences are known by.
  private static let encrypted =
    "<?xml version='1.0'?><map><string name=\"__androidx_security_crypto_encrypted_prefs_key_keyset__\">12a9</string></map>"

  private static let settings = [
    finds(.settingsDamaged, "SharedPreferences without bytes", .android) {
      try $0.put("shared_prefs/app.xml", "")
    },
    finds(.settingsDamaged, "a DataStore of zeros", .android) {
      try $0.put("files/datastore/app.preferences_pb", bytes: [UInt8](repeating: 0, count: 64))
    },
    finds(.settingsDamaged, "a truncated property list") {
      try $0.put(AuditSandbox.settings, #"<?xml version="1.0"?><plist version="1.0"><dict><key>a</key>"#)
    },
    ignores(.settingsDamaged, "settings without a setting, and a DataStore that is empty", .android) {
      try $0.put("shared_prefs/app.xml", "<map />")
      try $0.put("files/datastore/app.preferences_pb", "")
      try $0.put("shared_prefs/secret.xml", encrypted)
    },
    finds(.settingsOfDevice, "EncryptedSharedPreferences", .android) {
      try $0.put("shared_prefs/secret.xml", encrypted)
    },
    ignores(.settingsOfDevice, "EncryptedSharedPreferences that no backup has", .android) {
      $0.configuration.exclude = ["shared_prefs/secret.xml"]
      try $0.put("shared_prefs/secret.xml", encrypted)
    },
    finds(.settingsLarge, "2 MB of text") {
      try $0.settings(["text": .string(String(repeating: "a b ", count: 500_000))])
    },
    ignores(.settingsLarge, "half a megabyte") {
      try $0.settings(["text": .string(String(repeating: "a b ", count: 125_000))])
    },
    finds(.blobInSettings, "an image") {
      try $0.settings(["avatar": .data([UInt8](repeating: 7, count: 20_000))])
    },
    ignores(.blobInSettings, "a bookmark, and the system's data") {
      try $0.settings([
        "folder": .data([UInt8](repeating: 7, count: 900)),
        "NSCache": .data([UInt8](repeating: 7, count: 20_000)),
      ])
      try $0.settings(
        ["blob": .data([UInt8](repeating: 7, count: 20_000))],
        at: "Library/Preferences/com.apple.keyboard.plist")
    },
    finds(.cloudStoreLimit, "more than 1024 keys") {
      try $0.settings(
        PropertyListDictionary((0..<1025).map { ("key\($0)", .boolean(true)) }),
        at: "Library/SyncedPreferences/com.example.notes.plist")
    },
    ignores(.cloudStoreLimit, "1024 keys in iCloud, and more in the settings") {
      try $0.settings(
        PropertyListDictionary((0..<1024).map { ("key\($0)", .boolean(true)) }),
        at: "Library/SyncedPreferences/com.example.notes.plist")
      try $0.settings(PropertyListDictionary((0..<1030).map { ("key\($0)", .boolean(true)) }))
    },
    finds(.jsonInSettings, "a list of 100 objects") {
      let list = (0..<100).map { #"{"title": "Task \#($0)"}"# }.joined(separator: ",")
      try $0.settings(["tasks": .string("[\(list)]")])
    },
    finds(.jsonInSettings, "as data") {
      let list = (0..<100).map { #"{"title": "Task \#($0)"}"# }.joined(separator: ",")
      try $0.settings(["tasks": .data(Array("[\(list)]".utf8))])
    },
    ignores(.jsonInSettings, "a small object, and a text in brackets") {
      try $0.settings([
        "filter": #"{"open": true}"#, "draft": .string("[" + String(repeating: "a draft ", count: 100) + "]"),
      ])
    },
    finds(.pathInSettings, "a setting") { try $0.settings(["lastFile": .string(path)]) },
    finds(.pathInSettings, "a document") { try $0.put("Documents/a.json", #"{"file": "file://\#(path)"}"#) },
    ignores(.pathInSettings, "relative paths, other paths, and logs") {
      try $0.settings([
        "lastFile": "Documents/a.jpg", "web": "https://example.com/var/mobile/x",
        "tool": "/usr/bin/data/user",
        "user": "/data/user/ada",
      ])
      try $0.put("Library/Logs/a.log", "opened \(path)\n")
      try $0.put("Library/Caches/index.json", #"{"file": "\#(path)"}"#)
    },
    finds(.customClassInArchive, "a setting") { try $0.settings(["state": archive("Notes.State")]) },
    finds(.customClassInArchive, "a column") {
      guard case .data(let bytes) = archive("NoteAttachment") else { return }
      let hex = bytes.map { String(format: "%02x", $0) }.joined()
      try $0.database("CREATE TABLE note(extra BLOB); INSERT INTO note VALUES (x'\(hex)')")
    },
    ignores(.customClassInArchive, "Apple's classes, and other property lists") {
      try $0.settings([
        "color": archive("UIColor"), "list": archive("__NSArrayI"), "name": archive("NSPersonNameComponents"),
        "plain": .data((try? PropertyListFile(root: ["$classname": "Notes.State"]).encoded()) ?? []),
      ])
    },
    finds(.versionContradiction, "two markers") {
      $0.configuration.versionMarkers = [
        .init(place: .defaults(key: "schema")), .init(place: .json(path: "Documents/v.json", pointer: "/v")),
      ]
      try $0.settings(["schema": 3])
      try $0.put("Documents/v.json", #"{"v": 2}"#)
    },
    ignores(.versionContradiction, "markers that agree, and numbers that are no markers") {
      $0.configuration.versionMarkers = [.init(place: .defaults(key: "schema"))]
      try $0.settings(["schema": 3, "dataVersion": 9])
      try $0.database("PRAGMA user_version = 7; CREATE TABLE t(x)")
    },
  ]

  private static let vault = [
    finds(.keychainAlways, "always") { try $0.vault($0.item(.always)) },
    finds(.keychainAlways, "on this device") { try $0.vault($0.item(.alwaysThisDeviceOnly)) },
    ignores(.keychainAlways, "after the first unlock") { try $0.vault($0.item(.afterFirstUnlock)) },
    finds(.keychainKeyLeaves, "a key") { try $0.vault($0.item(.whenUnlocked, .key)) },
    ignores(.keychainKeyLeaves, "a key of this device, and a password") {
      try $0.vault($0.item(.whenUnlockedThisDeviceOnly, .key), $0.item(.whenUnlocked, account: "b"))
    },
    finds(.keychainNoGroup, "one of two") {
      try $0.vault($0.item(.whenUnlocked), $0.item(.whenUnlocked, account: "b", group: "group.x"))
    },
    ignores(.keychainNoGroup, "an app without groups") { try $0.vault($0.item(.whenUnlocked)) },
  ]

  private static let files = [
    finds(.protectionBelowPolicy, "no class, with a policy in drydock.yaml") {
      $0.configuration.audit.protection = .complete
      try $0.put("Documents/a.txt", "text")
    },
    finds(.protectionBelowPolicy, "a weaker class, with the app's policy") {
      $0.declare(entitlements: ["com.apple.developer.default-data-protection": "NSFileProtectionComplete"])
      try $0.put("Documents/a.txt", "text")
      try $0.protect("Documents/a.txt", .none)
    },
    ignores(.protectionBelowPolicy, "the class, and caches") {
      $0.configuration.audit.protection = .completeUnlessOpen
      try $0.put("Documents/a.txt", "text")
      try $0.protect("Documents/a.txt", .complete)
      try $0.put("Library/Caches/b.txt", "text")
    },
    ignores(.protectionBelowPolicy, "no policy") { try $0.put("Documents/a.txt", "text") },
    ignores(.protectionBelowPolicy, "the app's default, which is not recorded") {
      $0.declare(entitlements: ["com.apple.developer.default-data-protection": "NSFileProtectionComplete"])
      try $0.put("Documents/a.txt", "text")
    },
    finds(.protectionBelowRule, "no class, and a weaker one") {
      $0.configuration.protection = try protectionRules("[{path: \"Documents/**\", require: complete}]")
      try $0.put("Documents/a.txt", "text")
      try $0.put("Documents/b.txt", "text")
      try $0.protect("Documents/b.txt", .completeUnlessOpen)
    },
    finds(.protectionBelowRule, "a directory, in a container of any layout", .generic) {
      $0.configuration.protection = try protectionRules("[{path: secrets, require: completeUnlessOpen}]")
      try $0.put("secrets/deep/a.txt", "text")
      try $0.protect("secrets/deep/a.txt", .none)
    },
    ignores(.protectionBelowRule, "the class, another path, and an exception before the rule") {
      $0.configuration.protection = try protectionRules(
        "[{path: Documents/public, require: none}, {path: \"Documents/**\", require: completeUnlessOpen}]")
      try $0.put("Documents/a.txt", "text")
      try $0.protect("Documents/a.txt", .complete)
      try $0.put("Documents/public/b.txt", "text")
      try $0.put("Library/c.txt", "text")
    },
    ignores(.protectionBelowRule, "no rule") { try $0.put("Documents/a.txt", "text") },
    finds(.worldReadable, "a file of an Android app", .android) {
      try $0.put("files/a", "text", mode: 0o644)
      for name in ["b", "c", "d"] { try $0.put("files/\(name)", "text") }
    },
    finds(.worldReadable, "a secret on a server", .generic) {
      try $0.put("config.json", #"{"password": "\#(MadeUp.password)"}"#, mode: 0o644)
    },
    ignores(.worldReadable, "an iOS app in its sandbox") { try $0.put("Documents/a", "text", mode: 0o644) },
    ignores(.worldReadable, "a copy without modes", .android) {
      for name in 0..<20 { try $0.put("files/\(name)", "text", mode: 0o644) }
    },
    finds(.worldWritable, "a file") {
      try $0.put("Documents/a.txt", "text", mode: 0o666)
      try $0.put("Documents/b.txt", "text")
    },
    ignores(.worldWritable, "files of the group") { try $0.put("Documents/a.txt", "text", mode: 0o664) },
    finds(.cacheInBackup, "a cache of images") {
      try $0.put("Library/Application Support/ImageCache/a", sparse: 2_000_000)
    },
    finds(.cacheInBackup, "downloads") {
      try $0.put("Library/Application Support/Downloads/a.mp4", sparse: 20_000_000)
    },
    ignores(.cacheInBackup, "small, excluded, and asked for by the user") {
      try $0.put("Library/Application Support/Cache/a", sparse: 20_000)
      try $0.put("Library/Caches/ImageCache/a", sparse: 2_000_000)
      try $0.put("Documents/Downloads/a.mp4", sparse: 20_000_000)
    },
    finds(.userDataNotInBackup, "a document in tmp") { try $0.put("tmp/a.pdf", "%PDF-1.7") },
    ignores(.userDataNotInBackup, "a web page in caches") { try $0.put("Library/Caches/a.html", "<html>") },
    finds(.largeIncluded, "600 MB") { try $0.put("Documents/Videos/a.mp4", sparse: 600_000_000) },
    ignores(.largeIncluded, "400 MB") { try $0.put("Documents/Videos/a.mp4", sparse: 400_000_000) },
    finds(.largeExcluded, "600 MB that a pattern excludes") {
      $0.configuration.exclude = ["Documents/Offline"]
      try $0.put("Documents/Offline/a.mp4", sparse: 600_000_000)
    },
    ignores(.largeExcluded, "600 MB of caches") { try $0.put("Library/Caches/a.mp4", sparse: 600_000_000) },
    finds(.backupTooLarge, "30 MB", .android) { try $0.put("files/a.mp4", sparse: 30_000_000) },
    ignores(.backupTooLarge, "30 MB that are not backed up", .android) {
      try $0.put("no_backup/a.mp4", sparse: 30_000_000)
    },
  ]

  private static let family = """
    CREATE TABLE list(id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE task(id INTEGER PRIMARY KEY, list_id INTEGER REFERENCES list(id));
    INSERT INTO list VALUES (1, 'a');
    """

  private static let databases = [
    finds(.databaseDamaged, "an index without a row") {
      try $0.database(
        """
        CREATE TABLE t(x); CREATE INDEX i ON t(x); INSERT INTO t VALUES (1), (2); PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = 'CREATE INDEX i ON t(x) WHERE x > 1' WHERE name = 'i';
        """)
    },
    ignores(.databaseDamaged, "a sound database") { try $0.database(family) },
    finds(.foreignKeyViolated, "a row without its list") {
      try $0.database(family + "INSERT INTO task VALUES (1, 1), (2, 99), (3, 98)")
    },
    ignores(.foreignKeyViolated, "rows of a list, and of none") {
      try $0.database(family + "INSERT INTO task VALUES (1, 1), (2, NULL)")
    },
    finds(.foreignKeyWithoutIndex, "a column") { try $0.database(family) },
    ignores(.foreignKeyWithoutIndex, "indexes of all kinds") {
      try $0.database(
        family
          + """
          CREATE INDEX i ON task(list_id) WHERE list_id IS NOT NULL;
          CREATE TABLE share(list_id INTEGER REFERENCES list(id), user INTEGER, PRIMARY KEY (list_id, user));
          CREATE TABLE detail(id INTEGER PRIMARY KEY REFERENCES list(id));
          CREATE TABLE cover(list_id INTEGER UNIQUE REFERENCES list(id), path TEXT);
          """)
    },
    finds(.pathInDatabase, "a column") {
      try $0.database("CREATE TABLE photo(path TEXT); INSERT INTO photo VALUES ('\(path)')")
    },
    ignores(.pathInDatabase, "relative paths") {
      try $0.database("CREATE TABLE photo(path TEXT); INSERT INTO photo VALUES ('Documents/a.jpg')")
    },
    finds(.freePages, "after a deletion") {
      try $0.database(
        "CREATE TABLE t(x); INSERT INTO t SELECT zeroblob(3000) FROM (\(numbers(1000))); DELETE FROM t; CREATE TABLE u(x)"
      )
    },
    ignores(.freePages, "a small database") {
      try $0.database("CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(90000)); DELETE FROM t")
    },
    finds(.smallPages, "12 MB of small pages") {
      try $0.database(
        "PRAGMA page_size = 1024; CREATE TABLE t(x); INSERT INTO t SELECT zeroblob(3000) FROM (\(numbers(4000)))"
      )
    },
    ignores(.smallPages, "a small database of small pages, and a large one of large ones") {
      try $0.database("PRAGMA page_size = 1024; CREATE TABLE t(x)")
      try $0.database(
        "CREATE TABLE t(x); INSERT INTO t SELECT zeroblob(3000) FROM (\(numbers(4000)))",
        at: "Documents/b.sqlite")
    },
    finds(.walLarge, "20 MB behind a small database") {
      try $0.database("PRAGMA journal_mode = WAL; CREATE TABLE t(x)")
      try $0.put("Library/Application Support/notes.sqlite-wal", sparse: 20 << 20)
    },
    ignores(.walLarge, "4 MB") {
      try $0.database("PRAGMA journal_mode = WAL; CREATE TABLE t(x)")
      try $0.put("Library/Application Support/notes.sqlite-wal", sparse: 4 << 20)
    },
  ]

  private static func numbers(_ count: Int) -> String {
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count)) SELECT i FROM n"
  }

  private static func reasons(_ category: String, _ reasons: PropertyListValue...) -> PropertyListDictionary {
    [
      "NSPrivacyAccessedAPITypes": [
        [
          "NSPrivacyAccessedAPIType": .string("NSPrivacyAccessedAPICategory" + category),
          "NSPrivacyAccessedAPITypeReasons": .array(reasons),
        ]
      ]
    ]
  }

  private static let people =
    "CREATE TABLE person(email TEXT); INSERT INTO person VALUES ('ada@example.com'), ('grace@example.com')"

  private static let declarations = [
    finds(.privacyManifestMissing, "an app without") {
      $0.declare(info: ["CFBundleIdentifier": "com.example.notes"])
      $0.app?.privacy = []
    },
    ignores(.privacyManifestMissing, "not looked for") { $0.declare(info: ["CFBundleIdentifier": "x"]) },
    finds(.privacyManifestInvalid, "an unknown reason") {
      $0.declare(privacy: reasons("UserDefaults", "CA92.2"))
    },
    finds(.privacyManifestInvalid, "a misspelling") { $0.declare(privacy: reasons("UserDefault", "CA92.1")) },
    finds(.privacyManifestInvalid, "no reason") { $0.declare(privacy: reasons("DiskSpace")) },
    ignores(.privacyManifestInvalid, "reasons of the list") {
      $0.declare(privacy: reasons("FileTimestamp", "DDA9.1", "C617.1"))
    },
    finds(.requiredReasonMissing, "settings") {
      try $0.settings(["theme": "dark"])
      $0.declare(privacy: [:])
    },
    finds(.requiredReasonMissing, "the reason of groups for the app's own settings") {
      try $0.settings(["theme": "dark"])
      $0.declare(privacy: reasons("UserDefaults", "1C8F.1"))
    },
    ignores(.requiredReasonMissing, "a declared reason") {
      try $0.settings(["theme": "dark"])
      $0.declare(privacy: reasons("UserDefaults", "CA92.1"))
    },
    ignores(.requiredReasonMissing, "settings of the system alone") {
      try $0.settings(["AppleLanguages": ["de"]])
      $0.declare(privacy: [:])
    },
    finds(.dataTypeNotDeclared, "addresses") {
      try $0.database(people)
      $0.declare(privacy: [:])
    },
    ignores(.dataTypeNotDeclared, "declared ones") {
      try $0.database(people)
      $0.declare(privacy: [
        "NSPrivacyCollectedDataTypes": [
          [
            "NSPrivacyCollectedDataType": "NSPrivacyCollectedDataTypeEmailAddress",
            "NSPrivacyCollectedDataTypePurposes": ["NSPrivacyCollectedDataTypePurposeAppFunctionality"],
          ]
        ]
      ])
    },
    ignores(.dataTypeNotDeclared, "columns with such names and other values") {
      try $0.database(
        """
        CREATE TABLE mail(email TEXT, email_count INTEGER, phone TEXT); INSERT INTO mail VALUES ('on', 3, 'iPhone');
        CREATE TABLE restaurant(latitude REAL, longitude REAL); INSERT INTO restaurant VALUES (48.137154, 11.576124);
        """)
      $0.declare(privacy: [:])
    },
    finds(.usageDescriptionEmpty, "no text") { $0.declare(info: ["NSCameraUsageDescription": " "]) },
    finds(.usageDescriptionEmpty, "a placeholder") { $0.declare(info: ["NSCameraUsageDescription": "TODO"]) },
    ignores(.usageDescriptionEmpty, "a sentence") {
      $0.declare(info: ["NSCameraUsageDescription": "Photos are added to your notes."])
    },
    finds(.usageDescriptionUnknown, "misspelt") {
      $0.declare(info: ["NSCamaraUsageDescription": "Photos are added to your notes."])
    },
    ignores(.usageDescriptionUnknown, "keys that end otherwise") {
      $0.declare(info: [
        "NSLocationTemporaryUsageDescriptionDictionary": ["a": "b"], "NSSensorKitUsageDetail": [:],
        "NSFaceIDUsageDescription": "To open your notes.",
      ])
    },
    finds(.usageDescriptionMissing, "a track") {
      try $0.database(
        "CREATE TABLE location(lat REAL, lon REAL, at TEXT); INSERT INTO location VALUES (48.137154, 11.576124, '')"
      )
      $0.declare(info: [:])
    },
    ignores(.usageDescriptionMissing, "places of others, and a key") {
      try $0.database(
        "CREATE TABLE restaurant(lat REAL, lon REAL); INSERT INTO restaurant VALUES (48.137154, 11.576124)")
      $0.declare(info: [:])
    },
    finds(.groupNotEntitled, "of drydock.yaml") {
      $0.configuration.groups = ["group.com.example.notes": $0.folder("g")]
      $0.declare(entitlements: [:])
    },
    ignores(.groupNotEntitled, "an entitled one") {
      $0.configuration.groups = ["group.com.example.notes": $0.folder("g")]
      $0.declare(entitlements: ["com.apple.security.application-groups": ["group.com.example.notes"]])
    },
    finds(.groupNotConfigured, "an entitled one") {
      $0.declare(entitlements: ["com.apple.security.application-groups": ["group.com.example.notes"]])
    },
    ignores(.groupNotConfigured, "no groups") { $0.declare(entitlements: [:]) },
    finds(.keychainGroupNotEntitled, "another group") {
      try $0.vault($0.item(.whenUnlocked, group: "ABCDE12345.com.example.old"))
      $0.declare(entitlements: ["keychain-access-groups": ["ABCDE12345.com.example.notes"]])
    },
    ignores(.keychainGroupNotEntitled, "the app's own, with and without the team") {
      try $0.vault(
        $0.item(.whenUnlocked, group: "com.example.notes"),
        $0.item(.whenUnlocked, account: "b", group: "group.com.example.notes"))
      $0.declare(entitlements: [
        "application-identifier": "ABCDE12345.com.example.notes",
        "com.apple.security.application-groups": ["group.com.example.notes"],
      ])
      $0.configuration.groups = ["group.com.example.notes": $0.folder("g")]
    },
    finds(.cloudNotEntitled, "a store") {
      try $0.put("Library/SyncedPreferences/com.example.notes.plist", "x")
      $0.declare(entitlements: [:])
    },
    ignores(.cloudNotEntitled, "an entitled one") {
      try $0.put("Library/SyncedPreferences/com.example.notes.plist", "x")
      $0.declare(entitlements: [
        "com.apple.developer.ubiquity-kvstore-identifier": "ABCDE12345.com.example.notes"
      ])
    },
    finds(.transportException, "all hosts") {
      $0.declare(info: ["NSAppTransportSecurity": ["NSAllowsArbitraryLoads": true]])
    },
    finds(.transportException, "a domain") {
      $0.declare(info: [
        "NSAppTransportSecurity": [
          "NSExceptionDomains": ["example.com": ["NSExceptionAllowsInsecureHTTPLoads": true]]
        ]
      ])
    },
    ignores(.transportException, "this machine, and nothing weaker") {
      $0.declare(info: [
        "NSAppTransportSecurity": [
          "NSAllowsArbitraryLoads": false, "NSAllowsLocalNetworking": true,
          "NSExceptionDomains": [
            "localhost": ["NSExceptionAllowsInsecureHTTPLoads": true],
            "example.com": ["NSIncludesSubdomains": true],
          ],
        ]
      ])
    },
  ]
}
