import AppStores
import DrydockErrors

extension AuditRule {
  static let vault = [
    AuditRule(
      .keychainAlways, .error, "a keychain item that is always accessible",
      why:
        "the class `always` and its ThisDeviceOnly form are deprecated: the item is readable while the device is locked",
      fix: "`vault.set-accessibility` with afterFirstUnlock or whenUnlocked",
      source: apple("security/ksecattraccessiblealways")),
    AuditRule(
      .keychainKeyLeaves, .note, "a private key that leaves its device",
      why:
        "a key or certificate of a class without ThisDeviceOnly is restored to other devices, and identifies more than one",
      fix: "if the key means this device: `vault.set-accessibility` with a ThisDeviceOnly class",
      source: apple("security/restricting-keychain-item-accessibility")),
    AuditRule(
      .keychainNoGroup, .note, "a keychain item without an access group",
      why:
        "other items name a group: this one is in the app's default group, which follows the order of the entitlements",
      fix: "name the group: `vault.move-to`",
      source: apple("security/sharing-access-to-keychain-items-among-a-collection-of-apps")),
  ]
}

extension AuditContext {
  /// Examines the items of the vault, by their attributes; values are not looked at.
  mutating func checkVault() {
    let path = container.vaultPath
    guard staged.deviceKeys != nil else {
      notChecked.append("\(path): the vault's items, since no device key was given")
      return
    }
    do {
      check(try staged.vault()?.sorted ?? [], path.description)
    } catch {
      skip(path, error)
    }
  }

  private mutating func check(_ items: [VaultItem], _ path: String) {
    let groups = Set(items.compactMap(\.accessGroup))
    facts.keychainGroups = groups.sorted()
    for item in items {
      switch item.accessibility {
      case .always, .alwaysThisDeviceOnly:
        findings.add(
          .keychainAlways, path, "readable while the device is locked", unit: "item",
          example: "\(item), \(item.accessibility.rawValue)")
      default: break
      }
      if item.itemClass == .key || item.itemClass == .certificate, item.accessibility.leavesDevice,
        !item.isSynchronizable
      {
        findings.add(
          .keychainKeyLeaves, path, "keys or certificates that a backup brings to another device",
          unit: "item",
          example: "\(item), \(item.accessibility.rawValue)")
      }
      if !groups.isEmpty, item.accessGroup == nil {
        findings.add(
          .keychainNoGroup, path, "other items are in \(groups.sorted().prefix(3).joined(separator: ", "))",
          unit: "item", example: "\(item)")
      }
    }
  }
}
