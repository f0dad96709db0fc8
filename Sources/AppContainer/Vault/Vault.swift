import AgeEncryption
import DrydockErrors

/// A container's secrets: a document of items, sealed to the keys of its device.
///
/// A rewrite seals to the keys that are written inside, so that a vault sealed to several stays so. What is in memory is
/// wiped as far as it is a secret: values and keys are, names and attributes are ordinary text.
package struct Vault: Sendable, Equatable {
  /// The most bytes that a sealed file may have.
  package static let sizeLimit = 64 << 20

  /// What is in it.
  package private(set) var document: VaultDocument

  /// The device's random name, made with the vault.
  package var device: String { document.device }
  /// The keys that it is sealed to.
  package var recipients: [AgeRecipient] { document.recipients }
  /// The items.
  package var items: [VaultItem.ID: VaultItem] { document.items }
  /// The items in order.
  package var sorted: [VaultItem] { document.sorted }

  // MARK: Opening and sealing

  /// An empty vault of a device that has none yet, sealed to the present one of its keys.
  package init(new keys: DeviceKeys) throws {
    document = VaultDocument(device: try VaultDocument.newDevice(), recipients: [keys.present.recipient])
  }

  /// Opens a sealed file, binary or armored.
  ///
  /// - Parameter path: the file's, for messages.
  /// - Throws: ``DrydockError``: `vaultLocked` when none of the keys fits, `badVault` when it is damaged, no age file,
  ///   or of a newer format.
  package init(opening bytes: [UInt8], with keys: DeviceKeys, path: String) throws {
    let opened = try VaultErrors.translating(bytes, path) { try Age.open(bytes, with: keys.ageKeys) }
    document = try VaultDocument(decoding: opened, path: path)
    guard !document.recipients.isEmpty else {
      throw DrydockError(
        .badVault,
        "its document does not say which keys it is sealed to (`recipients`), so that it could not be written again",
        path: path)
    }
  }

  /// How a sealed file is encrypted, such as `encrypted to 2 recipients (X25519)`.
  ///
  /// - Throws: ``DrydockError`` with code `badVault` for what is no age file, or has a damaged header.
  package static func encryption(of bytes: [UInt8], path: String) throws -> String {
    try VaultErrors.translating(bytes, path) { try Age.header(of: bytes).summary }
  }

  /// The same for a message, such as `encrypted to 2 recipients (X25519)`.
  package static func summary(of bytes: [UInt8]) -> String {
    (try? Age.header(of: bytes).summary) ?? "no age file that can be read"
  }

  /// The file: a binary age file, sealed to ``recipients``. It is another one each time.
  ///
  /// - Throws: ``DrydockError`` with code `unsupported` beyond ``sizeLimit``; `DrydockError` when the cryptographic library
  ///   fails.
  package func sealed() throws -> [UInt8] {
    let bytes = try Age.seal(document.encoded(), to: .recipients(recipients))
    guard bytes.count <= Self.sizeLimit else {
      throw DrydockError(
        .unsupported,
        "the vault would have \(bytes.count) bytes, and \(Self.sizeLimit) is the most; keep large data in files"
      )
    }
    return bytes
  }

  // MARK: Items

  /// An item by what makes it unique.
  package subscript(id: VaultItem.ID) -> VaultItem? { items[id] }

  /// Puts an item, in place of the one with the same id.
  package mutating func put(_ item: VaultItem) { document.items[item.id] = item }

  /// Takes an item out, and gives it back; nil when there is none.
  @discardableResult
  package mutating func remove(_ id: VaultItem.ID) -> VaultItem? { document.items.removeValue(forKey: id) }

  /// Takes all items out.
  package mutating func removeAll() { document.items.removeAll() }

  /// Has it sealed to other keys from now on. Copies that exist already stay readable with the old ones.
  ///
  /// - Throws: ``DrydockError`` with code `unsupported` for no key at all.
  package mutating func rekey(to recipients: [AgeRecipient]) throws {
    guard !recipients.isEmpty else {
      throw DrydockError(.unsupported, "a vault is sealed to one key at least; name one")
    }
    var seen: Set<AgeRecipient> = []
    document.recipients = recipients.filter { seen.insert($0).inserted }
  }
}
