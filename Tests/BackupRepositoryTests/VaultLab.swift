import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import FileSystem
import TestSupport
import Testing

@testable import BackupRepository

/// A container with a vault, and short ways to archive and restore it.
final class VaultLab {
  static let vault = "Secrets/vault.age"
  static let archiveKey = Result { try AgeIdentity.generate() }

  let lab: Lab
  let root: String

  init() throws {
    lab = try Lab()
    root = lab.root
    lab.configuration.vault = try ContainerPath(Self.vault)
  }

  static func item(
    _ account: String, _ value: String, _ accessibility: VaultItem.Accessibility = .afterFirstUnlock,
    isSynchronizable: Bool = false, _ accessControl: [VaultItem.AccessControl.Flag]? = nil
  ) -> VaultItem {
    var item = VaultItem(
      service: "s", account: account, accessibility: accessibility, value: SecretBytes(Array(value.utf8)))
    item.isSynchronizable = isSynchronizable
    item.accessControl = accessControl.map { VaultItem.AccessControl($0) }
    return item
  }

  func write(_ vault: Vault?, file: String = "archived") throws {
    if let vault { try lab.write(Self.vault, vault.sealed()) }
    try lab.write("a.txt", file)
  }

  func vault(_ keys: DeviceKeys, in path: String? = nil) throws -> Vault {
    try Vault(opening: bytes(in: path), with: keys, path: Self.vault)
  }

  func bytes(in path: String? = nil) throws -> [UInt8] {
    Array(try RawFiles.read(Array(((path ?? root) + "/" + Self.vault).utf8)))
  }

  func values(_ keys: DeviceKeys, in path: String? = nil) throws -> [String: String] {
    Dictionary(uniqueKeysWithValues: try vault(keys, in: path).sorted.map { ($0.description, $0.text) })
  }

  func snapshot(encrypted: Bool, _ keys: DeviceKeys?, to name: String? = nil) throws -> SnapshotReport {
    try lab.snapshot(to: name.map { lab.directory($0) }) {
      if encrypted { $0.encryption = .recipients([try Self.archiveKey.get().recipient]) }
      $0.deviceKeys = keys
    }
  }

  func open(_ path: String) throws -> Archive {
    try Archive(path: path, keys: AgeKeys(identities: [Self.archiveKey.get()]))
  }

  @discardableResult
  func restore(
    _ archive: String, _ keys: DeviceKeys?, to path: String? = nil,
    _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> TransactionOutcome<RestoreReport> {
    try lab.restore(archive, to: path, keys: AgeKeys(identities: [Self.archiveKey.get()])) {
      $0.transaction.deviceKeys = keys
      change(&$0)
    }
  }

  func dryRun(
    _ archive: String, _ keys: DeviceKeys?, _ change: (inout RestoreOptions) -> Void = { _ in }
  ) throws -> RestoreReport {
    try lab.dryRun(archive, keys: AgeKeys(identities: [Self.archiveKey.get()])) {
      $0.transaction.deviceKeys = keys
      change(&$0)
    }.value
  }
}

extension VaultItem {
  var text: String { value.withBytes { String(decoding: $0, as: UTF8.self) } }
}
