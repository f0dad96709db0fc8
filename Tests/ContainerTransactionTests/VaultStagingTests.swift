import AgeEncryption
import AppContainer
import TestSupport
import Testing

@testable import ContainerDiff
@testable import ContainerTransaction

/// The vault on the stage.
@Suite struct VaultStagingTests {
  @Test func aVaultIsMadeForItsOwnerOnly() throws {
    try VaultLab.with { lab in
      try lab.change { $0.put(VaultLab.item("a", "1")) }
      #expect(try lab.values() == ["a = 1"])
      let status = try #require(try lab.ship.live().status(VaultLab.path))
      #expect(status.mode == 0o600)
      // Whatever mode somebody gave it, a rewrite takes the others' rights away.
      try lab.ship.live().setMode(0o644, of: VaultLab.path)
      try lab.change { $0.put(VaultLab.item("b", "2")) }
      #expect(try lab.ship.live().status(VaultLab.path)?.mode == 0o600)
    }
  }

  @Test func withoutAKeyNothingIsStaged() throws {
    try VaultLab.withVault { lab in
      let before = try lab.ship.listing()
      lab.expect(.vaultLocked) {
        _ = try lab.ship.run { staged in
          try staged.requireDeviceKeys("vault.rename")
          Issue.record("it went on")
        }
      }
      lab.expect(.vaultLocked) { _ = try lab.ship.run { _ = try $0.vault() } }
      let stranger = try DeviceKeys(.generate())
      lab.expect(.vaultLocked) {
        _ = try Transaction.run(
          on: lab.ship.container(), .vault, summary: "", options: lab.options(stranger)
        ) { _ = try $0.vault() }
      }
      expectNone(try lab.ship.listing().changes(from: before))
    }
  }

  @Test func whatIsTheSameIsNotWritten() throws {
    try VaultLab.withVault { lab in
      let before = try lab.sealed()
      #expect(try lab.change { _ in }.transaction == nil)
      #expect(try lab.change { $0.put(VaultLab.item("a", "a")) }.transaction == nil)
      #expect(try lab.sealed() == before)
    }
  }

  @Test func severalKeysStaySeveral() throws {
    try VaultLab.withVault { lab in
      let other = try DeviceKeys(.generate())
      try lab.change { try $0.rekey(to: lab.keys.recipients + other.recipients) }
      try lab.change { $0.put(VaultLab.item("c", "c")) }
      let opened = try Vault(opening: lab.sealed(), with: other, path: "v")
      #expect(opened.items.count == 3 && opened.recipients == lab.keys.recipients + other.recipients)
    }
  }

  @Test func nobodyIsLockedOutBySurprise() throws {
    try VaultLab.withVault { lab in
      // Sealed by hand to another key than the document says.
      let document = try lab.vault().document
      let hand = try DeviceKeys(.generate())
      try lab.write(Age.seal(document.encoded(), to: .recipients(hand.recipients)))
      func change(_ body: @escaping (inout Vault) throws -> Void) throws {
        _ = try Transaction.run(
          on: lab.ship.container(), .vault, summary: "", options: lab.options(hand)
        ) {
          var vault = try #require(try $0.vault())
          try body(&vault)
          try $0.setVault(vault)
        }
      }
      lab.expect(.vaultLocked) { try change { $0.put(VaultLab.item("c", "c")) } }
      // Other keys that are not at hand are taken, for they are named on purpose.
      let later = try DeviceKeys(.generate())
      try change { try $0.rekey(to: later.recipients) }
      #expect(try Vault(opening: lab.sealed(), with: later, path: "v").items.count == 2)
    }
  }

  @Test func aDryRunTellsItemsAndTouchesNothing() throws {
    try VaultLab.withVault { lab in
      let before = try lab.ship.listing()
      let run = { (keys: DeviceKeys?, body: (StagedContainer) throws -> Void) in
        try Transaction.dryRun(on: lab.ship.container(), options: lab.options(keys), body: body).difference
      }
      let difference = try run(lab.keys) {
        var vault = try #require(try $0.vault())
        vault.remove(VaultLab.id("a"))
        var item = VaultLab.item("b", "longer")
        item.accessibility = .afterFirstUnlock
        vault.put(item)
        vault.put(VaultLab.item("c", "a"))
        try $0.setVault(vault)
      }
      let vault = try #require(difference.vault.first)
      #expect(difference.vault.count == 1 && vault.change == .changed && vault.problem == nil)
      let items = try #require(vault.items)
      #expect(items.map(\.name) == ["s/a", "s/b", "s/c"])
      #expect(items.map(\.change) == [.removed, .changed, .added])
      #expect(items[0].valueAfter == nil && items[2].valueBefore == nil)
      #expect(items[0].valueBefore == items[2].valueAfter, "equal values can be seen to be equal")
      #expect(items[1].valueBefore != items[1].valueAfter)
      #expect(items[1].valueAfter?.hasPrefix("(secret, 6 characters, #") == true)
      #expect(
        items[1].attributes == [.init(name: "accessible", before: "whenUnlocked", after: "afterFirstUnlock")])
      #expect(!String(describing: difference).contains("longer"))
      // Without a key it is a file that is written, by whoever has the bytes.
      let sealed = try lab.vault().sealed()
      let closed = try run(nil) { try $0.write(sealed, to: VaultLab.path) }.vault.first
      #expect(closed?.items == nil && closed?.problem?.contains("encrypted to 1 recipient") == true)
      // Sealed anew it is the same.
      #expect(try run(lab.keys) { try $0.write(sealed, to: VaultLab.path) }.vault.isEmpty)
      expectNone(try lab.ship.listing().changes(from: before, comparing: TreeListing.untouched))
    }
  }

  @Test func aStagedVaultIsChecked() throws {
    try VaultLab.withVault { lab in
      let before = try lab.sealed()
      func stage(_ bytes: [UInt8], _ keys: DeviceKeys?) throws {
        _ = try Transaction.run(on: lab.ship.container(), .migrate, summary: "", options: lab.options(keys)) {
          try $0.write(bytes, to: VaultLab.path)
        }
      }
      lab.ship.expect(.checkFailed) { try stage(Array("no vault".utf8), lab.keys) }
      lab.ship.expect(.checkFailed) { try stage(Array(before.dropLast()), lab.keys) }
      #expect(try lab.sealed() == before)
      // Without a key, or sealed to another one, there is nothing to be seen.
      try stage(before + [0], nil)
      let other = try Vault(new: DeviceKeys(.generate())).sealed()
      try stage(other, lab.keys)
      #expect(try lab.sealed() == other)
    }
  }

  /// A vault that cannot be opened keeps nothing else from being changed.
  @Test func aDamagedVaultIsAFileLikeAnother() throws {
    try VaultLab.withVault { lab in
      try lab.write(Array("damaged".utf8))
      lab.expect(.badVault) { try lab.change { $0.put(VaultLab.item("c", "c")) } }
      try lab.ship.run { try $0.write([1], to: "Documents/b.txt") }
      try lab.rollback(nil)
      #expect(try lab.sealed() == Array("damaged".utf8))
      try lab.ship.live().removeFile(VaultLab.path)
      try lab.ship.live().createDirectory(VaultLab.path)
      lab.expect(.unsupported) { try lab.change { $0.put(VaultLab.item("c", "c")) } }
      try lab.ship.live().removeTree(VaultLab.path)
      try lab.ship.live().createLink(VaultLab.path, target: Array("../elsewhere".utf8))
      lab.expect(.unsupported) { try lab.change { $0.put(VaultLab.item("c", "c")) } }
    }
  }
}
