import AgeEncryption
import AppContainer

/// Compares two vaults item by item, as far as the keys at hand open them.
struct VaultComparison {
  let path: ContainerPath
  let keys: DeviceKeys?
  let redactor: Redactor

  /// What differs; nil when only the sealing does: a vault that was sealed anew has other bytes and the same items.
  ///
  /// - Parameters:
  ///   - old: the file as it was; nil when there was none.
  ///   - new: the file as it is; nil when there is none.
  func difference(
    _ old: [UInt8]?, _ new: [UInt8]?, _ change: ContainerDifference.Change
  ) -> ContainerDifference.Vault? {
    var difference = ContainerDifference.Vault(path: path, change: change)
    do {
      let (before, after) = (try open(old), try open(new))
      if before == after { return nil }
      difference.items = items(before, after)
      if let before, let after { describe(before, after, in: &difference) }
    } catch {
      difference.problem = (error as? ContainerError)?.message ?? String(describing: error)
    }
    return difference
  }

  private func open(_ bytes: [UInt8]?) throws -> Vault? {
    guard let bytes else { return nil }
    guard let keys else {
      throw ContainerError(
        .vaultLocked, "it is \(Vault.summary(of: bytes)), and no device key is at hand to look into it")
    }
    return try Vault(opening: bytes, with: keys, path: path.description)
  }

  private func describe(_ before: Vault, _ after: Vault, in difference: inout ContainerDifference.Vault) {
    if before.recipients != after.recipients {
      difference.recipientsBefore = before.recipients.map(\.description)
      difference.recipientsAfter = after.recipients.map(\.description)
    }
    if before.device != after.device {
      (difference.deviceBefore, difference.deviceAfter) = (before.device, after.device)
    }
  }

  // MARK: Items

  private func items(_ before: Vault?, _ after: Vault?) -> [ContainerDifference.VaultItem] {
    let (old, new) = (before?.items ?? [:], after?.items ?? [:])
    return Set(old.keys).union(new.keys).sorted().compactMap { id in
      let (before, after) = (old[id], new[id])
      if before == after { return nil }
      var item = ContainerDifference.VaultItem(
        name: id.description, class: id.itemClass.rawValue,
        change: before == nil ? .added : after == nil ? .removed : .changed)
      item.attributes = attributes(before, after)
      if before?.value != after?.value {
        item.valueBefore = before.map { redactor.shown(secret: $0.value) }
        item.valueAfter = after.map { redactor.shown(secret: $0.value) }
      }
      return item
    }
  }

  /// The attributes that differ; a time alone only when nothing else does.
  private func attributes(_ before: VaultItem?, _ after: VaultItem?) -> [ContainerDifference.Field] {
    let fields = zip(told(before), told(after)).compactMap { old, new -> ContainerDifference.Field? in
      old.text == new.text ? nil : .init(name: old.name, before: old.text, after: new.text)
    }
    let isOnlyTime = fields.isEmpty && before != nil && before?.value == after?.value
    guard isOnlyTime, before?.modified != after?.modified || before?.created != after?.created else {
      return fields
    }
    return [.init(name: "modified", before: before?.modified, after: after?.modified)]
  }

  /// What an item says, the same names in the same order for each; what its name says already is left out.
  private func told(_ item: VaultItem?) -> [(name: String, text: String?)] {
    let texts = VaultAttribute.allCases.map { attribute in
      let isName = item?.itemClass.identifying.contains(attribute) ?? true
      return (attribute.words, isName ? nil : item?[attribute].map { redactor.shown(.string($0), key: "") })
    }
    return texts + [
      ("accessible", item?.accessibility.rawValue), ("access control", item?.accessControl?.description),
      (
        "further fields",
        item.flatMap { $0.hasFurtherFields ? redactor.shown(secret: $0.furtherFields) : nil }
      ),
    ]
  }
}
