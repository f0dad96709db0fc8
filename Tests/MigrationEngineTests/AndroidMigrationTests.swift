import AgeEncryption
import AppContainer
import AppStores
import ContainerDiff
import ContainerTransaction
import FileSystem
import Formats
import Foundation
import Testing

@testable import MigrationEngine

@Suite struct AndroidMigrationTests {
  private static let own: ContainerPath = "shared_prefs/org.example.notes_preferences.xml"
  private static let backup: ContainerPath = "shared_prefs/org.example.notes_preferences.xml.bak"
  private static let store: ContainerPath = "files/datastore/settings.preferences_pb"

  private static let values: PropertyListDictionary = [
    "theme": "dark", "opened": .int(3), "last_sync": .long(5), "zoom": .single(1.5), "synced": true,
    "tags": .set(["work", "home"]),
  ]

  private let lab: Lab

  init() throws { lab = try Self.lab() }

  private static func lab() throws -> Lab {
    let lab = try Lab()
    (lab.configuration.app, lab.configuration.layout) = ("org.example.notes", .android)
    return lab
  }

  private static func put(_ lab: Lab, _ path: ContainerPath, _ values: PropertyListDictionary) throws {
    var file = SettingsFile(newAt: path.description)
    if path.nameString.hasSuffix(".bak") { file = SettingsFile(format: .sharedPreferences) }
    file.root = values
    try lab.write(path, file.encoded())
  }

  /// Android would put it in the place of what arrives.
  @Test(
    "The previous version of other settings at a target is replaced, or the step is refused",
    arguments: [
      ("files.move: {from: files/new.xml, to: \(own), if-exists: replace}", false),
      ("files.copy: {from: files/new.xml, to: \(own), if-exists: replace}", false),
      (
        "files.write: {path: \(own), text: '<map><string name=\"theme\">new</string></map>', if-exists: replace}",
        false
      ),
      ("files.move: {from: files/new.xml, to: \(own)}", true),
    ])
  func previousVersionAtTarget(_ step: String, isRefused: Bool) throws {
    try lab.write("files/new.xml", "<map><string name=\"theme\">new</string></map>")
    try Self.put(lab, Self.backup, ["theme": "old"])
    let error = failure { try lab.run(step) }
    #expect(error.text.contains("exists already") == isRefused, "\(error)")
    #expect(try lab.settings(Self.own) == ["theme": isRefused ? "old" : "new"])
    #expect(try lab.exists(Self.backup) == isRefused)
    if !isRefused { try lab.rollback() }
    #expect(try lab.settings(Self.own) == ["theme": "old"])
  }

  @Test("A rollback keeps what the app has written since")
  func writtenSince() throws {
    try Self.put(lab, Self.own, Self.values)
    try lab.run("defaults.set: {values: {theme: light, opened: 4}, if-exists: replace}")
    #expect(try lab.settings(Self.own)?["opened"] == .int(4))
    var now = try #require(try lab.settings(Self.own))
    now["last_sync"] = .long(99)
    try Self.put(lab, Self.own, now)
    try lab.rollback()
    var expected = Self.values
    expected["last_sync"] = .long(99)
    #expect(try lab.settings(Self.own) == expected)
  }

  @Test("Between property lists and Android's formats, and exactly back by down steps")
  func otherFormats() throws {
    let list: ContainerPath = "files/old.plist"
    let values: PropertyListDictionary = [
      "n": 5, "r": 0.1, "l": ["b", "a"], "big": .integer(1 << 40), "s": "x",
    ]
    try Self.put(lab, list, values)
    try lab.migration(
      "0001_move.yaml", step: "defaults.move: {from: {file: \(list)}, to: {file: \(Self.own)}, all: true}")
    try lab.migration(
      "0002_copy.yaml",
      step: "defaults.copy: {from: {file: \(Self.own)}, to: {file: files/new.plist}, all: true}")
    try lab.baseline(0)
    let report = try lab.migrate()
    #expect(
      try lab.settings(Self.own) == [
        "n": .int(5), "r": .single(0.1), "l": .set(["a", "b"]), "big": .long(1 << 40), "s": "x",
      ])
    #expect(
      try lab.settings("files/new.plist") == [
        "n": 5, "r": .single(0.1), "l": ["a", "b"], "big": .integer(1 << 40), "s": "x",
      ])
    let notes = report.migrations.flatMap(\.notes).joined(separator: "\n")
    #expect(
      notes.contains("`l`: the array becomes a string set")
        && notes.contains("the string set becomes an array"))
    try lab.rollback(to: 0, down: true)
    #expect(try lab.settings(list) == values)
    #expect(try !lab.exists(Self.own) && !lab.exists("files/new.plist"))
  }

  @Test(
    "What a format cannot hold is refused with the setting's name",
    arguments: [
      ("defaults.set: {values: {a: !date 2026-01-01}}", "the setting `a` is a date"),
      ("defaults.set: {values: {a: {b: 1}}}", "the setting `a` is a dictionary"),
      ("defaults.set: {values: {a: !data AAEC}}", "the setting `a` is data"),
      ("defaults.set: {values: {a: [1]}}", "array of other values than different texts"),
      ("defaults.set: {values: {a: 0.123456789}}", "a real of 64 bits"),
      ("defaults.convert: {key: theme, type: int}", "does not fit the type int"),
    ])
  func refused(_ step: String, _ message: String) throws {
    try Self.put(lab, Self.own, Self.values)
    lab.expectFailing(step, message)
  }

  @Test(
    "An int that grows beyond 32 bits becomes a long, with a note; a chosen type needs none",
    arguments: [own, store])
  func grows(_ path: ContainerPath) throws {
    lab.configuration.defaults["standard"] = path
    try Self.put(lab, path, Self.values)
    let notes = try lab.run(
      "defaults.set: {values: {opened: 3000000000}, if-exists: replace}",
      "defaults.set: {values: {last_sync: 3000000000, new: 3000000000}, if-exists: replace}",
      "defaults.set: {values: {theme: !long 3000000000}, if-exists: replace}")
    expectOne(notes.filter { $0.contains("32 bits") }, "`opened`: the value does not fit")
    #expect(try lab.settings(path)?["opened"] == .long(3_000_000_000))
  }

  @Test(
    "A damaged settings file stops the steps on it only, and these may begin it anew",
    arguments: [
      ("shared_prefs/damaged.xml", []),
      ("files/datastore/damaged.preferences_pb", [UInt8](repeating: 0, count: 64)),
    ] as [(String, [UInt8])])
  func damaged(_ name: String, _ bytes: [UInt8]) throws {
    let path = try ContainerPath(name)
    try Self.put(lab, Self.own, Self.values)
    try lab.write(path, String(decoding: bytes, as: UTF8.self))
    lab.expectFailing("defaults.set: {suite: damaged, values: {a: 1}}", "is corrupt")
    let before = try lab.bytes(path)
    let notes = try lab.run(
      "defaults.set: {values: {fresh: 1}}", "files.write: {path: files/a.txt, text: hi}",
      "defaults.rename: {suite: damaged, keys: {x: y}, if-damaged: reset}",
      "defaults.set: {suite: damaged, values: {a: 1}, if-damaged: reset}")
    #expect(try lab.settings(path) == ["a": .int(1)] && lab.settings(Self.own)?["fresh"] == .int(1))
    #expect(notes.contains { $0.contains("it counts as having no settings") }, "\(notes)")
    try lab.rollback(to: 0)
    #expect(try lab.bytes(path) == before)
  }

  @Test(
    arguments: [
      ("defaults.convert: {key: opened, type: long}", "opened", .long(3)),
      ("defaults.convert: {key: last_sync, type: int}", "last_sync", .int(5)),
      ("defaults.convert: {key: last_sync, type: integer}", "last_sync", .long(5)),
      ("defaults.convert: {key: last_sync, type: string}", "last_sync", "5"),
      ("defaults.convert: {key: zoom, map: {1.5: large}}", "zoom", "large"),
      ("defaults.convert: {key: opened, map: {3: 7}}", "opened", .int(7)),
      ("defaults.convert: {key: last_sync, to: sync, map: {1: 2}, unmapped: keep}", "sync", .long(5)),
      ("defaults.set: {values: {last_sync: 7}, if-exists: replace}", "last_sync", .long(7)),
      ("defaults.set: {values: {last_sync: !int 7}, if-exists: replace}", "last_sync", .int(7)),
      ("defaults.set: {values: {tags: [a]}, if-exists: replace}", "tags", .set(["a"])),
      ("defaults.set: {values: {wide: 3000000000}}", "wide", .long(3_000_000_000)),
      ("defaults.rename: {keys: {tags: labels}}", "labels", .set(["home", "work"])),
    ] as [(String, String, PropertyListValue)], [own, store])
  func types(_ row: (step: String, key: String, value: PropertyListValue), _ path: ContainerPath) throws {
    lab.configuration.defaults["standard"] = path
    try Self.put(lab, path, Self.values)
    let before = try lab.bytes(path)
    try lab.run(row.step)
    #expect(try lab.settings(path)?[row.key] == row.value)
    try lab.rollback(to: 0, down: true)
    #expect(try lab.bytes(path) == before)
  }

  @Test("A suite is the file of its name; where both exist, or none, the step has to say which")
  func suites() throws {
    lab.expectFailing(
      "defaults.set: {suite: settings, values: {a: 1}}",
      "neither of the settings files `shared_prefs/settings.xml` and `\(Self.store)` exists")
    try Self.put(lab, Self.store, ["a": .long(1)])
    let replaced = "defaults.set: {suite: settings, values: {a: 2}, if-exists: replace}"
    #expect(try lab.settings(Self.store, after: replaced) == ["a": .long(2)])
    try Self.put(lab, "shared_prefs/settings.xml", [:])
    lab.expectFailing("defaults.set: {suite: settings, values: {a: 1}}", "both settings files")
  }

  private static let elsewhere: ContainerPath = "shared_prefs/settings.xml"
  private static let overwritten: String = """
      - files.write: {path: \(own), text: '<map><string name="k">MAIN</string></map>', if-exists: replace}
      - files.write: {path: \(backup), text: '<map><string name="k">BAK</string></map>', if-exists: replace}
    """

  /// The main file before, its previous version, the step, and the settings afterwards.
  @Test(
    "The previous version of a file counts: it is read, replaced, and restored with the file",
    arguments: [
      ("<map>\n    <str", ["k": "a"], "defaults.set: {values: {k: b}, if-exists: replace}", ["k": "b"]),
      (nil, ["k": "a", "x": true], "defaults.delete: {keys: [k], destructive: test}", ["x": true]),
      ("<map />", ["k": "a"], "defaults.set: {values: {k: b}, if-exists: replace}", ["k": "b"]),
      ("<map />", ["k": "a"], "files.delete: {path: \(own), destructive: test}", nil),
      ("<map><str", ["k": "a"], "files.move: {from: \(own), to: \(elsewhere)}", nil),
      ("<map />", nil, overwritten, ["k": "BAK"]), ("<map />", ["k": "a"], overwritten, ["k": "BAK"]),
    ] as [(String?, PropertyListDictionary?, String, PropertyListDictionary?)])
  func previousVersion(
    _ main: String?, _ previous: PropertyListDictionary?, _ step: String, _ settings: PropertyListDictionary?
  ) throws {
    for down in step.hasPrefix("files.delete") ? [false, true] : [false] {
      let lab = try Self.lab()
      func states() throws -> [[UInt8]?] {
        try [Self.own, Self.backup, Self.elsewhere].map { try lab.exists($0) ? try lab.bytes($0) : nil }
      }
      if let main { try lab.write(Self.own, main) }
      if let previous { try Self.put(lab, Self.backup, previous) }
      let before = try states()
      try lab.run(step)
      let after = try states()
      #expect(try lab.settings(Self.own) == settings)
      #expect((after[1] != nil) == (step == Self.overwritten))
      #expect(after[2] == (step.hasPrefix("files.move") ? before[1] : nil))
      try lab.rollback(to: 0, down: down)
      #expect(try states() == before)
      if down { continue }
      try lab.rollback(redoing: true)
      #expect(try states() == after)
    }
  }

  @Test("What the app wrote since is not replaced by the previous version")
  func previousVersionAndTheApp() throws {
    try lab.write(Self.own, "<map><str")
    try Self.put(lab, Self.backup, Self.values)
    try lab.run("defaults.set: {values: {theme: light}, if-exists: replace}")
    var now = try #require(try lab.settings(Self.own))
    now["opened"] = .int(9)
    try Self.put(lab, Self.own, now)
    try lab.rollback()
    var expected = Self.values
    expected["opened"] = .int(9)
    #expect(try lab.settings(Self.own) == expected && !lab.exists(Self.backup))

    let other = try Self.lab()
    try Self.put(other, Self.own, ["k": "OLD"])
    try other.run(Self.overwritten)
    try Self.put(other, Self.own, ["k": "APP"])
    let changed = try (other.bytes(Self.own), other.bytes(Self.backup))
    #expect(failure { try other.rollback() }.code != nil)
    #expect(try (other.bytes(Self.own), other.bytes(Self.backup)) == changed)
  }

  @Test(
    "A value that contains its name, or that has fields of a later version, is neither renamed nor moved",
    arguments: [
      "defaults.rename: {keys: {a: c}}", "defaults.rename: {keys: {a: b, b: a}}",
      "defaults.copy: {keys: {a: c}, to: {file: shared_prefs/other.xml}}",
      "defaults.move: {keys: {a: c}, to: {file: files/datastore/other.preferences_pb}}",
      "defaults.copy: {keys: [a], to: {file: files/other.plist}}",
    ], [own, store])
  func notTransferable(_ step: String, _ path: ContainerPath) throws {
    lab.configuration.defaults["standard"] = path
    try lab.write(path, "<map><later name='a'>x</later><int name='b' value='1' /></map>")
    if path == Self.store {
      // A field 3 beside the value of `a`.
      let bytes: [UInt8] = [
        0x0A, 9, 0x0A, 1, 0x61, 0x12, 2, 0x08, 1, 0x18, 1, 0x0A, 7, 0x0A, 1, 0x62, 0x12, 2, 0x08, 1,
      ]
      try lab.write(path, bytes)
    }
    let error = lab.failing(step)
    #expect(
      error.contains("only its app understands") || error.contains("leave it where it is"), "\(error)")
    #expect(error.contains("the setting `"), "\(error)")
  }

  @Test("A rollback does not lose fields of a later version: after changes of the app it is a conflict")
  func rolledBackFields() throws {
    lab.configuration.defaults["standard"] = Self.store
    let bytes: [UInt8] = [0x0A, 9, 0x0A, 1, 0x61, 0x12, 2, 0x08, 1, 0x18, 1]
    try lab.write(Self.store, bytes)
    try lab.run("files.write: {path: \(Self.store), text: '', if-exists: replace}")
    try Self.put(lab, Self.store, ["new": true])
    #expect(failure { try lab.rollback() }.code != nil)
    try Self.put(lab, Self.store, [:])
    try lab.rollback()
    #expect(try lab.bytes(Self.store) == bytes)
  }

  @Test("Two states compare by what the app reads, although the files themselves are equal")
  func differenceOfPreviousVersions() throws {
    try Self.put(lab, Self.own, ["a": .int(1)])
    let old = try Self.snapshot(lab)
    try Self.put(lab, Self.backup, ["a": .long(1), "b": true])
    let settings = try Self.difference(old, lab).settings
    #expect(settings.map(\.key) == ["a", "b"] && settings.allSatisfy { $0.file == Self.own })
  }

  private static func snapshot(_ lab: Lab) throws -> String {
    let copy = lab.directory("copy")
    try FileManager.default.copyItem(atPath: lab.directory("container"), toPath: copy)
    return copy
  }

  private static func difference(_ old: String, _ lab: Lab) throws -> ContainerDifference {
    let before = try Container(at: old, configuration: lab.configuration)
    return try Transaction.inspect(before) { before in
      try lab.look { after in
        try Comparison(of: ContentSide(live: before), with: ContentSide(live: after)).difference
      }
    }
  }

  @Test(
    "Encrypted preferences are compared, moved and rolled back as files, and no setting in them is touched")
  func encrypted() throws {
    let path: ContainerPath = "shared_prefs/secret.xml"
    let keyset = "__androidx_security_crypto_encrypted_prefs_key_keyset__"
    let file: PropertyListDictionary = ["AQUx8tYb": "AVp7dGhpcyBpcyBtYWRlIHVw", keyset: "12a901"]
    try Self.put(lab, path, file)
    let before = try lab.bytes(path)
    for step in [
      "defaults.set: {suite: secret, values: {a: 1}}",
      "defaults.delete: {suite: secret, keys: [a], destructive: x}",
      "defaults.move: {from: {suite: secret}, all: true}",
      "defaults.move: {to: {suite: secret}, keys: [a]}",
    ] {
      #expect(lab.failing(step).contains("keystore"), "\(step)")
    }
    try lab.run("files.move: {from: \(path), to: shared_prefs/hidden.xml}")
    #expect(try lab.bytes("shared_prefs/hidden.xml") == before)
    try lab.rollback()
    #expect(try lab.bytes(path) == before)

    let old = try Self.snapshot(lab)
    var changed = file
    changed["AQUx8tYb"] = "AVp7b3RoZXI="
    try Self.put(lab, path, changed)
    let difference = try Self.difference(old, lab)
    #expect(difference.settings.isEmpty && difference.files.map(\.path) == [path])
  }

  @Test(
    "A version marker is an `int` as the app reads it, or keeps the type that it has",
    arguments: [(own, .int(1), .int(2)), (store, .long(1), .long(2))]
      as [(ContainerPath, PropertyListValue, PropertyListValue)])
  func versionMarker(_ path: ContainerPath, _ first: PropertyListValue, _ second: PropertyListValue) throws {
    lab.configuration.defaults["standard"] = path
    lab.configuration.versionMarkers = [.init(place: .defaults(key: "schema"), at: [1: 1, 2: 2])]
    try Self.put(lab, path, ["schema": first])
    try lab.migration("0001_a.yaml", "steps: []")
    try lab.migration("0002_b.yaml", step: "defaults.set: {values: {b: true}}")
    #expect(try lab.migrate().migrations.count == 1)
    #expect(try lab.settings(path) == ["schema": second, "b": true])
  }

  @Test("A file that a step does not change is not rewritten")
  func untouched() throws {
    // An entry of a later version, and no order.
    let bytes: [UInt8] = [
      0x0A, 7, 0x0A, 1, 0x7A, 0x12, 2, 0x08, 1, 0x0A, 7, 0x0A, 1, 0x61, 0x12, 2, 0x08, 1, 0x78, 1,
    ]
    try lab.write(Self.store, bytes)
    let step = "defaults.set: {file: \(Self.store), values: {a: true}, if-exists: replace}"
    let after = try lab.tried(step) { stage, _ in try stage.read(Self.store) }
    #expect(after == bytes)
  }

  @Test(
    "A secret that moves to the vault is nowhere in the clear, also not in what is kept of a previous version"
  )
  func movedToVault() throws {
    let secret = "canary-01234-android"
    var values = Self.values
    values["token"] = .string(secret)
    try Self.put(lab, Self.own, ["token": .string(secret)])
    try Self.put(lab, Self.backup, values)
    let before = try lab.bytes(Self.backup)
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    try lab.run(
      "vault.move-from-defaults: {key: token, service: s, account: a, accessible: afterFirstUnlock}")
    #expect(try lab.settings(Self.own) == Self.values)
    #expect(try lab.files(with: secret) == [])
    try lab.rollback()
    #expect(try lab.bytes(Self.backup) == before)
  }

  @Test("A stage in Swift reads and writes Android's types")
  func swiftStage() throws {
    try Self.put(lab, Self.own, Self.values)
    try lab.baseline(0)
    let stage = PlannedMigration.custom(version: 1, "types") { context in
      let opened = try context.settings.value(for: SettingKey<Int32>("opened")) ?? 0
      let synced = try context.settings.value(for: SettingKey<Int64>("last_sync")) ?? 0
      try context.settings.set(opened + 1, for: SettingKey<Int32>("opened"))
      try context.settings.set(synced + 1, for: SettingKey<Int64>("last_sync"))
      try context.settings.set(0.1, for: SettingKey<Float>("zoom"))
      try context.settings.set(["new"], for: SettingKey<StringSet>("tags"))
      try context.settings.set(7, for: SettingKey<Int>("plain"))
    }
    try lab.migrate(MigrationCatalog(migrations: [stage]))
    #expect(
      try lab.settings(Self.own) == [
        "theme": "dark", "opened": .int(4), "last_sync": .long(6), "zoom": .single(0.1), "synced": true,
        "tags": .set(["new"]), "plain": .int(7),
      ])
  }
}
