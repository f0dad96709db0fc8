import AgeEncryption
import AppContainer
import ContainerTransaction
import DrydockErrors
import Formats
import Foundation

/// One change of a vault, to be looked at before it is made.
package enum VaultChange: Sendable {
  /// What to do about an item that is there already.
  package enum IfExists: String, Sendable, CaseIterable {
    case fail, keep, replace
  }

  /// Puts an item.
  case set(NewVaultItem, ifExists: IfExists)
  /// Takes an item out.
  case remove(VaultAddress)
  /// Gives an item another name, other attributes, or both.
  case rename(VaultAddress, to: VaultName)
  /// Says anew when an item can be read: a new item takes the old one's place.
  case setAccessibility(VaultAddress, VaultAccessibility)
  /// Has the vault sealed to other keys.
  case rekey([AgeRecipient])
}

/// What a change of a vault did.
package struct VaultChangeReport: Sendable {
  /// What was done, such as `set com.example.notes/auth`; in the transaction's log, too.
  package var summary: String
  /// The item that was changed, as it is now, or was; none when the vault was sealed to other keys.
  package var item: VaultItem?
  /// What may not be what was meant.
  package var notes: [String] = []
  /// The keys that the vault is sealed to.
  package var recipients: [AgeRecipient] = []
}

extension VaultChange {
  /// The vault with the change made.
  ///
  /// - Parameter vault: nil when there is none; setting an item makes one.
  /// - Throws: `DrydockError`: `missing`, `ambiguous` with the items that fit, `exists`; `DrydockError` with code
  ///   `unsupported` for what a keychain does not take.
  func made(in vault: Vault?, keys: DeviceKeys) throws -> (vault: Vault, report: VaultChangeReport) {
    var changed: Vault
    if let vault {
      changed = vault
    } else if case .set = self {
      changed = try Vault(new: keys)
    } else {
      throw DrydockError(.missing, "the container has no vault; `drydock vault set` makes one")
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
          "the old keys still open every copy made before: in archives, elsewhere, and what is kept to roll back; where one "
            + "is in wrong hands, change the secrets, too"
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
      if !alike.isEmpty { report.notes.append("it is a new item, beside \(names(alike))") }
      return report
    }
    switch ifExists {
    case .fail:
      throw DrydockError(
        .exists, "\(item) is in the vault already; --if-exists replace gives it the new value")
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
      throw DrydockError(.exists, "\(present) is in the vault already; remove it first")
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
  /// The one item that an address fits.
  ///
  /// - Throws: `DrydockError`: `missing`, or `ambiguous` with the items that fit.
  package func one(_ address: VaultAddress) throws -> VaultItem {
    let found = address.items(in: self)
    if let item = found.first, found.count == 1 { return item }
    guard found.isEmpty else {
      throw DrydockError(
        .ambiguous,
        "\(found.count) items fit \(address): \(VaultChange.names(found)); say more of the one that is meant, such as "
          + "--account, --access-group ('' for none) or --class")
    }
    let near = NearestWord.to(address.name ?? "", among: sorted.map(\.description))
    throw DrydockError(
      .missing,
      "no item of the vault fits \(address); "
        + (near.map { "did you mean \($0)?" } ?? "`drydock vault list` shows all"))
  }
}
