import AppContainer
import ContainerTransaction

/// What a restore does with the vault, decided item by item before anything is staged.
struct VaultPlan {
  enum Action {
    /// The container's stays as it is.
    case nothing
    /// The archive's file comes back as it is.
    case put
    /// A vault is written.
    case write(Vault)
    /// The container's goes.
    case remove
  }

  private(set) var action = Action.nothing
  private(set) var report = RestoredVault()

  /// A plan for a vault that is in the archive.
  ///
  /// - Parameters:
  ///   - way: which items may return; of an archive that is a copy of another one, between that and here.
  ///   - staying: what else is known to have been in the vault.
  ///   - keepsExtra: whether items stay that the archive does not have.
  ///   - isMigrated: whether the items come out of a migration, which dates those anew that it makes.
  /// - Throws: `DrydockError`, `DrydockError` when no new vault can be made.
  init(
    _ archived: ArchivedVault, into live: LiveVault, _ keys: DeviceKeys?, way: VaultReturn,
    staying: [VaultExtract.Staying], keepsExtra: Bool, isMigrated: Bool
  ) throws {
    report.isSameDevice =
      archived.isWhole && way.toSameDevice ? true : live.vault.map { $0.device == archived.device }
    switch (live, keys, archived) {
    case (.closed(let reason), _, _): leaveAll(archived, staying, reason)
    case (_, nil, _): leaveAll(archived, staying, ArchivedVault.noKey)
    case (_, _, .none(let reason)): leaveAll(archived, staying, reason)
    case (_, let keys?, _):
      var result = try live.vault ?? Self.empty(archived, keys)
      take(archived.items, way, isMigrated, into: &result)
      leave(staying, way)
      if !keepsExtra { removeExtra(archived.items, Set(staying.map(\.name)), way, from: &result) }
      action = Self.action(result, archived, live)
    }
  }

  /// A plan for a vault that the archive lacks: what could have been in it goes.
  init(lackingFor live: LiveVault) {
    // Whose archive it is cannot be told without a vault: what never leaves its device stays.
    let way = VaultReturn(toSameDevice: false, fromEncrypted: true)
    guard var result = live.vault else {
      if case .closed(let reason) = live {
        report.problem = reason
        report.leftBehind.append(
          .init(item: nil, reason: "the archive has no vault, and the container's stays: \(reason)"))
      }
      return
    }
    removeExtra([:], [], way, from: &result)
    action = result.items.isEmpty ? .remove : report.removed.isEmpty ? .nothing : .write(result)
  }

  /// A plan for the vault of an archive, and where its items come from.
  ///
  /// - Parameter sealed: the archive's file; nil when it has something else in its place.
  static func make(
    _ sealed: [UInt8]?, _ archive: Archive, _ staged: StagedContainer, _ options: RestoreOptions
  ) throws -> (plan: VaultPlan, origin: VaultOrigin) {
    let keys = staged.deviceKeys
    let archived = try ArchivedVault(sealed, archive, keys, path: staged.container.vaultPath)
    var origin = VaultOrigin(
      isSameDevice: archived.isWhole, isEncrypted: archive.encryption != nil, staying: archived.staying)
    var isMigrated = false
    switch options.vault {
    case .whole: return (try VaultPlan(copying: archived, keys), origin)
    case .byItemOf(let other): (origin, isMigrated) = (other, true)
    case .byItem: break
    }
    let way = VaultReturn(
      toSameDevice: origin.isSameDevice, fromEncrypted: origin.isEncrypted,
      includesSynchronizable: options.includesSynchronizable)
    let plan = try VaultPlan(
      archived, into: LiveVault(staged), keys, way: way, staying: origin.staying,
      keepsExtra: options.keepExtra, isMigrated: isMigrated)
    return (plan, origin)
  }

  /// All that can be had, for a private copy; nobody looks into one that does not open.
  private init(copying archived: ArchivedVault, _ keys: DeviceKeys?) throws {
    action = .put
    guard let keys, case .extract(let extract, _) = archived else { return }
    var vault = try Vault(new: keys)
    for item in extract.document.sorted { vault.put(item) }
    action = .write(vault)
  }

  // MARK: Items

  private mutating func take(
    _ items: [VaultItem.ID: VaultItem], _ way: VaultReturn, _ isMigrated: Bool, into result: inout Vault
  ) {
    for (id, item) in items.sorted(by: { $0.key < $1.key }) {
      if let present = result[id], present == (isMigrated ? item.dated(as: present) : item) {
        report.unchanged += 1
      } else if let refusal = way.refusal(of: item) {
        report.leftBehind.append(.init(item: id.description, reason: refusal.description))
      } else {
        result.put(item)
        report.returned.append(id.description)
      }
    }
  }

  /// What the archive has by name alone.
  private mutating func leave(_ staying: [VaultExtract.Staying], _ way: VaultReturn) {
    let more =
      report.isSameDevice == true
      ? "; this is that device: give the key that its vault was sealed to then, with --device-key" : ""
    for item in staying {
      let refusal = way.refusal(
        of: item.accessibility, item.accessControl, isSynchronizable: item.isSynchronizable)
      let bound: [VaultReturn.Refusal] = [.otherDevice, .accessControl]
      report.leftBehind.append(
        .init(
          item: item.name,
          reason: (refusal ?? .otherDevice).description + (refusal.map(bound.contains) ?? true ? more : "")))
    }
  }

  /// Takes out what the archive does not have, but for what could not have been in it.
  private mutating func removeExtra(
    _ items: [VaultItem.ID: VaultItem], _ staying: Set<String>, _ way: VaultReturn, from result: inout Vault
  ) {
    for item in result.sorted where items[item.id] == nil && !staying.contains(item.id.description) {
      if way.refusal(of: item) != nil { continue }
      result.remove(item.id)
      report.removed.append(item.id.description)
    }
  }

  private mutating func leaveAll(
    _ archived: ArchivedVault, _ staying: [VaultExtract.Staying], _ reason: String
  ) {
    report.problem = reason
    var names: [String?] = archived.items.keys.sorted().map(\.description) + staying.map(\.name)
    // Nobody knows what else there is.
    if archived.device == nil { names.insert(nil, at: 0) }
    report.leftBehind = names.map { .init(item: $0, reason: reason) }
  }

  // MARK: The vault

  /// A vault for a container without one. On the device of the archive it is that device's, and sealed as it was, unless
  /// its key was replaced since.
  private static func empty(_ archived: ArchivedVault, _ keys: DeviceKeys) throws -> Vault {
    guard case .whole(var vault) = archived else { return try Vault(new: keys) }
    vault.removeAll()
    if !vault.recipients.contains(keys.present.recipient) { try vault.rekey(to: [keys.present.recipient]) }
    return vault
  }

  private static func action(_ result: Vault, _ archived: ArchivedVault, _ live: LiveVault) -> Action {
    if result == live.vault { return .nothing }
    // The very file that was archived, where it says the same.
    if case .whole(let vault) = archived, vault == result { return .put }
    return result.items.isEmpty && live.vault == nil ? .nothing : .write(result)
  }

  // MARK: Staging

  /// Stages what is to be written; what is put as it is comes with the other contents, and what goes with the other
  /// removals.
  ///
  /// - Throws: what staging throws.
  func stage(_ staged: StagedContainer) throws {
    let path = staged.container.vaultPath
    switch action {
    case .nothing, .put, .remove: break
    case .write(let vault):
      if let present = try staged.status(of: path), present.type != .file { try staged.remove(path) }
      try staged.setVault(vault)
    }
  }
}

extension VaultItem {
  /// This item with another one's times.
  fileprivate func dated(as other: VaultItem) -> VaultItem {
    var item = self
    (item.created, item.modified) = (other.created, other.modified)
    return item
  }
}
