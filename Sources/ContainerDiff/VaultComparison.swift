import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// Compares two vaults item by item, as far as the given keys open them.
struct VaultComparison {
  let path: ContainerPath
  let keys: DeviceKeys?
  let redactor: Redactor

  /// What differs; nil when only the sealing does: a vault that was sealed again has other bytes and the same items.
  ///
  /// - Parameters:
  ///   - old: what it was; nil when there was none.
  ///   - new: what it is; nil when there is none.
  func difference(
    _ old: ComparedVault?, _ new: ComparedVault?, _ change: ContainerDifference.Change
  ) -> ContainerDifference.Vault? {
    var difference = ContainerDifference.Vault(path: path, change: change)
    do {
      let (before, after) = (try open(old), try open(new))
      if let before = before?.vault, before == after?.vault { return nil }
      let isListed = [before, after].contains { $0 != nil && $0?.vault == nil }
      let items = items(before?.items ?? [:], after?.items ?? [:], isListed: isListed)
      if isListed, items.isEmpty, before != nil, after != nil { return nil }
      difference.items = items
      if let before = before?.vault, let after = after?.vault { describe(before, after, in: &difference) }
    } catch {
      difference.problem = (error as? DrydockError)?.message ?? String(describing: error)
    }
    return difference
  }

  /// A vault's items, and the vault where it is one and not only a list of them.
  private typealias Opened = (items: [VaultItem.ID: VaultItem], vault: Vault?)

  private func open(_ held: ComparedVault?) throws -> Opened? {
    switch held {
    case nil: return nil
    case .items(let items):
      return (Dictionary(items.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first }), nil)
    case .sealed(let bytes):
      guard let keys else {
        throw DrydockError(
          .vaultLocked, "it is \(Vault.summary(of: bytes)), and no device key was given to open it")
      }
      let vault = try Vault(opening: bytes, with: keys, path: path.description)
      return (vault.items, vault)
    }
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

  /// - Parameter isListed: whether one side is a list of items, which says less of them than a vault.
  private func items(
    _ old: [VaultItem.ID: VaultItem], _ new: [VaultItem.ID: VaultItem], isListed: Bool
  ) -> [ContainerDifference.VaultItem] {
    Set(old.keys).union(new.keys).sorted().compactMap { id in
      let (before, after) = (old[id], new[id])
      if before == after { return nil }
      var item = ContainerDifference.VaultItem(
        name: id.description, class: id.itemClass.rawValue,
        change: before == nil ? .added : after == nil ? .removed : .changed)
      item.attributes = attributes(before, after, isListed: isListed)
      if before?.value != after?.value {
        item.valueBefore = before.map { redactor.shown(secret: $0.value) }
        item.valueAfter = after.map { redactor.shown(secret: $0.value) }
      } else if isListed, item.attributes.isEmpty {
        return nil
      }
      return item
    }
  }

  /// The attributes that differ; a time alone only when nothing else does.
  private func attributes(
    _ before: VaultItem?, _ after: VaultItem?, isListed: Bool
  ) -> [ContainerDifference.Field] {
    let (old, new) = (attributeTexts(before, isListed: isListed), attributeTexts(after, isListed: isListed))
    let fields = zip(old, new).compactMap { old, new -> ContainerDifference.Field? in
      old.text.map { ExactText($0) } == new.text.map { ExactText($0) }
        ? nil : .init(name: old.name, before: old.text, after: new.text)
    }
    let isOnlyTime = !isListed && fields.isEmpty && before != nil && before?.value == after?.value
    guard isOnlyTime, before?.modified != after?.modified || before?.created != after?.created else {
      return fields
    }
    return [.init(name: "modified", before: before?.modified, after: after?.modified)]
  }

  /// What an item says, the same names in the same order for each; what its name says already is left out.
  private func attributeTexts(_ item: VaultItem?, isListed: Bool) -> [(name: String, text: String?)] {
    let texts = VaultItem.Attribute.allCases.map { attribute in
      let isName = item?.itemClass.identifying.contains(attribute) ?? true
      return (attribute.words, isName ? nil : item?[attribute].map { redactor.shown(.string($0), key: "") })
    }
    let further = item.flatMap { $0.hasUnknownFields ? redactor.shown(secret: $0.unknownFields) : nil }
    return texts + [
      ("accessible", item?.accessibility.rawValue), ("access control", item?.accessControl?.description),
      ("further fields", isListed ? nil : further),
    ]
  }
}
