import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats
import Foundation

public enum VaultChange: Sendable {
  /// What to do when the vault already has the item.
  public enum IfExists: String, Sendable, CaseIterable {
    case fail, keep, replace
  }

  case set(NewVaultItem, ifExists: IfExists)
  case remove(VaultAddress)
  /// Gives an item another name, other attributes, or both.
  case rename(VaultAddress, to: VaultName)
  /// Changes when an item can be read: a new item replaces the old one.
  case setAccessibility(VaultAddress, VaultAccessibility)
  /// Seals the vault to other keys.
  case rekey([AgeRecipient])
}

public struct VaultChangeReport: Sendable {
  /// What was done, such as `set com.example.notes/auth`; also in the transaction log.
  public var summary: String
  /// The item that was changed, as it is now, or was; none when the vault was sealed to other keys.
  public var item: VaultItem?
  /// What may not be intended.
  public var notes: [String] = []
  /// The keys that the vault is sealed to.
  public var recipients: [AgeRecipient] = []
}

extension VaultChange {
  /// The vault with the change made.
  ///
  /// - Parameter vault: nil when there is none; setting an item makes one.
  /// - Throws: `DrydockError`: `missing`, `ambiguous` with the items that fit, `exists`, and
  ///   `unsupported` for what a keychain does not accept.
  func made(in vault: Vault?, keys: DeviceKeys) throws -> (vault: Vault, report: VaultChangeReport) {
    var changed: Vault
    if let vault {
      changed = vault
    } else if case .set = self {
      changed = try Vault(new: keys)
    } else {
      throw DrydockError(.notFound, "the container has no vault")
    }
    let report = try change(&changed)
    return (changed, report)
  }

  private func change(_ vault: inout Vault) throws -> VaultChangeReport {
    switch self {
    case .set(let item, let ifExists): return try Self.set(item, ifExists, in: &vault)
    case .remove(let address):
      let item = try vault.one(address)
      vault.remove(item.id)
      return VaultChangeReport(summary: "removed \(item)", item: item)
    case .rename(let address, let name): return try Self.rename(address, name, in: &vault)
    case .setAccessibility(let address, let accessibility):
      var item = try vault.one(address)
      let before = item.accessibility
      item.accessibility = accessibility
      try item.requireAllowed()
      if before != accessibility { item.modified = UTCTime.text(Date()) }
      vault.put(item)
      return VaultChangeReport(summary: "made \(item) accessible \(accessibility.rawValue)", item: item)
    case .rekey(let recipients):
      try vault.rekey(to: recipients)
      let number = vault.recipients.count
      return VaultChangeReport(
        summary: "sealed the vault to \(number == 1 ? "another key" : "\(number) keys")",
        notes: [
          "the old keys still open every copy made before: in archives, elsewhere, and in the undo log; if one was stolen, "
            + "change the secrets as well"
        ], recipients: vault.recipients)
    }
  }

  private static func set(
    _ new: NewVaultItem, _ ifExists: IfExists, in vault: inout Vault
  ) throws -> VaultChangeReport {
    let item = try new.item(over: nil)
    guard let present = vault[item.id] else {
      let alike = vault.sorted.filter { $0.id.name == item.id.name && $0.itemClass == item.itemClass }
      vault.put(item)
      var report = VaultChangeReport(summary: "set \(item)", item: item)
      if !alike.isEmpty { report.notes.append("this is a new item; the vault also has \(names(alike))") }
      return report
    }
    switch ifExists {
    case .fail:
      throw DrydockError(
        .exists, "the vault already has \(item)")
    case .keep: return VaultChangeReport(summary: "kept \(present)", item: present)
    case .replace:
      let replaced = try new.item(over: present)
      vault.put(replaced)
      return VaultChangeReport(summary: "replaced \(replaced)", item: replaced)
    }
  }

  private static func rename(
    _ address: VaultAddress, _ name: VaultName, in vault: inout Vault
  ) throws -> VaultChangeReport {
    let old = try vault.one(address)
    var new = old
    for (attribute, text) in name.attributes(of: old.itemClass) { new[attribute] = text }
    if new == old { return VaultChangeReport(summary: "kept \(old)", item: old) }
    if new.id != old.id, let present = vault[new.id] {
      throw DrydockError(.exists, "the vault already has \(present); remove it first")
    }
    new.modified = UTCTime.text(Date())
    vault.remove(old.id)
    vault.put(new)
    return VaultChangeReport(summary: "renamed \(old) to \(new)", item: new)
  }

  /// The first names, and how many more there are.
  static func names(_ items: [VaultItem]) -> String {
    let more = items.count > 10 ? " and \(items.count - 10) more" : ""
    return items.prefix(10).map(\.description).joined(separator: ", ") + more
  }
}

extension Vault {
  /// The one item that an address matches.
  ///
  /// - Throws: `DrydockError`: `missing`, or `ambiguous` with the items that match.
  public func one(_ address: VaultAddress) throws -> VaultItem {
    let found = address.items(in: self)
    if let item = found.first, found.count == 1 { return item }
    guard found.isEmpty else {
      throw DrydockError(
        .ambiguous,
        "\(found.count) items match \(address): \(VaultChange.names(found)); name more attributes of the one that is meant"
      )
    }
    let near = NearestWord.to(address.name ?? "", among: sorted.map(\.description))
    throw DrydockError(
      .missing,
      "no item of the vault matches \(address)" + (near.map { "; did you mean \($0)?" } ?? ""))
  }
}

/// The new name of an item: `service/account`, or of an internet password `server/account`.
public struct VaultName: Sendable {
  /// The whole name; without a `/`, the service or server alone.
  public var text: String?
  /// Single attributes, which win over it; an empty text removes one.
  public var attributes: [VaultAttribute: String]

  public init(_ text: String? = nil, attributes: [VaultAttribute: String] = [:]) {
    (self.text, self.attributes) = (text, attributes)
  }

  /// The attributes it names for an item of a class.
  func attributes(of itemClass: VaultItemClass) -> [VaultAttribute: String] {
    guard let text else { return attributes }
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    var named: [VaultAttribute: String] = [itemClass == .internetPassword ? .server : .service: parts[0]]
    if parts.count > 1 { named[.account] = parts[1] }
    return named.merging(attributes, uniquingKeysWith: { _, single in single })
  }
}

/// An item to be added to a vault, or to replace one.
public struct NewVaultItem: Sendable {
  public var itemClass = VaultItemClass.genericPassword
  public var name: VaultName
  public var attributes: [VaultAttribute: String] = [:]
  /// When a device can read it; nil leaves it as it is, and a new item is `whenUnlocked`, as in the keychain.
  public var accessibility: VaultAccessibility?
  /// Whether the keychain copies it to the owner's other devices.
  public var isSynchronizable = false
  /// What a user must present to read it; nil leaves it as it is.
  public var accessControl: VaultAccessControl?
  public var value: SecretBytes

  public init(_ name: VaultName, value: SecretBytes) { (self.name, self.value) = (name, value) }

  /// The item, based on the present one: what is not given stays.
  ///
  /// - Throws: `DrydockError` with code `unsupported` for what a keychain does not accept.
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
  /// - Throws: `DrydockError` with code `unsupported` for what a keychain does not accept.
  func requireAllowed() throws {
    guard !isSynchronizable || accessibility.leavesDevice else {
      throw DrydockError(
        .unsupported,
        "\(self) cannot be synchronizable and \(accessibility.rawValue): what goes to other devices is whenUnlocked or "
          + "afterFirstUnlock")
    }
  }
}
