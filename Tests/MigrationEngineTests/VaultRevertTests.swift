import AgeEncryption
import AppStores
import Cryptography
import Foundation
import Testing

@testable import MigrationEngine

@Suite("Reverting steps on the vault") struct VaultRevertTests {
  private static func item(_ account: String, _ value: String) -> VaultItem {
    VaultItem(service: "notes", account: account, value: SecretBytes(Array(value.utf8)))
  }

  private let lab: Lab

  init() throws {
    lab = try Lab()
    try lab.set(["token": "canary-012345-x", "pin": 4711, "theme": "dark"])
    let accounts = [("auth", "canary-a"), ("mail", "canary-b"), ("user:pass", "ada:canary-c")]
    try lab.put(
      accounts.map { account, value in
        var item = Self.item(account, value)
        item.modified = "2026-01-01T00:00:00Z"
        return item
      })
    try lab.baseline(0)
  }

  @Test(
    "Items come back in every attribute",
    arguments: [
      "vault.rename: {service: notes, account: auth, to: {account: session}}",
      "vault.rename: {service: notes, account: auth, to: {account: mail}, if-exists: replace}",
      "vault.rename: {service-prefix: no, to: {service-prefix: journal.}}",
      "vault.move-to: {service: notes, to: group.x}",
      "vault.set-accessibility: {service: notes, accessible: afterFirstUnlockThisDeviceOnly}",
      "vault.convert: {service: notes, account: auth, fields: access_token, with: {version: 2}}",
      "vault.convert: {service: notes, account-prefix: 'user', fields: [user, password], separator: ':'}",
      "vault.delete: {service: notes, account: mail, destructive: not needed}",
      "vault.move-from-defaults: {keys: {token: t, pin: p}, service: notes, as: text}",
      "vault.move-from-defaults: {key: pin, service: notes, account: auth, as: json, if-exists: replace}",
      "vault.compute: {service: notes, value: 'upper(:value)'}",
      "vault.compute: {service: notes, account: auth, value: 'NULL', if-null: delete}",
      "vault.set-access-control: {service: notes, access-control: [userPresence, devicePasscode]}",
      "vault.set-synchronizable: {service: notes, to: true}",
      "vault.set-synchronizable: {service: shared, to: false}",
    ])
  func upAndDown(step: String) throws {
    var shared = VaultItem(service: "shared", account: "user", value: SecretBytes([1]))
    shared.isSynchronizable = true
    try lab.put([shared])
    let before = try lab.items()
    #expect(try lab.expectComesBack(step))
    #expect(try lab.items() == before)
    #expect(try lab.files(with: "canary", in: ".drydock-") == [])
  }

  @Test func newerValuesGoBackToo() throws {
    try lab.run(
      "vault.move-from-defaults: {key: token, service: notes, account: t}",
      "vault.convert: {service: notes, account: auth, fields: value}")
    try lab.put([Self.item("t", "newer"), Self.item("auth", #"{"value":"fresh"}"#)])
    try lab.rollback(to: 0, down: true)
    #expect(try lab.settings()?["token"] == "newer")
    let found = try lab.items()
    #expect(found.map(\.description) == ["notes/auth", "notes/mail", "notes/user:pass"])
    #expect(found.first?.value == SecretBytes(Array("fresh".utf8)))
  }

  @Test(
    arguments: [
      ("vault.rename: {service: notes, to: {service: journal}}", "journal"),
      ("vault.rename: {service-prefix: no, to: {service-prefix: jo}}", "jotes"),
    ])
  func newItemsGoBackToo(_ step: String, _ service: String) throws {
    try lab.migration("0001_test.yaml", step: step)
    // It had the new name before.
    try lab.put([VaultItem(service: service, account: "own", value: SecretBytes([1]))])
    try lab.migrate()
    try lab.put([VaultItem(service: service, account: "new", value: SecretBytes([1]))])
    #expect(try lab.revert(to: 0) == [])
    #expect(
      try lab.items().map(\.description).sorted() == [
        "\(service)/own", "notes/auth", "notes/mail", "notes/new", "notes/user:pass",
      ])
  }

  @Test func anItemWithoutASettingGoesBackToo() throws {
    try lab.run("vault.move-from-defaults: {keys: {token: t, absent: new, gone: auth}, service: notes}")
    try lab.put([Self.item("new", "newer")])
    #expect(try lab.revert(to: 0) == [])
    // What was there before the step stays.
    #expect(try lab.settings()?["absent"] == "newer" && lab.settings()?["gone"] == nil)
    #expect(try lab.items().map(\.description) == ["notes/auth", "notes/mail", "notes/user:pass"])
  }

  @Test func aVaultThatTheStepMadeGoes() throws {
    let lab = try Lab()
    lab.deviceKeys = DeviceKeys(try AgeIdentity.generate())
    try lab.set(["token": "canary-012345-x"])
    try lab.run("vault.move-from-defaults: {key: token, service: notes}")
    let keys = lab.deviceKeys
    lab.deviceKeys = nil
    expectFailure("vault.move-from-defaults", code: .vaultLocked) { try lab.rollback(down: true) }
    lab.deviceKeys = keys
    try lab.rollback(down: true)
    #expect(try !lab.exists(try lab.container.vaultPath))
    #expect(try !lab.exists(try lab.container.vaultPath.parent), "nor is the directory left that it was in")
    #expect(try lab.settings() == ["token": "canary-012345-x"])
  }
}
