import AgeEncryption
import AppContainer
import TestSupport
import Testing

@testable import ContainerTransaction

/// Undoing what a transaction did to a vault, item by item.
@Suite struct VaultRollbackTests {
  @Test func untouchedSinceTheVeryFileComesBackWithoutAKey() throws {
    try VaultLab.withVault { lab in
      let before = try lab.sealed()
      try lab.change { $0.put(VaultLab.item("a", "new")) }
      try lab.rollback(nil)
      #expect(try lab.sealed() == before)
      try lab.rollback(nil, redoing: true)
      #expect(try lab.values() == ["a = new", "b = b"])
    }
  }

  @Test func whatTheAppWroteSinceStays() throws {
    try VaultLab.withVault { lab in
      try lab.change { vault in
        vault.put(VaultLab.item("a", "changed"))
        vault.remove(VaultLab.id("b"))
        vault.put(VaultLab.item("added", "x"))
      }
      try lab.appChanges { $0.put(VaultLab.item("app", "own")) }
      let outcome = try lab.rollback(lab.keys)
      #expect(outcome.value.discarded.isEmpty)
      #expect(try lab.values() == ["a = a", "app = own", "b = b"])
      try lab.rollback(lab.keys, redoing: true)
      #expect(try lab.values() == ["a = changed", "added = x", "app = own"])
    }
  }

  @Test func bothChangedTheSameItem() throws {
    try VaultLab.withVault { lab in
      try lab.change { $0.put(VaultLab.item("a", "by drydock")) }
      try lab.appChanges { $0.put(VaultLab.item("a", "by the app")) }
      let before = try lab.sealed()
      let error = lab.ship.failure { try lab.rollback(lab.keys) }
      #expect(error?.code == .conflict)
      let message = error?.message ?? ""
      #expect(message.contains("s/a in Library/Vault/vault.age: was (secret, 1 character, #"))
      #expect(message.contains("the transaction wrote (secret, 10 characters, #"))
      #expect(!message.contains("by drydock") && !message.contains("by the app"))
      #expect(try lab.sealed() == before)
      let outcome = try lab.rollback(lab.keys, discardingNewer: true)
      #expect(outcome.value.discarded.map(\.key) == ["s/a"])
      #expect(try lab.values() == ["a = a", "b = b"])
    }
  }

  @Test func bothChangedItTheSameWay() throws {
    try VaultLab.withVault { lab in
      try lab.change { $0.put(VaultLab.item("a", "x")) }
      try lab.appChanges { vault in
        vault.put(VaultLab.item("a", "a"))
        vault.put(VaultLab.item("c", "c"))
      }
      try lab.rollback(lab.keys)
      #expect(try lab.values() == ["a = a", "b = b", "c = c"])
    }
  }

  @Test func aRenamedItemThatTheAppChangedIsAConflict() throws {
    try VaultLab.withVault { lab in
      try lab.change { vault in
        vault.remove(VaultLab.id("a"))
        vault.put(VaultLab.item("renamed", "a"))
      }
      try lab.appChanges { $0.put(VaultLab.item("renamed", "newer")) }
      lab.ship.expect(.conflict) { try lab.rollback(lab.keys) }
    }
  }

  @Test func withoutTheKeyItSaysWhatToDo() throws {
    try VaultLab.withVault { lab in
      try lab.change { $0.put(VaultLab.item("a", "x")) }
      try lab.appChanges { $0.put(VaultLab.item("c", "c")) }
      let before = try lab.sealed()
      lab.expect(.vaultLocked) { try lab.rollback(nil) }
      let stranger = try DeviceKeys(.generate())
      lab.expect(.vaultLocked) { try lab.rollback(stranger) }
      #expect(try lab.sealed() == before)
      // Who gives up what is newer gives up the file.
      try lab.rollback(nil, discardingNewer: true)
      #expect(try lab.values() == ["a = a", "b = b"])
    }
  }

  @Test func aVaultThatTheTransactionMadeGoes() throws {
    try VaultLab.with { lab in
      try lab.change { $0.put(VaultLab.item("a", "1")) }
      try lab.rollback(nil)
      #expect(try !lab.ship.exists(VaultLab.path))
      try lab.rollback(nil, redoing: true)
      // Sealed anew by the app, with the same items, it goes as well.
      try lab.appChanges { $0.put(VaultLab.item("a", "1")) }
      try lab.rollback(lab.keys)
      #expect(try !lab.ship.exists(VaultLab.path))
      try lab.rollback(lab.keys, redoing: true)
      try lab.appChanges { $0.put(VaultLab.item("app", "own")) }
      try lab.rollback(lab.keys)
      #expect(try lab.values() == ["app = own"])
    }
  }

  @Test func aVaultThatTheTransactionRemovedComesBack() throws {
    try VaultLab.withVault { lab in
      try lab.ship.run { try $0.remove(VaultLab.path) }
      try lab.rollback(nil)
      #expect(try lab.values() == ["a = a", "b = b"])
      try lab.rollback(nil, redoing: true)
      // The app has begun a new one: its items stay, and the old ones come back.
      var new = try Vault(new: lab.keys)
      new.put(VaultLab.item("app", "own"))
      try lab.write(new.sealed())
      try lab.rollback(lab.keys)
      #expect(try lab.values() == ["a = a", "app = own", "b = b"])
      #expect(try lab.vault().device == new.device)
    }
  }

  @Test func whatTheAppRemovedAltogetherIsAConflictOrStaysRemoved() throws {
    try VaultLab.withVault { lab in
      try lab.change { $0.put(VaultLab.item("a", "x")) }
      try lab.ship.live().removeFile(VaultLab.path)
      lab.ship.expect(.conflict) { try lab.rollback(lab.keys) }
      try lab.rollback(lab.keys, discardingNewer: true)
      #expect(try lab.values() == ["a = a"])
    }
  }

  @Test func otherKeysGoBackWithTheTransactionThatBroughtThem() throws {
    try VaultLab.withVault { lab in
      let later = try DeviceKeys(.generate())
      let both = DeviceKeys(later.present, earlier: lab.keys.identities)
      var options = lab.options(both)
      options.checksResult = true
      _ = try Transaction.run(on: lab.ship.container(), .vault, summary: "rekey", options: options) {
        var vault = try #require(try $0.vault())
        try vault.rekey(to: later.recipients)
        try $0.setVault(vault)
      }
      var newer = try Vault(opening: lab.sealed(), with: later, path: "v")
      newer.put(VaultLab.item("app", "own"))
      try lab.write(newer.sealed())
      // The old file needs the old key, the present one the new key.
      lab.expect(.vaultLocked) { try lab.rollback(later) }
      lab.expect(.vaultLocked) { try lab.rollback(lab.keys) }
      try lab.rollback(both)
      #expect(try lab.vault().recipients == lab.keys.recipients)
      #expect(try lab.values() == ["a = a", "app = own", "b = b"])
    }
  }

  @Test func aDamagedVaultIsComparedAsAFile() throws {
    try VaultLab.withVault { lab in
      try lab.change { $0.put(VaultLab.item("a", "x")) }
      try lab.write(Array("damaged".utf8))
      lab.ship.expect(.conflict) { try lab.rollback(lab.keys) }
      try lab.rollback(lab.keys, discardingNewer: true)
      #expect(try lab.values() == ["a = a", "b = b"])
    }
  }

  @Test func undosHoldNothingInTheClear() throws {
    try VaultLab.with { lab in
      let canary = "made-up-canary-4711"
      try lab.change { $0.put(VaultLab.item("a", canary)) }
      try lab.change { $0.put(VaultLab.item("a", canary + "2")) }
      try lab.rollback(lab.keys)
      let found = try Command.run(
        Tools.system("grep"), ["-r", "-l", "-e", canary, "-e", "bWFkZS11cC1jYW5hcn", lab.ship.folder.path])
      #expect(found.exitCode == 1, "\(found)")
    }
  }
}
