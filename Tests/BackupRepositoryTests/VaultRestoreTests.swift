import AgeEncryption
import AppStores
import ContainerTransaction
import TestSupport
import Testing

@testable import BackupRepository

/// Restores of a vault beyond the matrix: without one in the archive, damaged ones, several keys, hard links.
@Suite struct VaultRestoreTests {
  private let lab: VaultLab
  private let keys: DeviceKeys

  init() throws {
    lab = try VaultLab()
    keys = try DeviceKeys(.generate())
  }

  private func archive(encrypted: Bool) throws -> String {
    try lab.write(vault(keys, [VaultLab.item("a", "v")]))
    return try lab.snapshot(encrypted: encrypted, encrypted ? keys : nil).path
  }

  private func vault(_ keys: DeviceKeys, _ items: [VaultItem]) throws -> Vault {
    var vault = try Vault(new: keys)
    for item in items { vault.put(item) }
    return vault
  }

  @Test func theSameFileNeedsNoKey() throws {
    try lab.write(vault(keys, [VaultLab.item("never", "v", .whenPasscodeSetThisDeviceOnly)]))
    let archive = try lab.snapshot(encrypted: false, nil).path
    let outcome = try lab.restore(archive, nil)
    #expect(outcome.transaction == nil && outcome.value.vault == nil && !outcome.value.isIncomplete)
    try lab.lab.write("a.txt", "live")
    let second = try lab.restore(archive, nil)
    #expect(second.value.restoredPaths == ["a.txt"] && !second.value.isIncomplete)
  }

  /// On the same device the very file comes back, so that a second restore needs no key.
  @Test func intoNothingTheVeryFileComesBack() throws {
    let keys = try DeviceKeys(.generate(), earlier: [.generate()])
    var several = try vault(keys, [VaultLab.item("a", "v"), VaultLab.item("b", "w", .alwaysThisDeviceOnly)])
    try several.rekey(to: keys.recipients)
    try lab.write(several)
    let archive = try lab.snapshot(encrypted: false, nil).path
    let place = lab.lab.directory("new")
    let outcome = try lab.restore(archive, keys, to: place)
    #expect(try lab.bytes(in: place) == lab.bytes() && !outcome.value.isIncomplete)
    #expect(outcome.value.vault?.returned == ["s/a", "s/b"] && outcome.value.vault?.isSameDevice == true)
    #expect(try lab.restore(archive, nil, to: place).transaction == nil)
    // And without a key nothing that may not come back is put there.
    let left = try lab.restore(archive, nil, to: lab.lab.directory("other"))
    #expect(left.value.isIncomplete && !lab.lab.exists(VaultLab.vault, in: lab.lab.directory("other")))
    #expect(left.value.vault?.notRestored.first?.reason.contains("device key") == true)
  }

  @Test func anArchiveWithoutAVaultTakesWhatCouldHaveBeenInIt() throws {
    try lab.write(nil)
    let archive = try lab.snapshot(encrypted: false, keys).path
    let items = [
      VaultLab.item("leaves", "v"), VaultLab.item("stays", "w", .afterFirstUnlockThisDeviceOnly),
      VaultLab.item("syncs", "x", isSynchronizable: true),
    ]
    try lab.write(vault(keys, items))
    let live = try lab.bytes()
    let locked = try lab.restore(archive, nil)
    #expect(try locked.value.isIncomplete && lab.bytes() == live)
    let kept = try lab.restore(archive, nil) { $0.keepExtra = true }
    #expect(try !kept.value.isIncomplete && lab.bytes() == live)
    let outcome = try lab.restore(archive, keys)
    #expect(outcome.value.vault?.removed == ["s/leaves"] && !outcome.value.isIncomplete)
    #expect(try lab.values(keys) == ["s/stays": "w", "s/syncs [synchronizable]": "x"])
    #expect(try lab.restore(archive, keys).transaction == nil)
    _ = try Transaction.rollback(lab.lab.container())
    #expect(try lab.bytes() == live)

    try lab.write(vault(keys, [VaultLab.item("leaves", "v")]))
    let emptied = try lab.restore(archive, keys)
    #expect(emptied.value.removedPaths == ["Secrets", VaultLab.vault] && !lab.lab.exists("Secrets"))
  }

  @Test func aDamagedVaultInTheArchiveLeavesTheRestWhole() throws {
    try lab.write(nil)
    try lab.lab.write(VaultLab.vault, "not an age file")
    let archive = try lab.snapshot(encrypted: false, nil).path
    try lab.write(vault(keys, [VaultLab.item("a", "v")]), file: "live")
    let live = try lab.bytes()
    let outcome = try lab.restore(archive, keys)
    #expect(try outcome.value.isIncomplete && lab.bytes() == live && lab.lab.read("a.txt") == "archived")
    #expect(outcome.value.vault?.problem?.contains("in the archive") == true)
  }

  @Test func aDamagedVaultInTheContainerStays() throws {
    let archive = try archive(encrypted: true)
    try lab.lab.write("a.txt", "live")
    for damage in ["", "not an age file"] {
      try lab.lab.write(VaultLab.vault, damage)
      let outcome = try lab.restore(archive, keys)
      #expect(try outcome.value.isIncomplete && lab.lab.read(VaultLab.vault) == damage)
      #expect(outcome.value.vault?.notRestored.map(\.item) == ["s/a"])
    }
    // As the message says.
    try lab.lab.remove(VaultLab.vault)
    #expect(try !lab.restore(archive, keys).value.isIncomplete)
    #expect(try lab.values(keys) == ["s/a": "v"])
  }

  @Test func otherThingsInItsPlace() throws {
    let archive = try archive(encrypted: false)
    for make in ["ln -s nowhere", "mkdir -p"] {
      try lab.lab.shell("rm box/\(VaultLab.vault); \(make) box/\(VaultLab.vault)")
      #expect(try lab.restore(archive, nil).value.isIncomplete)
      #expect(try !lab.restore(archive, keys).value.isIncomplete && lab.values(keys) == ["s/a": "v"])
    }
    // The other way round, a vault does not go for a link.
    let live = try lab.bytes()
    try lab.lab.shell("mv box/\(VaultLab.vault) kept; ln -s nowhere box/\(VaultLab.vault)")
    let link = try lab.snapshot(encrypted: false, nil).path
    try lab.lab.shell("mv -f kept box/\(VaultLab.vault)")
    #expect(try lab.restore(link, keys).value.isIncomplete && lab.bytes() == live)
  }

  @Test func aFurtherNameOfTheVaultIsAFileLikeAnyOther() throws {
    try lab.write(vault(keys, [VaultLab.item("a", "v")]))
    for link in ["AAA", "zzz"] {
      try lab.lab.shell("ln box/\(VaultLab.vault) box/\(link)")
      let archive = try lab.snapshot(encrypted: true, keys).path
      let sealed = try lab.bytes()
      try lab.lab.shell("rm box/\(link)")
      try lab.write(vault(keys, [VaultLab.item("a", "other"), VaultLab.item("b", "w")]))
      _ = try lab.restore(archive, keys)
      #expect(try lab.values(keys) == ["s/a": "v"])
      #expect(try RawFiles.read(lab.lab.full(link)).elementsEqual(sealed))
      #expect(try !lab.restore(archive, nil, to: lab.lab.directory("new-" + link)).value.restored.isEmpty)
    }
  }

  @Test func aVaultThatIsKeptOutOfBackupsIsSpared() throws {
    let archive = try archive(encrypted: true)
    try lab.write(vault(keys, [VaultLab.item("a", "live")]))
    try lab.lab.flag(VaultLab.vault)
    #expect(try lab.snapshot(encrypted: true, keys).vault == nil)
    let report = try lab.restore(archive, keys).value
    #expect(report.vault == nil && report.preservedPaths == [VaultLab.vault])
    #expect(try lab.values(keys) == ["s/a": "live"])
  }

  /// A vault that someone may open and could not write again stays, and the rest comes back.
  @Test func aVaultSealedToOthersStays() throws {
    let archive = try archive(encrypted: false)
    let other = try Vault(new: DeviceKeys(.generate()))
    try lab.lab.write(VaultLab.vault, Age.seal(other.encoded(), to: .recipients([keys.present.recipient])))
    let outcome = try lab.restore(archive, keys)
    #expect(
      outcome.value.isIncomplete && outcome.value.vault?.problem?.contains("other keys than the one") == true)
  }
}
