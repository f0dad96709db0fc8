import AgeEncryption
import AppContainer
import DrydockErrors
import Formats
import Foundation

/// The name of an item as it is to be: `service/account`, or of an internet password `server/account`.
package struct VaultName: Sendable {
  /// The whole name; without a `/` it is the service or server alone.
  package var text: String?
  /// Single attributes, which win over it; an empty text takes one away.
  package var attributes: [VaultAttribute: String]

  /// A name, attributes, or both.
  package init(_ text: String? = nil, attributes: [VaultAttribute: String] = [:]) {
    (self.text, self.attributes) = (text, attributes)
  }

  /// What it says about an item of a class.
  func attributes(of itemClass: VaultItemClass) -> [VaultAttribute: String] {
    guard let text else { return attributes }
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    var named: [VaultAttribute: String] = [itemClass == .internetPassword ? .server : .service: parts[0]]
    if parts.count > 1 { named[.account] = parts[1] }
    return named.merging(attributes, uniquingKeysWith: { _, single in single })
  }
}

/// An item that is to be put into a vault: what is said about it, and its value.
package struct NewVaultItem: Sendable {
  /// What kind of secret it is.
  package var itemClass = VaultItemClass.genericPassword
  /// Its name.
  package var name: VaultName
  /// What else it says in text.
  package var attributes: [VaultAttribute: String] = [:]
  /// When a device can read it; nil leaves it as it is, and a new item is `whenUnlocked`, as in the keychain.
  package var accessibility: VaultAccessibility?
  /// Whether the keychain copies it to the owner's other devices.
  package var isSynchronizable = false
  /// What a person has to show to read it; nil leaves it as it is.
  package var accessControl: VaultAccessControl?
  /// The secret.
  package var value: SecretBytes

  /// An item with a value.
  package init(_ name: VaultName, value: SecretBytes) { (self.name, self.value) = (name, value) }

  /// The item, over the one that is there: what is not said stays.
  ///
  /// - Throws: `DrydockError` with code `unsupported` for what a keychain does not take.
  func item(over present: VaultItem?) throws -> VaultItem {
    var item = present ?? VaultItem(itemClass, value: value)
    let named = name.attributes(of: itemClass)
    for (attribute, text) in attributes.merging(named, uniquingKeysWith: { _, name in name }) {
      item[attribute] = text
    }
    guard named.contains(where: { !$0.value.isEmpty }) else {
      throw DrydockError(.unsupported, "an item needs a name: a service, an account, or a server")
    }
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
  /// - Throws: `DrydockError` with code `unsupported` for what a keychain does not take.
  func requireAllowed() throws {
    guard !isSynchronizable || accessibility.leavesDevice else {
      throw DrydockError(
        .unsupported,
        "\(self) cannot be synchronizable and \(accessibility.rawValue): what goes to other devices is whenUnlocked or "
          + "afterFirstUnlock")
    }
  }
}
