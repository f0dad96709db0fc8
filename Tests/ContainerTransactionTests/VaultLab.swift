import AgeEncryption
import AppContainer
import DrydockErrors
import TestSupport
import Testing

@testable import ContainerTransaction
@testable import FileSystem

/// A container with a vault, and its device's key.
struct VaultLab {
  static let path: ContainerPath = "Library/Vault/vault.age"

  let ship: Ship
  let keys: DeviceKeys

  /// A container without a vault.
  static func with(_ body: (VaultLab) throws -> Void) throws {
    try Ship.withFiles(["Documents/a.txt": "a", "Library/Preferences/x.plist": "no settings"]) { ship in
      try body(VaultLab(ship: ship, keys: DeviceKeys(.generate())))
    }
  }

  /// A container whose vault has items `s/a` and `s/b`, with the values `a` and `b`.
  static func withVault(_ body: (VaultLab) throws -> Void) throws {
    try with { lab in
      try lab.change { vault in
        for name in ["a", "b"] { vault.put(item(name, name)) }
      }
      try body(lab)
    }
  }

  static func item(_ account: String, _ value: String) -> VaultItem {
    VaultItem(service: "s", account: account, value: SecretBytes(Array(value.utf8)))
  }

  static func id(_ account: String) -> VaultItem.ID { VaultItem.ID(service: "s", account: account) }

  func options(_ keys: DeviceKeys?) -> TransactionOptions {
    var options = TransactionOptions()
    options.deviceKeys = keys
    return options
  }

  /// Changes the vault in a transaction; there may be none before.
  @discardableResult
  func change(
    _ kind: TransactionKind = .vault, _ body: (inout Vault) throws -> Void
  ) throws -> TransactionOutcome<Void> {
    try Transaction.run(on: ship.container(), kind, summary: "changed the vault", options: options(keys)) {
      var vault = try $0.vault() ?? Vault(new: keys)
      try body(&vault)
      try $0.setVault(vault)
    }
  }

  /// Changes the vault as an app does, past Drydock.
  func appChanges(_ body: (inout Vault) throws -> Void) throws {
    var vault = try vault()
    try body(&vault)
    try write(vault.sealed())
  }

  func write(_ bytes: [UInt8]) throws {
    try RawFiles.write(bytes, to: Array("\(ship.root)/\(Self.path)".utf8))
  }

  func sealed() throws -> [UInt8] { try ship.live().contents(Self.path) }
  func vault() throws -> Vault { try Vault(opening: sealed(), with: keys, path: "v") }

  /// The items as `account = value`.
  func values() throws -> [String] {
    try vault().sorted.map { item in
      "\(item.account ?? "") = \(item.value.withBytes { String(decoding: $0, as: UTF8.self) })"
    }
  }

  @discardableResult
  func rollback(_ keys: DeviceKeys?, discardingNewer: Bool = false, redoing: Bool = false) throws
    -> TransactionOutcome<RollbackReport>
  {
    try Transaction.rollback(
      ship.container(), discardingNewer: discardingNewer, redoing: redoing, options: options(keys))
  }

  /// Expects an error of a container by its code.
  func expect(
    _ code: DrydockError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) {
    do {
      try body()
      Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    } catch let error as DrydockError {
      #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
    } catch {
      Issue.record("another error: \(error)", sourceLocation: sourceLocation)
    }
  }
}
