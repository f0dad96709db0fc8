import AgeEncryption
import AppContainer
import Foundation

/// An item that is to be put into a vault: what is said about it, and its value.
public struct NewVaultItem: Sendable {
  /// What kind of secret it is.
  public var itemClass = VaultItemClass.genericPassword
  /// Its text attributes.
  public var attributes: [VaultAttribute: String]
  /// When a device can read it; nil leaves it as it is, and a new item is `whenUnlocked`, as in the keychain.
  public var accessibility: VaultAccessibility?
  /// Whether the keychain copies it to the owner's other devices.
  public var isSynchronizable = false
  /// What a person has to show to read it; nil leaves it as it is.
  public var accessControl: VaultAccessControl?
  /// The secret.
  public var value: SecretBytes

  /// An item with a value.
  public init(attributes: [VaultAttribute: String], value: SecretBytes) {
    (self.attributes, self.value) = (attributes, value)
  }

  /// The item, over the one that is there: what is not said stays.
  ///
  /// - Throws: `ContainerError` with code `unsupported` for what a keychain does not take.
  func item(over present: VaultItem?) throws -> VaultItem {
    var item = present ?? VaultItem(itemClass, value: value)
    for (attribute, text) in attributes { item[attribute] = text }
    item.isSynchronizable = isSynchronizable
    if let accessibility { item.accessibility = accessibility }
    if let accessControl { item.accessControl = accessControl }
    item.value = value
    let now = UTCTime.text(Date())
    item.created = present == nil ? now : item.created
    item.modified = now
    try item.requireAllowed()
    return item
  }
}

extension VaultItem {
  /// - Throws: `ContainerError` with code `unsupported` for what a keychain does not take.
  func requireAllowed() throws {
    guard !isSynchronizable || accessibility.leavesDevice else {
      throw ContainerError(
        .unsupported,
        "\(self) cannot be synchronizable and \(accessibility.rawValue): what goes to other devices is whenUnlocked or "
          + "afterFirstUnlock")
    }
  }
}
