import AppStores
import ContainerTransaction
import Cryptography
import FileSystem
import Formats
import Foundation

/// Vault items that a step changed, sealed to the recipients of the vault: neither names nor values are readable.
struct RecordedItems: Sendable, Codable, Equatable {
  /// One item before and after; nil when it was or is absent.
  typealias Change = (before: VaultItem?, after: VaultItem?)

  /// Indexes into the sorted items of the two sealed vaults.
  private struct Pair: Sendable, Codable, Equatable {
    var before, after: Int?
  }

  private var before, after: Data
  private var pairs: [Pair]

  /// Seals changes to the recipients of the vault that they were made in.
  init(_ changes: [Change], sealedAs vault: Vault) throws {
    var empty = vault
    empty.removeAll()
    var (old, new) = (empty, empty)
    for change in changes {
      if let item = change.before { old.put(item) }
      if let item = change.after { new.put(item) }
    }
    let (oldIDs, newIDs) = (old.sorted.map(\.id), new.sorted.map(\.id))
    pairs = changes.map { change in
      Pair(
        before: change.before.flatMap { oldIDs.firstIndex(of: $0.id) },
        after: change.after.flatMap { newIDs.firstIndex(of: $0.id) })
    }
    (before, after) = (Data(try old.sealed()), Data(try new.sealed()))
  }

  /// The changes, in their order.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when no device key opens them.
  func open(on stage: StagedContainer) throws -> [Change] {
    let keys = try stage.requireDeviceKeys("reverting a step on the vault")
    let path = stage.container.vaultPath.description
    let old = try Vault(opening: [UInt8](before), with: keys, path: path).sorted
    let new = try Vault(opening: [UInt8](after), with: keys, path: path).sorted
    return try pairs.map { pair in
      guard pair.before.map(old.indices.contains) ?? true, pair.after.map(new.indices.contains) ?? true else {
        throw StepFailure("the recorded vault items of the step are corrupt", at: stage.container.vaultPath)
      }
      return (pair.before.map { old[$0] }, pair.after.map { new[$0] })
    }
  }
}

extension PriorValues {
  /// Reverts each attribute and value of vault items that still is what the step wrote. Newer ones stay.
  ///
  /// - Parameter inverse: the old form of a value that is newer than the step; nil when it has none.
  func revertItems(
    on stage: StagedContainer, inverse: (VaultItem) throws -> SecretBytes? = { _ in nil }
  ) throws -> [String] {
    guard let items else { return [] }
    let changes = try items.open(on: stage)
    guard var vault = try stage.vault() ?? emptyVault(changes, stage) else {
      return ["the vault does not exist: skipped"]
    }
    var notes: [String] = []
    var returning: [(now: VaultItem, then: VaultItem)] = []
    for case (let before?, let after?) in changes where before != after {
      guard let now = vault[after.id] else {
        notes.append("the vault item \(after) does not exist: skipped")
        continue
      }
      var then = now.reverting(to: before, from: after)
      if before.value != after.value && now.value != after.value {
        if let value = try inverse(now) {
          then.value = value
        } else {
          notes.append("the vault item \(now) was changed since: its value is left unchanged")
        }
      }
      returning.append((now, then))
    }
    let known = Set(changes.flatMap { [$0.before?.id, $0.after?.id].compactMap { $0 } })
    for now in vault.sorted where !known.contains(now.id) {
      if let then = changes.lazy.compactMap(now.namedBack).first { returning.append((now, then)) }
    }
    for item in returning { vault.remove(item.now.id) }
    for item in returning {
      if vault[item.then.id] == nil {
        vault.put(item.then)
      } else {
        notes.append("the vault item \(item.then) exists already: kept, and \(item.now) too")
        vault.put(item.now)
      }
    }
    for case (let before?, nil) in changes {
      if vault[before.id] == nil {
        vault.put(before)
      } else {
        notes.append("the vault item \(before) exists: left unchanged")
      }
    }
    try stage.setVault(vault)
    return notes
  }

  /// The vault for restored items when the container has none any more.
  private func emptyVault(_ changes: [RecordedItems.Change], _ stage: StagedContainer) throws -> Vault? {
    guard changes.contains(where: { $0.after == nil }) else { return nil }
    return try Vault(new: stage.requireDeviceKeys("reverting a step on the vault"))
  }
}

extension VaultItem {
  /// An item that was written since, under the previous service or access group if it has the one that a change gave.
  fileprivate func namedBack(_ change: RecordedItems.Change) -> VaultItem? {
    guard let before = change.before, let after = change.after else { return nil }
    var item = self
    for attribute in [VaultItem.Attribute.service, .accessGroup] where self[attribute] == after[attribute] {
      item[attribute] = before[attribute]
    }
    return item == self ? nil : item
  }

  /// This item with the previous value of each attribute that was not changed since.
  fileprivate func reverting(to before: VaultItem, from after: VaultItem) -> VaultItem {
    var item = self
    for attribute in VaultItem.Attribute.allCases where self[attribute] == after[attribute] {
      item[attribute] = before[attribute]
    }
    if accessibility == after.accessibility { item.accessibility = before.accessibility }
    if accessControl == after.accessControl { item.accessControl = before.accessControl }
    if isSynchronizable == after.isSynchronizable { item.isSynchronizable = before.isSynchronizable }
    if value == after.value { item.value = before.value }
    if modified == after.modified { item.modified = before.modified }
    return item
  }
}

extension PropertyListValue {
  /// The same type without content: empty texts and data, and numbers of 0.
  var emptied: PropertyListValue {
    switch self {
    case .string, .unknown: .string("")
    case .boolean: .boolean(false)
    case .integer: .integer(0)
    case .unsigned: .unsigned(0)
    case .real: .real(0)
    case .single: .single(0)
    case .int: .int(0)
    case .long: .long(0)
    case .set(let values): .set(StringSet(values.strings.prefix(0)))
    case .date: .date(Date(timeIntervalSinceReferenceDate: 0))
    case .data: .data([])
    case .array(let values): .array(values.map(\.emptied))
    case .dictionary(let values): .dictionary(values.mapValues(\.emptied))
    }
  }

  /// The value with its numbers in the types of another value, where that loses nothing: JSON has one type for all.
  func typed(like other: PropertyListValue?) -> PropertyListValue {
    switch (self, other) {
    case (.integer(let number), .real?): .real(Double(number))
    case (.integer(let number), .single?): .single(Float(number))
    case (.integer(let number), .unsigned?): UInt64(exactly: number).map { .unsigned($0) } ?? self
    case (.real(let real), .single?): .single(Float(real))
    case (.integer(let number), .int?): Int32(exactly: number).map { .int($0) } ?? self
    case (.integer(let number), .long?): .long(number)
    case (.array(let values), .set?): StringSet(array: values).map { .set($0) } ?? self
    case (.array(let values), .array(let others)?) where values.count == others.count:
      .array(zip(values, others).map { $0.typed(like: $1) })
    case (.dictionary(let values), .dictionary(let others)?):
      .dictionary(PropertyListDictionary(values.map { ($0, $1.typed(like: others[$0])) }))
    default: self
    }
  }
}
