import AppContainer
import AppStores
import ContainerTransaction
import Cryptography
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Restores of a part: by store, by path, and by both, beyond `RestoreMatrixTests.everyScope`.
@Suite struct RestoreScopeTests {
  private static let settings = "Library/Preferences/com.example.notes.plist"
  private static let database = "Library/Application Support/database.sqlite"
  private static let paths: [ContainerStore: String] = [
    .defaults: settings, .databases: database, .files: "Documents/private.txt", .vault: vault,
  ]
  private static let vault = "Library/Vault/vault.age"

  private func make() throws -> (Lab, DeviceKeys, archive: String) {
    let lab = try Lab(name: "Notes", notes: ["--version", "4", "--tasks", "3"])
    let keys = try DeviceKeys(.generate())
    var vault = try Vault(new: keys)
    vault.put(VaultItem(service: "s", value: SecretBytes([1])))
    try lab.write(Self.vault, vault.sealed())
    return (lab, keys, try lab.snapshot().path)
  }

  @Test(arguments: ContainerStore.allCases)
  func onlyOneStoreIsTouched(_ store: ContainerStore) throws {
    let (lab, keys, archive) = try make()
    let before = try TreeListing(lab.root)
    try Lab.notes(["touch-settings", lab.root, "theme", "other"])
    try lab.sql(Self.database, "DELETE FROM task; CREATE TABLE extra(a)")
    try lab.write("Documents/private.txt", "changed")
    var vault = try Vault(new: keys)
    vault.put(VaultItem(service: "other", value: SecretBytes([2])))
    try lab.write(Self.vault, vault.sealed())
    try lab.write("Documents/extra.txt", "not in the archive")
    try lab.write("Documents/extra.db", "")
    try lab.sql("Documents/extra.db", "CREATE TABLE t(a)")
    let changed = try TreeListing(lab.root)
    let restore = {
      try lab.restore(archive) {
        $0.stores = [store]
        $0.transaction.deviceKeys = keys
      }
    }
    let report = try restore().value
    let after = try TreeListing(lab.root)
    // A vault comes back by its items: see VaultRestoreMatrixTests.
    #expect((after[Self.vault]?.content == changed[Self.vault]?.content) == (store != .vault))
    for (other, path) in Self.paths where other != .vault {
      let key = Array(path.utf8)
      let expected = other == store ? before.entries[key]?.content : changed.entries[key]?.content
      #expect(after.entries[key]?.content == expected, "\(path)")
    }
    let removed: [ContainerStore: [String]] = [
      .files: ["Documents/Notes/About theme.md", "Documents/extra.txt"], .databases: ["Documents/extra.db"],
    ]
    #expect(report.removedPaths.filter { $0.hasPrefix("Documents") } == (removed[store] ?? []))
    #expect(try restore().transaction == nil)
    _ = try Transaction.rollback(lab.container())
    #expect(try TreeListing(lab.root).differences(from: changed) == [])
  }

  @Test func aStoreComesBackWithItsDirectoriesAndNothingElse() throws {
    let (lab, _, archive) = try make()
    try lab.remove("Library")
    try lab.remove("Documents")
    let report = try lab.restore(archive) { $0.stores = [.databases] }.value
    #expect(report.restoredPaths == ["Library", "Library/Application Support", Self.database])
    #expect(!lab.exists("Documents") && !lab.exists("Library/Preferences"))
  }

  @Test func storeAndPathTogether() throws {
    let (lab, _, archive) = try make()
    try lab.write("Documents/private.txt", "changed")
    try lab.write("Documents/Notes/extra.md", "extra")
    try lab.write("Library/extra", "stays")
    let options = { (options: inout RestoreOptions) in
      options.stores = [.files]
      options.scope = ["Documents/Notes"]
    }
    #expect(try lab.restore(archive, options).value.removedPaths == ["Documents/Notes/extra.md"])
    #expect(try lab.read("Documents/private.txt") == "changed" && lab.exists("Library/extra"))
  }
}
