import AgeEncryption
import Cryptography
import DrydockErrors
import FileSystem

/// A container's secrets: items, the device they belong to, and the keys of the device that the file is sealed to. A rewrite
/// seals to the same recipients, so that a vault sealed to several remains so.
public struct Vault: Sendable, Equatable {
  /// The maximum size of a sealed file in bytes.
  package static let sizeLimit = 64 << 20

  /// The device's random name, made with its vault: 32 hexadecimal digits. New keys do not change it.
  public let device: String
  /// The keys that it is sealed to; none in the items of an archive.
  public private(set) var recipients: [AgeRecipient]
  /// All items, by what makes them unique.
  public internal(set) var items: [VaultItem.ID: VaultItem]
  /// The fields of the document that this version does not know.
  var unknown = VaultFields()

  /// All items, in the order of their names.
  public var sorted: [VaultItem] { items.sorted { $0.key < $1.key }.map(\.value) }

  /// A vault from its parts; of two items with the same id the last counts.
  package init(device: String, recipients: [AgeRecipient] = [], items: some Sequence<VaultItem> = []) {
    (self.device, self.recipients) = (device, recipients)
    self.items = Dictionary(items.map { ($0.id, $0) }, uniquingKeysWith: { _, last in last })
  }

  /// A new, empty vault, sealed to the current device key.
  package init(new keys: DeviceKeys) throws {
    self.init(device: try RandomBytes.make(16).hex, recipients: [keys.present.recipient])
  }

  // MARK: Opening and sealing

  /// Opens a sealed file, binary or armored.
  ///
  /// - Parameter path: the file's, for messages.
  /// - Throws: ``DrydockError``: `vaultLocked` when none of the keys matches, `badVault` when it is corrupt, not an age
  ///   file, or of a newer format.
  package init(opening bytes: [UInt8], with keys: DeviceKeys, path: String) throws {
    let opened = try Self.translating(bytes, path) { try Age.open(bytes, with: keys.ageKeys) }
    try self.init(decoding: opened, path: path)
    guard !recipients.isEmpty else {
      throw DrydockError(
        .badVault,
        "the vault document has no `recipients`, so it could not be sealed again",
        path: path)
    }
  }

  /// How a sealed file is encrypted, such as `encrypted to 2 recipients (X25519)`.
  ///
  /// - Throws: ``DrydockError`` (`badVault`) for a file that is not an age file or has a corrupt header.
  package static func encryption(of bytes: [UInt8], path: String) throws -> String {
    try Self.translating(bytes, path) { try Age.header(of: bytes).summary }
  }

  /// The same for a message, without errors.
  package static func summary(of bytes: [UInt8]) -> String {
    (try? Age.header(of: bytes).summary) ?? "not a readable age file"
  }

  /// The binary age file, sealed to ``recipients``. It differs each time.
  ///
  /// - Throws: ``DrydockError`` (`unsupported`) beyond ``sizeLimit``.
  package func sealed() throws -> [UInt8] {
    let bytes = try Age.seal(encoded(), to: .recipients(recipients))
    guard bytes.count <= Self.sizeLimit else {
      throw DrydockError(
        .unsupported,
        "the vault would have \(bytes.count) bytes, more than the limit of \(Self.sizeLimit); store large data in files"
      )
    }
    return bytes
  }

  // MARK: Items

  /// An item, by what makes it unique.
  public subscript(id: VaultItem.ID) -> VaultItem? { items[id] }

  /// Adds an item, or replaces the one with its id.
  package mutating func put(_ item: VaultItem) { items[item.id] = item }

  /// Removes and returns an item; nil when there is none.
  @discardableResult
  package mutating func remove(_ id: VaultItem.ID) -> VaultItem? { items.removeValue(forKey: id) }

  package mutating func removeAll() { items.removeAll() }

  /// Changes the keys that it is sealed to. Existing copies remain readable with the old keys.
  package mutating func rekey(to recipients: [AgeRecipient]) throws {
    guard !recipients.isEmpty else {
      throw DrydockError(.unsupported, "a vault needs at least one recipient; name one")
    }
    var seen: Set<AgeRecipient> = []
    self.recipients = recipients.filter { seen.insert($0).inserted }
  }
}

extension Vault {
  /// Runs a body that reads a sealed file, and says of its errors what they mean for a vault.
  fileprivate static func translating<Value>(
    _ bytes: [UInt8], _ path: String, _ body: () throws -> Value
  ) throws -> Value {
    guard AgeHeader.isPresent(in: bytes.prefix(AgeHeader.probeLength)) else {
      throw DrydockError(
        .badVault,
        bytes.isEmpty
          ? "the vault's file is empty; restore it from a backup, or remove it to start a new vault"
          : "the vault's file is not an age file; move it away, or set another path with `vault:`",
        path: path)
    }
    do {
      return try body()
    } catch let error as DrydockError {
      throw translated(error, bytes, path)
    }
  }

  private static func translated(_ error: DrydockError, _ bytes: [UInt8], _ path: String) -> DrydockError {
    switch error.code {
    case .noIdentity:
      DrydockError(.vaultLocked, locked(bytes), path: path, cause: error)
    case .cryptography:
      DrydockError(.io, error.message, path: path, cause: error)
    case .badKey, .header, .mac, .payload, .armor:
      DrydockError(.badVault, "the vault's file is corrupt: \(error.message)", path: path, cause: error)
    default: error
    }
  }

  private static func locked(_ bytes: [UInt8]) -> String {
    let summary = summary(of: bytes)
    if (try? Age.header(of: bytes).needsPassphrase) ?? false {
      return
        "the vault is \(summary), not sealed to device keys; decrypt it with `age -d`, and encrypt it to the "
        + "device key with `age -r age1…`"
    }
    return "no device key opens the vault, which is \(summary); use its device key"
  }
}

/// The keys of a device: the current one, and earlier ones that open older vault files.
public struct DeviceKeys: Sendable {
  /// The current one first.
  public let identities: [AgeIdentity]
  /// The current one, which new vaults are sealed to.
  public let present: AgeIdentity

  /// The key that a vault is sealed to now, and earlier ones, which open older copies.
  public init(_ present: AgeIdentity, earlier: [AgeIdentity] = []) {
    self.present = present
    identities = [present] + earlier
  }

  /// Reads age key files, the current key's first. Throws ``DrydockError`` (`vaultLocked`) for a file that is unreadable or
  /// has no identity.
  public init?(files: [String]) throws {
    let read = try files.flatMap { path in
      do {
        return try KeyFile.identities(in: SecretFile.read(path, limit: 1 << 20), path: path)
      } catch let error as DrydockError {
        throw DrydockError(.vaultLocked, "no device key: \(error.message)", path: path, cause: error)
      }
    }
    guard let first = read.first else { return nil }
    self.init(first, earlier: Array(read.dropFirst()))
  }

  /// Their public keys.
  public var recipients: [AgeRecipient] { identities.map(\.recipient) }

  var ageKeys: AgeKeys { AgeKeys(identities: identities) }
}
