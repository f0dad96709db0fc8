import AppStores
import Cryptography
import Formats
import Foundation
import GRDB
import TestSupport

/// A container with a bit of everything: settings in both formats, databases with and without a log, files, links,
/// attributes, a vault. The same seed gives the same one.
struct RandomContainer {
  static let suites = ["Library/Preferences/com.example.notes.plist", "Library/Preferences/group.plist"]
  /// The names of the databases in `drydock.yaml`, in the order of their paths.
  static let databaseNames = ["notes", "log"]
  static let databases = ["Documents/database.sqlite", "Documents/log.db"]
  static let moved = ["Library/Application Support/database.sqlite", "Library/log.db"]
  static let keys = [
    "a", "b", "c", "d", "a.b", "ключ", "two words", "true", "12", "prefix.x", "prefix.y", "doc", "json",
  ]
  static let paths = [
    "Documents/one.txt", "Documents/two.txt", "Documents/Sub/three.bin", "Documents/Sub/Deep/four",
    "Library/five.json", "Documents/Sub/link", "Documents/Empty",
  ]
  static let accounts = ["first", "second", "third"]

  let root: String
  private var random: SeededRandom

  /// Makes it in an empty directory.
  static func make(in root: String, seed: UInt64, keys: DeviceKeys) throws {
    var container = RandomContainer(root: root, random: SeededRandom(seed: seed &* 2 &+ 1))
    for folder in [
      "Documents/Sub/Deep", "Documents/Empty", "Library/Preferences", "Library/Application Support",
    ] {
      try RawFiles.createDirectories(root + "/" + folder)
    }
    try container.settings()
    try container.files()
    for (name, path) in zip(databaseNames, databases) {
      try container.database(path, SchemaPart.of(name, seed: seed))
    }
    if container.chance(2) { try container.vault(keys) }
  }

  private mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
  private func url(_ path: String) -> URL { URL(fileURLWithPath: root + "/" + path) }

  private mutating func settings() throws {
    let formats: [PropertyListFile.Format] = Self.suites.map { _ in chance(2) ? .binary : .xml }
    // A step may move any value to the other file, and XML rounds dates.
    let common: PropertyListFile.Format = formats.contains(.xml) ? .xml : .binary
    for (number, path) in Self.suites.enumerated() where number == 0 || !chance(4) {
      var root: PropertyListDictionary = [:]
      for key in Self.keys where !chance(3) { root[key] = Self.value(&random, format: common) }
      root["doc"] = .dictionary(["list": .array([1, "x"]), "version": 1])
      root["json"] = .string(#"{"b": 1.50, "a": [1, 2], "version": 1}"#)
      root["anchor"] = true
      root["dataSchemaVersion"] = 0
      try Data(PropertyListFile(format: formats[number], root: root).encoded()).write(to: url(path))
    }
  }

  /// A value of any type that the format can hold.
  static func value(
    _ random: inout SeededRandom, format: PropertyListFile.Format, depth: Int = 0
  ) -> PropertyListValue {
    let number = Int.random(in: 0..<1000, using: &random)
    switch Int.random(in: 0..<(depth < 2 ? 11 : 9), using: &random) {
    case 0: return .string("text \(number)")
    case 1: return .string(["", "yes", "12", "true", "1.5", "é\u{301}\u{1F600}", "a\nb"][number % 7])
    case 2: return .boolean(number % 2 == 0)
    case 3: return .integer(Int64(number - 500))
    case 4: return .integer([Int64.max, Int64.min, 0, 1][number % 4])
    case 5: return .real([0.1, -2.5, 1e300, 3.0, 12345678.9][number % 5])
    case 6:
      let fraction = format == .binary ? 0.25 : 0
      return .date(Date(timeIntervalSinceReferenceDate: Double(number * 86_400) + fraction))
    case 7: return .data(random.bytes(number % 20))
    case 8: return format == .binary && number % 2 == 0 ? .single(Float(number) / 4) : .unsigned(UInt64.max)
    case 9: return .array((0..<number % 3).map { _ in value(&random, format: format, depth: depth + 1) })
    default:
      return .dictionary(
        PropertyListDictionary(
          (0..<number % 3).map {
            ("k\($0)", value(&random, format: format, depth: depth + 1))
          }))
    }
  }

  private mutating func files() throws {
    for path in Self.paths.dropLast(2) where !chance(5) {
      try Data(random.bytes(Int.random(in: 0..<300, using: &random))).write(to: url(path))
      if chance(3) {
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url(path).path)
      }
      if chance(3) {
        try ExtendedAttributes.set("user.note", random.bytes(5), of: Array(url(path).path.utf8))
      }
    }
    try Data(#"{"b": 1.50, "list": [1, {"x": null}], "version": 1}"#.utf8).write(to: url("Library/five.json"))
    if chance(2) {
      try FileManager.default.createSymbolicLink(
        atPath: url("Documents/Sub/link").path,
        withDestinationPath: ["../one.txt", "gone", "Deep"][
          Int.random(in: 0..<3, using: &random)])
    }
    if chance(2), FileManager.default.fileExists(atPath: url("Documents/one.txt").path) {
      try FileManager.default.linkItem(
        atPath: url("Documents/one.txt").path, toPath: url("Documents/hard").path)
    }
  }

  /// With a live log where the dice say so: taken while a connection has it open, as after the death of an app.
  private mutating func database(_ path: String, _ parts: [SchemaPart]) throws {
    let hasLog = chance(2)
    let queue = try DatabaseQueue(path: root + "/tmp.db")
    try queue.writeWithoutTransaction { db in
      if hasLog { try db.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0") }
      try db.execute(
        sql: "CREATE TABLE task(id INTEGER PRIMARY KEY, title TEXT, done INTEGER NOT NULL DEFAULT 0)")
      try db.execute(
        sql: "CREATE TABLE tag(name TEXT PRIMARY KEY, task INTEGER REFERENCES task(id)) WITHOUT ROWID")
      if hasLog { try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
      for part in parts { try part.make(db) }
      for number in 0..<Int.random(in: 0..<8, using: &random) {
        try db.execute(
          sql: "INSERT INTO task(title, done) VALUES (?, ?)", arguments: ["task \(number)", number % 2])
        try db.execute(sql: "INSERT INTO tag VALUES (?, ?)", arguments: ["tag \(number)", number + 1])
      }
    }
    for suffix in hasLog ? ["", "-wal"] : [""] {
      let source = root + "/tmp.db" + suffix
      if FileManager.default.fileExists(atPath: source) {
        try FileManager.default.copyItem(atPath: source, toPath: root + "/" + path + suffix)
      }
    }
    try queue.close()
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: root + "/tmp.db" + suffix)
    }
  }

  private mutating func vault(_ keys: DeviceKeys) throws {
    var vault = try Vault(new: keys)
    for account in Self.accounts where !chance(3) {
      var item = VaultItem(
        service: "s", accessGroup: nil, accessibility: .whenUnlocked,
        value: SecretBytes(Array("made up \(random.next())".utf8)))
      item.account = account
      vault.put(item)
    }
    try RawFiles.createDirectories(url("Library/Vault").path)
    try Data(vault.sealed()).write(to: url(Stores.vault))
  }
}
