import AgeEncryption
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import Formats
import Foundation
import MigrationEngine

/// A change of the vault.
public enum VaultChange: Sendable {
  /// Puts an item; `ifExists` is about one that the vault has already.
  case set(VaultChange.NewItem, ifExists: IfExists)
  case remove(VaultItem.Address)
  /// Gives an item another name, other attributes, or both.
  case rename(VaultItem.Address, to: VaultChange.Name)
  /// Changes when an item can be read: a new item replaces the old one.
  case setAccessibility(VaultItem.Address, VaultItem.Accessibility)
  /// Changes what a user must present to read an item; nothing when nil.
  case setAccessControl(VaultItem.Address, VaultItem.AccessControl?)
  /// Changes whether the keychain copies an item to the user's other devices, which is part of its identity.
  case setSynchronizable(VaultItem.Address, Bool)
  /// Seals the vault to other keys.
  case rekey([AgeRecipient])
}

extension VaultChange {
  /// What a change of the vault did.
  public struct Report: Sendable {
    /// What was done, such as `set com.example.notes/auth`; also in the transaction log.
    public var summary: String
    /// The item that was changed, as it is now, or was; none when the vault was sealed to other keys.
    public var item: VaultItem?
    /// What may not be intended.
    public var notes: [String] = []
    /// The keys that the vault is sealed to.
    public var recipients: [AgeRecipient] = []
  }
}

extension VaultChange {
  /// The vault with the change made.
  ///
  /// - Parameter vault: nil when there is none; setting an item makes one.
  /// - Throws: `DrydockError`: `missing`, `ambiguous` with the items that fit, `exists`, and
  ///   `unsupported` for what a keychain does not accept.
  func made(in vault: Vault?, keys: DeviceKeys) throws -> (vault: Vault, report: VaultChange.Report) {
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

  private func change(_ vault: inout Vault) throws -> VaultChange.Report {
    switch self {
    case .set(let item, let ifExists): return try Self.set(item, ifExists, in: &vault)
    case .remove(let address):
      let item = try vault.one(address)
      vault.remove(item.id)
      return VaultChange.Report(summary: "removed \(item)", item: item)
    case .rename(let address, let name): return try Self.rename(address, name, in: &vault)
    case .setAccessibility(let address, let accessibility):
      let item = try Self.change(address, in: &vault) { $0.accessibility = accessibility }
      return VaultChange.Report(summary: "made \(item) accessible \(accessibility.rawValue)", item: item)
    case .setAccessControl(let address, let accessControl):
      let item = try Self.change(address, in: &vault) { $0.accessControl = accessControl }
      let what = accessControl.map { "put \(item) under the access control \($0)" }
      return VaultChange.Report(summary: what ?? "removed the access control of \(item)", item: item)
    case .setSynchronizable(let address, let isSynchronizable):
      let item = try Self.change(address, in: &vault) { $0.isSynchronizable = isSynchronizable }
      return VaultChange.Report(
        summary: "made \(item) \(isSynchronizable ? "synchronizable" : "not synchronizable")", item: item)
    case .rekey(let recipients):
      try vault.rekey(to: recipients)
      let number = vault.recipients.count
      return VaultChange.Report(
        summary: "sealed the vault to \(number == 1 ? "another key" : "\(number) keys")",
        notes: [
          "the old keys still open every copy made before: in archives, elsewhere, and in the undo log; if one was stolen, "
            + "change the secrets as well"
        ], recipients: vault.recipients)
    }
  }

  /// Changes attributes of an item, and returns it as it is then.
  private static func change(
    _ address: VaultItem.Address, in vault: inout Vault, by change: (inout VaultItem) -> Void
  ) throws -> VaultItem {
    let old = try vault.one(address)
    var new = old
    change(&new)
    if new == old { return old }
    try new.requireAllowed()
    return try replace(old, by: new, in: &vault)
  }

  private static func replace(
    _ old: VaultItem, by new: VaultItem, in vault: inout Vault
  ) throws -> VaultItem {
    if new.id != old.id, let present = vault[new.id] {
      throw DrydockError(.exists, "the vault already has \(present); remove it first")
    }
    var new = new
    new.modified = UTCTime.text(Date())
    vault.remove(old.id)
    vault.put(new)
    return new
  }

  private static func set(
    _ new: VaultChange.NewItem, _ ifExists: IfExists, in vault: inout Vault
  ) throws -> VaultChange.Report {
    let item = try new.item(over: nil)
    guard let present = vault[item.id] else {
      let alike = vault.sorted.filter { $0.id.name == item.id.name && $0.itemClass == item.itemClass }
      vault.put(item)
      var report = VaultChange.Report(summary: "set \(item)", item: item)
      if !alike.isEmpty { report.notes.append("this is a new item; the vault also has \(alike.listed(10))") }
      return report
    }
    switch ifExists {
    case .fail:
      throw DrydockError(
        .exists, "the vault already has \(item)")
    case .keep: return VaultChange.Report(summary: "kept \(present)", item: present)
    case .replace:
      let replaced = try new.item(over: present)
      vault.put(replaced)
      return VaultChange.Report(summary: "replaced \(replaced)", item: replaced)
    }
  }

  private static func rename(
    _ address: VaultItem.Address, _ name: VaultChange.Name, in vault: inout Vault
  ) throws -> VaultChange.Report {
    let old = try vault.one(address)
    var new = old
    for (attribute, text) in name.attributes(of: old.itemClass) { new[attribute] = text }
    if new == old { return VaultChange.Report(summary: "kept \(old)", item: old) }
    new = try replace(old, by: new, in: &vault)
    return VaultChange.Report(summary: "renamed \(old) to \(new)", item: new)
  }
}

extension Vault {
  /// The one item that an address matches.
  ///
  /// - Throws: `DrydockError`: `missing`, or `ambiguous` with the items that match.
  public func one(_ address: VaultItem.Address) throws -> VaultItem {
    let found = address.items(in: self)
    if let item = found.first, found.count == 1 { return item }
    guard found.isEmpty else {
      throw DrydockError(
        .ambiguous,
        "\(found.count) items match \(address): \(found.listed(10)); name more attributes of the one that is meant"
      )
    }
    let near = NearestWord.to(address.name ?? "", among: sorted.map(\.description))
    throw DrydockError(
      .missing,
      "no item of the vault matches \(address)" + (near.map { "; did you mean \($0)?" } ?? ""))
  }
}

extension VaultChange {
  /// The new name of an item: `service/account`, or of an internet password `server/account`.
  public struct Name: Sendable {
    /// The whole name; without a `/`, the service or server alone.
    public var text: String?
    /// Single attributes, which win over it; an empty text removes one.
    public var attributes: [VaultItem.Attribute: String]

    /// A name, single attributes, or both.
    public init(_ text: String? = nil, attributes: [VaultItem.Attribute: String] = [:]) {
      (self.text, self.attributes) = (text, attributes)
    }

    /// The attributes it names for an item of a class.
    func attributes(of itemClass: VaultItem.Class) -> [VaultItem.Attribute: String] {
      guard let text else { return attributes }
      let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      var named: [VaultItem.Attribute: String] = [
        itemClass == .internetPassword ? .server : .service: parts[0]
      ]
      if parts.count > 1 { named[.account] = parts[1] }
      return named.merging(attributes, uniquingKeysWith: { _, single in single })
    }
  }
}

extension VaultChange {
  /// An item to be added to a vault, or to replace one.
  public struct NewItem: Sendable {
    /// What kind of secret it is.
    public var itemClass = VaultItem.Class.genericPassword
    /// What identifies it in its class.
    public var name: VaultChange.Name
    /// Its other attributes, such as a label.
    public var attributes: [VaultItem.Attribute: String] = [:]
    /// When a device can read it; nil leaves it as it is, and a new item is `whenUnlocked`, as in the keychain.
    public var accessibility: VaultItem.Accessibility?
    /// Whether the keychain copies it to the owner's other devices.
    public var isSynchronizable = false
    /// What a user must present to read it; nil leaves it as it is.
    public var accessControl: VaultItem.AccessControl?
    /// The secret.
    public var value: SecretBytes

    /// A generic password; the properties say what else it may be.
    public init(_ name: VaultChange.Name, value: SecretBytes) { (self.name, self.value) = (name, value) }

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
}

extension VaultItem {
  /// - Throws: `DrydockError` with code `unsupported` for what a keychain does not accept.
  func requireAllowed() throws {
    if let problem { throw DrydockError(.unsupported, "\(self): \(problem)") }
  }
}
