import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite("Stages in Swift") struct CustomStageTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// Runs a closure as the only stage of a container of version 0.
  @discardableResult
  private func run(
    _ lab: Lab, needsVault: Bool = false, _ change: @escaping PlannedMigration.Change
  ) throws -> [String] {
    if try lab.history() == nil { try lab.baseline(0) }
    let stage = PlannedMigration.custom(version: 1, "stage", needsVault: needsVault, up: change)
    return try lab.migrate(MigrationCatalog(migrations: [stage])).migrations.first?.notes ?? []
  }

  @Test("A secret that a closure moves out of a file or a database is in no undo entry")
  func movedSecrets() throws {
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    try lab.write("Documents/token.txt", "canary-01234-x")
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); INSERT INTO t VALUES ('canary-56789-y')")
    try run(lab, needsVault: true) { context in
      let token = try context.files.read("Documents/token.txt")
      try context.vault.put(VaultItem(service: "notes", account: "token", value: SecretBytes(token)))
      try context.files.remove("Documents/token.txt")
      try context.write(database: "notes") {
        try $0.execute(sql: "PRAGMA secure_delete = ON; DELETE FROM t")
      }
    }
    let kept = try TreeListing(lab.directory.path).paths.filter { $0.contains(".drydock-") }
    #expect(try kept.count > 2 && lab.files(with: "canary", in: ".drydock-") == [])
    try lab.rollback()
    #expect(try lab.exists("Documents/token.txt"))
  }

  @Test("What a closure throws has the stage's name and place, and nothing has changed")
  func failures() throws {
    struct Own: LocalizedError {
      var errorDescription: String? { "the moon is full" }
    }
    let changes: [(String, PlannedMigration.Change)] = [
      ("the moon is full", { _ in throw Own() }),
      (
        "no such table: nope in `DELETE FROM nope WHERE a = ?`",
        {
          try $0.write(database: "notes") {
            try $0.execute(sql: "DELETE FROM nope\n WHERE a = ?", arguments: ["secret"])
          }
        }
      ),
      (
        "the setting `k` is the integer 2, not of type String",
        { _ = try $0.settings.value(for: SettingKey<String>("k")) }
      ),
      ("did you mean `notes`?", { try $0.write(database: "nots") { _ in } }),
      (
        "a statement ended the transaction",
        { try $0.write(database: "notes") { try $0.execute(sql: "COMMIT") } }
      ),
      ("drydock.yaml has no settings file `group`", { _ = try $0.settings(suite: "group").keys }),
      ("is a database", { try $0.files.write([1], to: Lab.oldDatabase) }),
      ("Drydock keeps its history", { try $0.files.remove("Library/Application Support/.drydock") }),
      ("Drydock's history", { try $0.files.move("Library", to: "Else") }),
      ("not in the container", { _ = try $0.files.read("none") }),
      (
        "the setting `none` does not exist",
        { try $0.run(.step("defaults.rename", ["keys": ["none": "x"], "if-missing": "fail"])) }
      ),
    ]
    try lab.set(["k": 1])
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); INSERT INTO t VALUES (1);")
    try lab.baseline(0)
    let before = try lab.tree()
    for (message, change) in changes {
      let error = failure {
        try run(lab) { context in
          try context.settings.set(2, for: SettingKey<Int>("k"))
          try context.write(database: "notes") { try $0.execute(sql: "DELETE FROM t") }
          try change(context)
        }
      }
      #expect(error.code == .stepFailed, "\(error.text)")
      #expect(error.text.contains(message), "\(error.text)")
      #expect(
        error.text.contains(#/^MigrationEngineTests/CustomStageTests\.swift:\d+:\d+: (stage: |drydock)/#),
        "\(error.text)")
      #expect(!error.text.contains("secret"))
      try lab.expectUntouched(since: before)
    }
  }

  @Test("A database is changed by GRDB in one transaction; foreign keys are checked at its end")
  func databases() throws {
    try lab.database(
      Lab.oldDatabase,
      "CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p REFERENCES p (id)); INSERT INTO p VALUES (1); INSERT INTO c VALUES (1);"
    )
    expectFailure("references to missing rows of p (1 more than before)") {
      try run(lab) { try $0.write(database: "notes") { try $0.execute(sql: "DELETE FROM p") } }
    }
    #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM p") == [["n": 1]])
    let notes = try run(lab) { context in
      let count = try context.read(database: "notes") {
        try Int.fetchOne($0, sql: "SELECT count(*) FROM p")
      }
      let moved = try context.write(database: "notes") { db in
        try db.create(table: "q") { $0.autoIncrementedPrimaryKey("id") }
        return try Int.fetchOne(db, sql: "SELECT count(*) FROM c")
      }
      context.note("\(count == .some(1)) and \(moved == .some(1))")
    }
    #expect(notes.count == 1 && notes[0].hasSuffix(": stage: true and true"), "\(notes)")
    #expect(try lab.query(Lab.oldDatabase, "SELECT count(*) AS n FROM q") == [["n": 0]])
  }

  @Test("A database that does not exist is skipped with a remark, or the stage fails")
  func missingDatabase() throws {
    try lab.set([:])
    let error = failure { try run(lab) { try $0.write(database: "notes", ifMissing: .fail) { _ in } } }
    #expect(error.text.hasSuffix("stage: the database notes is not in the container"), "\(error.text)")
    let notes = try run(lab) { context in
      let result = try context.write(database: "notes") { _ in 1 }
      if result == nil { context.note("nothing") }
    }
    #expect(
      notes.map { $0.replacing(#/^.*: stage: /#, with: "") } == [
        "the database notes does not exist: skipped", "nothing",
      ])
  }

  @Test("Files are written, moved and removed; a database goes as a unit")
  func files() throws {
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a);")
    try lab.write("Documents/a.txt", "a")
    try lab.write("Documents/b.txt", "b")
    try run(lab) { context in
      let files = context.files
      let text = String(decoding: try files.read("Documents/a.txt"), as: UTF8.self)
      try files.write(Data((text + text).utf8), to: "Documents/New/c.txt")
      try files.copy("Documents/a.txt", to: "Documents/d.txt")
      try files.remove("Documents/b.txt")
      try files.move(Lab.oldDatabase, to: Lab.newDatabase)
      try files.createDirectory("Documents/Empty")
      let names = try files.children(of: "Documents").map(\.nameString)
      guard names == ["Empty", "New", "a.txt", "d.txt"], try !files.exists(Lab.oldDatabase) else {
        throw StageProblem(names.joined(separator: ", "))
      }
      // Named in two places: it is found where it is now.
      try context.write(database: "notes") { try $0.execute(sql: "INSERT INTO t VALUES (1)") }
    }
    #expect(try lab.query(Lab.newDatabase, "SELECT a FROM t") == [["a": 1]])
    let written = try Data(contentsOf: URL(fileURLWithPath: lab.path("Documents/New/c.txt")))
    #expect(written == Data("aa".utf8))
  }

  private static let canary = "canary-56789-y"
  private static let id = VaultItem.ID(service: "s", account: "a")

  private static func item(_ text: String) -> VaultItem {
    VaultItem(
      service: "s", account: "a", accessibility: .afterFirstUnlock, value: SecretBytes(Array(text.utf8)))
  }

  private func catalog(_ change: @escaping PlannedMigration.Change) throws -> MigrationCatalog {
    try MigrationCatalog(migrations: [
      .lightweight(version: 1, "first", [.step("defaults.set", ["values": ["first": true]])]),
      .custom(version: 2, "tokens", needsVault: true, up: change),
    ])
  }

  @Test("Without the device key nothing is begun")
  func locked() throws {
    try lab.set(["token": .string(Self.canary)])
    try lab.baseline(0)
    let catalog = try catalog { _ in throw StageProblem("it ran") }
    expectError(.vaultLocked, "tokens of the migration 0002_tokens needs the device key") {
      try lab.migrate(catalog)
    }
    #expect(try lab.migrate(catalog, to: 1).to == 1)
  }

  @Test("Items are put, changed and removed, and sealed once")
  func items() throws {
    try lab.set([:])
    try lab.baseline(0)
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    let catalog = try catalog { context in
      try context.vault.put(Self.item("one"))
      try context.vault.put(VaultItem(service: "other", value: SecretBytes([1])))
      guard var item = try context.vault.item(Self.id), try context.vault.items().count == 2 else {
        throw StageProblem("not put")
      }
      item.label = "label"
      try context.vault.put(item)
      guard try context.vault.remove(VaultItem.ID(service: "other")),
        try !context.vault.remove(VaultItem.ID(service: "none"))
      else { throw StageProblem("not removed") }
      try context.run(.step("vault.set-accessibility", ["accessible": "whenUnlocked", "service": "s"]))
    }
    try lab.migrate(catalog)
    let vault = try #require(try lab.look { try $0.vault() })
    #expect(vault.items.count == 1)
    let item = try #require(vault[Self.id])
    #expect(item.value == SecretBytes(Array("one".utf8)) && item.label == "label")
    #expect(item.accessibility == .whenUnlocked && item.created != nil && item.modified != nil)
  }

  @Test(
    "A setting that becomes an item, also as a part of one, stays nowhere in the clear",
    arguments: [false, true])
  func moved(asDocument: Bool) throws {
    try lab.set(["token": .string(Self.canary), "theme": "dark"])
    try lab.baseline(0)
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    let key = SettingKey<String>("token")
    let catalog = try catalog { context in
      let token = try context.settings.value(for: key) ?? ""
      try context.vault.put(Self.item(asDocument ? #"{"token":"\#(token)"}"# : token))
      try context.settings.set(nil, for: key)
      context.note("moved \(token)")
    }
    #expect(try lab.files(with: Self.canary).count == 1)
    let failing = try self.catalog { context in
      try context.vault.put(Self.item(Self.canary))
      throw StageProblem("cannot use \(Self.canary) here")
    }
    let error = failure { try lab.migrate(failing) }
    #expect(error.text.contains("tokens: cannot use (secret, 14 characters, #"), "\(error.text)")
    #expect(!error.text.contains(Self.canary))
    let report = try lab.migrate(catalog)
    #expect(report.moved.map(\.key) == ["token"])
    #expect(!"\(report)".contains(Self.canary) && "\(report)".contains("moved (secret"), "\(report)")
    #expect(try lab.files(with: Self.canary) == [])
    #expect(try lab.settings() == ["theme": "dark", "first": true])
    // The transaction's undo still has it.
    _ = try Transaction.rollback(try lab.container, options: lab.options)
    #expect(try lab.settings() == ["token": .string(Self.canary), "theme": "dark"])
  }
}

struct StageProblem: Error, CustomStringConvertible {
  let description: String

  init(_ text: String) { description = text }
}
