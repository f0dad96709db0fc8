import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem

/// What a restore does with the vault's items, decided one by one before anything is staged.
struct VaultPlan {
  enum Action {
    case nothing
    /// The archive's file comes back unchanged.
    case put
    case write(Vault)
    case remove
  }

  private(set) var action = Action.nothing
  private(set) var report = RestoreReport.Vault()
  /// Where the items come from; nil when the archive lacks a vault.
  private(set) var origin: VaultOrigin?

  /// A plan for the vault of an archive.
  ///
  /// - Parameter sealed: the archive's file; nil when it has something else in its place.
  init(
    _ sealed: [UInt8]?, of archive: Archive, into staged: StagedContainer, _ options: RestoreOptions
  ) throws {
    let keys = staged.deviceKeys
    let archived = try ReadableVault(sealed, archive, keys, path: staged.container.vaultPath)
    let own = VaultOrigin(
      isSameDevice: archived.isWhole, isEncrypted: archive.encryption != nil, staying: archived.staying)
    // Of an archive that is a copy of another one, the items return under the rules of that.
    let origin = options.vaultOrigin ?? own
    self.origin = origin
    if options.copiesVault {
      try copy(archived, keys)
      return
    }
    let way = VaultReturn(
      toSameDevice: origin.isSameDevice, fromEncrypted: origin.isEncrypted,
      includesSynchronizable: options.includesSynchronizable)
    let live = try ReadableVault(staged)
    report.isSameDevice =
      archived.isWhole && way.toSameDevice ? true : live.vault.map { $0.device == archived.device }
    switch (live, keys, archived) {
    case (.closed(let reason), _, _): leaveAll(archived, origin.staying, reason)
    case (_, nil, _): leaveAll(archived, origin.staying, ReadableVault.noKey)
    case (_, _, .closed(let reason)): leaveAll(archived, origin.staying, reason)
    case (_, let keys?, _):
      var result = try live.vault ?? Self.empty(archived, keys)
      // Those of a copy come out of a migration, which sets new times.
      take(archived.items, way, isMigrated: options.vaultOrigin != nil, into: &result)
      leave(origin.staying, way)
      if !options.keepExtra {
        removeExtra(archived.items, Set(origin.staying.map(\.name)), way, from: &result)
      }
      if result == live.vault { return }
      // The archived file, when it has the same items.
      if result == archived.vault {
        action = .put
      } else if !result.items.isEmpty || live.vault != nil {
        action = .write(result)
      }
    }
  }

  /// A plan for a vault that the archive lacks: what could have been in it goes.
  init(lackingIn staged: StagedContainer) throws {
    // Without a vault the archive's device is not known: items that never leave their device are preserved.
    let way = VaultReturn(toSameDevice: false, fromEncrypted: true)
    let live = try ReadableVault(staged)
    guard var result = live.vault else {
      if case .closed(let reason) = live {
        report.problem = reason
        report.notRestored.append(
          .init(item: nil, reason: "the archive has no vault, and the container's stays: \(reason)"))
      }
      return
    }
    removeExtra([:], [], way, from: &result)
    action = result.items.isEmpty ? .remove : report.removed.isEmpty ? .nothing : .write(result)
  }

  /// Takes all readable items, for a private copy; a vault that does not open comes as its file.
  private mutating func copy(_ archived: ReadableVault, _ keys: DeviceKeys?) throws {
    action = .put
    guard let keys, case .extract(let extract) = archived else { return }
    var vault = try Vault(new: keys)
    for item in extract.document.sorted { vault.put(item) }
    action = .write(vault)
  }

  private mutating func take(
    _ items: [VaultItem.ID: VaultItem], _ way: VaultReturn, isMigrated: Bool, into result: inout Vault
  ) {
    for (id, item) in items.sorted(by: { $0.key < $1.key }) {
      if let present = result[id], present == (isMigrated ? item.dated(as: present) : item) {
        report.unchanged += 1
      } else if let refusal = way.refusal(of: item) {
        report.notRestored.append(.init(item: id.description, reason: refusal.description))
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
      ? "; this is that device: give the key that its vault was sealed to then" : ""
    for item in staying {
      let refusal = way.refusal(
        of: item.accessibility, item.accessControl, isSynchronizable: item.isSynchronizable)
      let bound: [VaultReturn.Refusal] = [.otherDevice, .accessControl]
      report.notRestored.append(
        .init(
          item: item.name,
          reason: (refusal ?? .otherDevice).description + (refusal.map(bound.contains) ?? true ? more : "")))
    }
  }

  /// Removes items that the archive does not have, unless they could not have been in it.
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
    _ archived: ReadableVault, _ staying: [VaultExtract.Staying], _ reason: String
  ) {
    report.problem = reason
    var names: [String?] = archived.items.keys.sorted().map(\.description) + staying.map(\.name)
    // More items are possible.
    if archived.device == nil { names.insert(nil, at: 0) }
    report.notRestored = names.map { .init(item: $0, reason: reason) }
  }

  /// A vault for a container without one. On the archive's device it has that device's id and recipients, unless its
  /// key was replaced since.
  private static func empty(_ archived: ReadableVault, _ keys: DeviceKeys) throws -> Vault {
    guard var vault = archived.vault else { return try Vault(new: keys) }
    vault.removeAll()
    if !vault.recipients.contains(keys.present.recipient) { try vault.rekey(to: [keys.present.recipient]) }
    return vault
  }

  /// Stages a vault that is to be written; a file that is put comes with the other contents, and a removal with the
  /// other removals.
  func stage(_ staged: StagedContainer) throws {
    guard case .write(let vault) = action else { return }
    let path = staged.container.vaultPath
    if let present = try staged.status(of: path), present.type != .file { try staged.remove(path) }
    try staged.setVault(vault)
  }
}

extension VaultItem {
  fileprivate func dated(as other: VaultItem) -> VaultItem {
    var item = self
    (item.created, item.modified) = (other.created, other.modified)
    return item
  }
}

extension RestoreReport {
  /// What a restore did with the vault, or would do: items by name, never a value.
  public struct Vault: Sendable, Codable, Equatable {
    // The key in JSON is an interface.
    private enum CodingKeys: String, CodingKey {
      case returned, removed, notRestored = "leftBehind", unchanged, problem, isSameDevice
    }

    /// An item that stays in the archive.
    public struct UnrestoredItem: Sendable, Codable, Equatable {
      /// Its name; nil for all items of a vault that cannot be opened.
      public var item: String?
      /// Why it is not restored.
      public var reason: String
    }

    /// The names of restored items.
    public var returned: [String] = []
    /// Items that the archive does not have and that were removed.
    public var removed: [String] = []
    /// Items that did not come back; the container keeps what it has in their place.
    public var notRestored: [UnrestoredItem] = []
    /// The number of items that were right already.
    public var unchanged = 0
    /// Why none came back, when the reason is the same for all: no key, or a file that does not open.
    public var problem: String?
    /// Whether the archive is of this device; nil when that is not known.
    public var isSameDevice: Bool?

    /// Whether nothing had to be done.
    public var isUpToDate: Bool { returned.isEmpty && removed.isEmpty && problem == nil }
  }
}

/// Where the items of a vault come from, as far as it decides which of them return.
struct VaultOrigin: Sendable, Equatable {
  /// Whether the archive is of this device, and all of its vault can be read; whether it is encrypted.
  var isSameDevice: Bool, isEncrypted: Bool
  var staying: [VaultExtract.Staying]
}

extension RestoreOptions {
  /// Options for a private copy of the archive, with its whole vault.
  package func forCopy() -> RestoreOptions {
    var options = RestoreOptions()
    options.includeExcluded = includeExcluded
    (options.transaction.deviceKeys, options.transaction.redactor) = (
      transaction.deviceKeys, transaction.redactor
    )
    options.copiesVault = true
    // The copy is private, and the restore from it applies the rules.
    options.keepsSetID = true
    return options
  }

  /// These options, for a restore from such a copy.
  ///
  /// - Parameter report: of the restore into the copy.
  package func fromCopy(_ report: RestoreReport) -> RestoreOptions {
    var options = self
    options.vaultOrigin = report.vaultOrigin
    return options
  }
}

/// The vault of an archive or of the container, as far as it can be read.
enum ReadableVault {
  /// The container has none.
  case absent
  /// The sealed file: this is its device.
  case whole(Vault)
  /// Of an archive, the items that may leave their device; the sealed file does not open.
  case extract(VaultExtract)
  /// Why nothing can be read.
  case closed(String)

  static let noKey = "no device key was given"

  /// Opens the sealed file of an archive, else takes the items that may leave.
  ///
  /// - Parameter sealed: the file's content; nil when the archive has something else in its place.
  init(_ sealed: [UInt8]?, _ archive: Archive, _ keys: DeviceKeys?, path: ContainerPath) throws {
    var problem = "the archive has no file in its place"
    if let sealed {
      do {
        if let keys {
          self = .whole(try Vault(opening: sealed, with: keys, path: path.description))
          return
        }
        problem = "it is \(Vault.summary(of: sealed)), and \(Self.noKey)"
      } catch let error as DrydockError {
        problem = "in the archive: " + error.message
      }
    }
    self = try archive.vaultExtract().map { .extract($0) } ?? .closed(problem)
  }

  /// Opens the container's.
  init(_ staged: StagedContainer) throws {
    let path = staged.container.vaultPath
    guard try staged.status(of: path)?.type == .file else {
      self = .absent
      return
    }
    guard let keys = staged.deviceKeys else {
      self = .closed(Self.noKey)
      return
    }
    do {
      let vault = try Vault(opening: staged.read(path), with: keys, path: path.description)
      self =
        Set(keys.recipients).isDisjoint(with: vault.recipients)
        ? .closed("the container's vault is sealed to other keys than the one that opens it") : .whole(vault)
    } catch let error as DrydockError where error.code == .vaultLocked {
      self = .closed("in the container, " + error.message)
    } catch let error as DrydockError where error.code == .badVault || error.code == .unsupported {
      self = .closed("in the container, \(error.message); move it away to get the archive's")
    }
  }

  var vault: Vault? {
    if case .whole(let vault) = self { vault } else { nil }
  }

  var isWhole: Bool { vault != nil }

  private var extract: VaultExtract? {
    if case .extract(let extract) = self { extract } else { nil }
  }

  var items: [VaultItem.ID: VaultItem] { vault?.items ?? extract?.document.items ?? [:] }
  var device: String? { vault?.device ?? extract?.document.device }
  /// The items of an archive that may not leave.
  var staying: [VaultExtract.Staying] { extract?.staying ?? [] }
}
