import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite("The vault in stages") struct StageVaultTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

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
