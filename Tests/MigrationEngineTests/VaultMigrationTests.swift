import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import Formats
import Foundation
import TestSupport
import Testing

/// Migrations that open the vault: the key that they need, what they check, and how they are reverted.
@Suite struct VaultMigrationTests {
  static let move = """
    steps:
      - vault.move-from-defaults: {key: token, service: s, account: a, accessible: afterFirstUnlock}
    verify:
      - vault: {service: s, account: a, accessible: afterFirstUnlock}
      - vault: {service: s, length: 14}
      - vault: {service-prefix: s, count: 1}
      - defaults: {key: token, exists: false}
    """

  private let lab: Lab

  init() throws {
    lab = try Lab()
    try lab.set(["token": "canary-01234-x", "theme": "dark"])
    try lab.migration("0001_first.yaml", step: "defaults.set-default: {values: {size: 1}}")
    try lab.migration("0002_move.yaml", Self.move)
    try lab.migration("0003_last.yaml", step: "defaults.set: {values: {done: true}}")
    try lab.baseline(0)
  }

  @Test func withoutTheKeyNothingIsBegun() throws {
    let before = try lab.tree()
    for _ in 0..<2 {
      expectError(.vaultLocked, "vault.move-from-defaults of the migration 0002_move needs the device key") {
        try lab.migrate()
      }
    }
    try lab.expectUntouched(since: before)
    // Up to there no key is needed; nor after it.
    #expect(try lab.migrate(to: 1).to == 1)
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    let moved = try lab.migrate(to: 2).moved
    #expect(moved.map(\.key) == ["token"] && moved.map(\.file) == [Lab.settings])
    lab.deviceKeys = nil
    #expect(try lab.migrate().to == 3)
  }

  @Test func aWrongKeyOrADamagedVaultChangesNothing() throws {
    let keys = DeviceKeys(try AgeIdentity.generate())
    let path = lab.path("Library/Vault/vault.age")
    try RawFiles.createDirectories(lab.path("Library/Vault"))
    let sealed = try Vault(new: keys).sealed()
    var damaged = sealed
    damaged[damaged.count - 1] ^= 1
    let cases: [([UInt8], DeviceKeys, DrydockError.Code)] = [
      (sealed, DeviceKeys(try AgeIdentity.generate()), .vaultLocked), (damaged, keys, .badVault),
      (Array("no vault".utf8), keys, .badVault),
    ]
    for (bytes, key, code) in cases {
      try Data(bytes).write(to: URL(fileURLWithPath: path))
      lab.deviceKeys = key
      expectError(code) { try lab.migrate() }
      #expect(try lab.settings()?["token"] == "canary-01234-x" && lab.settings()?["size"] == nil)
    }
    // What does not open the vault runs beside a damaged one.
    #expect(try lab.migrate(to: 1).to == 1)
  }

  /// Whatever a secret was called, and however short it is, a dry run does not show it.
  @Test func aDryRunHidesWhatMoves() throws {
    for value in ["canary-01234-x", "abc", 4711] as [PropertyListValue] {
      try Lab.with { lab in
        lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
        try lab.set(["blob": value])
        try lab.migration(
          "0001_move.yaml", step: "vault.move-from-defaults: {key: blob, service: s, as: text}")
        try lab.baseline(0)
        let text = "\(try lab.dryRun())"
        #expect(!["canary", "\"abc\"", "4711"].contains { text.contains($0) }, "\(text)")
      }
    }
  }

  @Test func theSecretIsNowhereAndComesBack() throws {
    let keys = DeviceKeys(try AgeIdentity.generate())
    lab.deviceKeys = keys
    let before = try lab.tree()
    let report = try lab.migrate()
    #expect(try lab.files(with: "canary") == [])
    let encoded = String(decoding: try JSONEncoder().encode(report), as: UTF8.self)
    let history = String(decoding: try lab.history()?.encoded() ?? [], as: UTF8.self)
    #expect(!encoded.contains("canary") && !history.contains("canary") && encoded.contains("\"token\""))

    // What the app put into the vault since stays.
    _ = try Transaction.run(on: lab.container, .restore, summary: "app", options: lab.options) { stage in
      var vault = try #require(try stage.vault())
      vault.put(VaultItem(service: "app", account: "own", value: SecretBytes([1])))
      try stage.setVault(vault)
    }
    _ = try Transaction.rollback(lab.container, options: lab.options)
    _ = try Transaction.rollback(lab.container, options: lab.options)
    #expect(try lab.tree().differences(from: before) == [])
  }

  /// Whatever earlier migrations copied, moved or deleted: a plain copy is in no undo entry.
  @Test func copiesOfEarlierMigrationsAreSealed() throws {
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    try lab.write("Library/Preferences/old.plist", settings: ["token": "canary-01234-x"])
    try lab.write("Documents/session.json", #"{"token": "canary-01234-x"}"#)
    try lab.database("CREATE TABLE t (a); INSERT INTO t VALUES ('canary-01234-x'); DELETE FROM t")
    try lab.migration(
      "0001_first.yaml",
      """
      steps:
        - files.copy: {from: \(Lab.settings), to: Documents/copy.plist}
        - defaults.move-to-file: {key: theme, to: Documents/theme.txt}
        - defaults.delete: {file: Library/Preferences/old.plist, keys: token, destructive: old}
        - files.delete: {path: [Documents/session.json, \(Lab.newDatabase)], destructive: old}
      """)
    let before = try lab.tree()
    try lab.migrate(to: 1)
    try lab.migration(
      "0002_move.yaml",
      Self.move.replacing(
        "verify:", with: "  - files.delete: {path: Documents/copy.plist, destructive: x}\nverify:"))
    try lab.migrate()
    #expect(try lab.files(with: "canary") == [])
    for _ in 0..<2 { _ = try Transaction.rollback(lab.container, options: lab.options) }
    #expect(try lab.tree().differences(from: before) == [])
  }

  @Test func aRollbackGoesItemByItem() throws {
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    _ = try lab.migrate()
    // The app itself, with no transaction of Drydock's.
    let path = lab.path("Library/Vault/vault.age")
    let keys = try #require(lab.deviceKeys)
    var vault = try Vault(
      opening: Array(Data(contentsOf: URL(fileURLWithPath: path))), with: keys, path: path)
    vault.put(VaultItem(service: "app", account: "own", value: SecretBytes([1])))
    try Data(try vault.sealed()).write(to: URL(fileURLWithPath: path))
    _ = try Transaction.rollback(lab.container, options: lab.options)
    let after = try lab.look { try $0.vault() }
    #expect(after?.sorted.map(\.description) == ["app/own"])
    #expect(try lab.settings()?["token"] == "canary-01234-x")
  }

  @Test(
    arguments: [
      ("vault: {service: s, exists: false}", "verify: the vault item s/a is there"),
      ("vault: {service: other, exists: true}", "no vault item has service `other`"),
      ("vault: {service: s, accessible: whenUnlocked}", "is accessible afterFirstUnlock, not whenUnlocked"),
      ("vault: {service: s, length: 3}", "has 14 bytes, not 3"),
      ("vault: {service: s, count: 2}", "1 vault items have"),
      ("vault: {service: s, equals: before}", "do not have the values that they had before"),
      ("vault: {service: s, count: before}", "1 vault items have service `s`, not 0"),
      ("vault: {service: other, length: 3}", "no vault item has service `other`"),
    ])
  func whatAVerifyRefuses(_ assertion: String, _ message: String) throws {
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    try lab.migration("0002_move.yaml", Self.move + "\n  - \(assertion)\n")
    let error = failure { try lab.migrate() }
    #expect(error.code == .verifyFailed && error.text.contains(message), "\(error.text)")
    #expect(!error.text.contains("canary"))
    #expect(try lab.settings()?["token"] != nil)
  }
}
