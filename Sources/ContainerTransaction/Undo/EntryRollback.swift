import AgeEncryption
import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// Stages the rollback of one undo entry, path by path.
struct EntryRollback {
  private let staged: StagedContainer
  private let entry: UndoEntry
  /// Rollbacks that have reverted a part of it by down steps and are not undone, the newest first: what they wrote counts
  /// as what the transaction wrote.
  private let later: [UndoEntry]
  private let discardingNewer: Bool
  /// What is undone: from what was written last to what was before the transaction.
  private let changes: ChangeRecords
  private(set) var conflicts: [RollbackConflict] = []
  /// All settings before the transaction, and as it wrote them, once a conflict needed these.
  private var keptSettings: [PropertyListDictionary]?
  /// Previous versions of SharedPreferences files whose settings are undone key by key.
  private var merged: Set<ContainerPath> = []
  /// Databases whose old main file was put back: their old sidecars follow.
  private var returned: Set<ContainerPath> = []

  init(_ entry: UndoEntry, on staged: StagedContainer, later: [UndoEntry], discardingNewer: Bool) {
    (self.staged, self.entry) = (staged, entry)
    (self.later, self.discardingNewer) = (later, discardingNewer)
    let recorded = entry.record.changes
    guard !later.isEmpty else {
      changes = recorded
      return
    }
    changes = ChangeRecords(
      recorded.lazy.map { change in
        var change = change
        if let (last, _) = Self.last(change.path, of: later) { change.after = last.after }
        return change
      })
  }

  mutating func run() throws {
    if !discardingNewer { for change in changes { try entry.requireUnchanged(change, on: staged) } }
    for change in changes {
      switch change.granularity {
      case .settings:
        if try isWhole(change) { try undoWhole(change) } else { try undoSettings(change) }
      case .vault: try undoVault(change)
      case .database, .file: if !merged.contains(change.path) { try undoWhole(change) }
      case .sidecar, .directory: continue
      }
    }
    for change in changes where change.granularity == .sidecar && change.before != nil {
      if let main = DatabaseUnit.main(ofSidecar: change.path), returned.contains(main) { try putBack(change) }
    }
    // Directories last, the deepest first: one that was made can go only when it is empty.
    for change in changes.reversed() where change.granularity == .directory { try undoDirectory(change) }
  }

  /// The newest change of a path by one of several entries.
  private static func last(
    _ path: ContainerPath, of entries: [UndoEntry]
  ) -> (change: ChangeRecord, entry: UndoEntry)? {
    for entry in entries {
      if let change = entry.record.changes[path] { return (change, entry) }
    }
    return nil
  }

  /// The copy of what was written to a settings file or vault, and the entry that has it.
  private func written(_ change: ChangeRecord) -> (name: ContainerPath?, entry: UndoEntry) {
    Self.last(change.path, of: later).map { ($0.change.settingsAfter, $0.entry) }
      ?? (change.settingsAfter, entry)
  }

  /// Notes what the app has changed since.
  ///
  /// - Parameter isKnown: whether it may have been noted before.
  /// - Returns: whether that is given up.
  private mutating func discard(
    _ path: ContainerPath, key: String? = nil, before: String, written: String, now: String,
    isKnown: Bool = false
  ) -> Bool {
    let conflict = RollbackConflict(path: path, key: key, before: before, written: written, now: now)
    if !isKnown || !conflicts.contains(conflict) { conflicts.append(conflict) }
    return discardingNewer
  }

  private mutating func undoWhole(_ change: ChangeRecord) throws {
    let now = try staged.contentDigest(of: change.path)
    let isAsWritten = now == change.after?.digest && (now == nil) == (change.after == nil)
    if !isAsWritten {
      if now == nil && change.before == nil { return }
      let (before, written) = (describe(change.before), describe(change.after))
      guard
        discard(
          change.path, before: before, written: written, now: now == nil ? "absent" : "changed by the app")
      else { return }
    }
    let present = try staged.status(of: change.path)
    guard let before = change.before else {
      if present != nil { try staged.remove(change.path, withExternalData: false) }
      return
    }
    guard before.type == .directory else { return try putBack(change) }
    // A file or link had taken the directory's place; what was in it comes back by itself.
    if present != nil { try staged.remove(change.path, withExternalData: false) }
    try staged.putDirectory(at: change.path, metadata: before.metadata, flags: before.flags)
  }

  private mutating func putBack(_ change: ChangeRecord) throws {
    guard change.kept != nil, change.before != nil else { return }
    for above in change.path.ancestors.reversed() {
      guard let present = try staged.status(of: above), present.type != .directory else { continue }
      let now = present.type.rawValue
      guard discard(above, before: "directory", written: "directory", now: now, isKnown: true) else { return }
      try staged.remove(above)
    }
    if let present = try staged.status(of: change.path), present.type == .directory {
      try staged.remove(change.path)
    }
    try entry.putBack(change, on: staged, takesChanged: discardingNewer)
    returned.insert(change.path)
  }

  private func describe(_ node: NodeRecord?) -> String {
    guard let node else { return "absent" }
    return node.type == .file ? "\(node.size) bytes" : node.type.rawValue
  }

  private mutating func undoDirectory(_ change: ChangeRecord) throws {
    let present = try staged.status(of: change.path)
    func isEmpty() throws -> Bool {
      try present?.type == .directory && staged.children(of: change.path).isEmpty
    }
    guard let before = change.before else {
      if try isEmpty() { try staged.remove(change.path) }
      return
    }
    guard before.type == .directory else {
      // It had taken the place of a file or link. What the transaction put in it is gone by now; what else is there is the
      // app's.
      if try present != nil && !isEmpty() {
        let now = "changed by the app"
        guard discard(change.path, before: describe(before), written: "directory", now: now) else { return }
        try staged.remove(change.path)
      }
      return try putBack(change)
    }
    guard present != nil, let after = change.after?.metadata, let live = try staged.metadata(of: change.path)
    else {
      return try staged.putDirectory(at: change.path, metadata: before.metadata, flags: before.flags)
    }
    // What the app did to it since stays: when it added a file, the time is the app's too.
    var metadata = live
    if live.mode == after.mode { metadata.mode = before.metadata.mode }
    if (live.user, live.group) == (after.user, after.group) {
      (metadata.user, metadata.group) = (before.metadata.user, before.metadata.group)
    }
    if live.modified == after.modified { metadata.modified = before.metadata.modified }
    if live.attributes == after.attributes { metadata.attributes = before.metadata.attributes }
    if live.isNoDump == after.isNoDump { metadata.isNoDump = before.metadata.isNoDump }
    // Also where it differs in nothing: what comes back into it would move its time.
    if metadata != live || staged.changesNames(in: change.path) {
      try staged.putDirectory(at: change.path, metadata: metadata)
    }
  }
}

/// Settings, key by key.
extension EntryRollback {
  /// Whether a settings file is undone as a file, since the app reads its previous version: the transaction wrote or kept
  /// that one.
  private func isWhole(_ change: ChangeRecord) throws -> Bool {
    guard let path = change.path.preferencesBackup else { return false }
    if let backup = changes[path] { return backup.after != nil }
    // The app would have changed the file before it wrote a previous version.
    return try staged.status(of: path) != nil
      && staged.contentDigest(of: change.path) == change.after?.digest
  }

  /// The previous version of a SharedPreferences file that the transaction removed: it had the settings before.
  private func backup(of change: ChangeRecord) -> ChangeRecord? {
    guard let backup = change.path.preferencesBackup.flatMap({ changes[$0] }) else { return nil }
    return backup.before?.type == .file && backup.after == nil ? backup : nil
  }

  private mutating func undoSettings(_ change: ChangeRecord) throws {
    let backup = backup(of: change)
    // Untouched since: the very files come back.
    if try staged.contentDigest(of: change.path) == change.after?.digest,
      try staged.settingsSource(of: change.path) == change.path
    {
      if change.before != nil { return try putBack(change) }
      if backup != nil { return try undoWhole(change) }
    }
    var found: (before: SettingsFile, written: SettingsFile, present: SettingsFile)?
    do {
      found = (
        try self.file((backup ?? change).kept, entry, of: change.path), try writtenFile(change),
        try staged.defaults(change.path) ?? SettingsFile(newAt: change.path.description)
      )
    } catch let error as DrydockError where [.malformed, .unsupported].contains(error.code) {}
    // One of the three is not a settings file, or they differ in more than settings: there are no keys to compare.
    guard let states = found, states.before.hasSameUnknownFields(as: states.written),
      states.present.hasSameUnknownFields(as: states.written)
    else { return try undoWhole(change) }
    let (before, written) = (states.before.root, states.written.root)
    var file = states.present
    // Put back as a file, it would replace what the app has written since.
    if let backup { merged.insert(backup.path) }
    for key in before.differingKeys(from: written) {
      let now = file.root[key]
      if now == before[key] { continue }
      if now != written[key] {
        let (name, texts) = shown([before[key], written[key], now], of: key, in: change.path)
        guard discard(change.path, key: name, before: texts[0], written: texts[1], now: texts[2]) else {
          continue
        }
      }
      file.root[key] = before[key]
    }
    if file.root.isEmpty && change.before == nil && backup == nil {
      if try staged.status(of: change.path) != nil { try staged.remove(change.path) }
    } else {
      try staged.setDefaults(file, at: change.path)
    }
  }

  /// A key and values of it, for people.
  private mutating func shown(
    _ values: [PropertyListValue?], of key: ExactText, in path: ContainerPath
  ) -> (key: String, values: [String]) {
    let present = values.compactMap { $0 }
    // The transaction may have given a secret a new name.
    let redactor = staged.knowingRedactor(showing: present).knowing(settingsKept(), among: present)
    // Settings that are in the vault, or were: whatever they are called, they are secrets.
    let isSecret = entry.record.sealing?.settings.contains(.init(path: path, key: key.text)) ?? false
    return (
      redactor.shown(name: key.text),
      values.map { $0.map { redactor.shown($0, key: isSecret ? "secret" : key.text) } ?? "absent" }
    )
  }

  /// All settings before the transaction, and as it wrote them; those of a file that is not one are left out.
  private mutating func settingsKept() -> [PropertyListDictionary] {
    if let keptSettings { return keptSettings }
    var found: [PropertyListDictionary] = []
    for change in changes where change.granularity == .settings || change.path.ofPreferencesBackup != nil {
      if let before = try? settingsBefore(change) { found.append(before) }
      if let written = try? writtenFile(change) { found.append(written.root) }
    }
    keptSettings = found
    return found
  }

  private func file(
    _ name: ContainerPath?, _ entry: UndoEntry, of path: ContainerPath
  ) throws -> SettingsFile {
    guard let name else { return SettingsFile(newAt: path.description) }
    return try SettingsFile(bytes: entry.contents(name), path: path.description)
  }

  private func writtenFile(_ change: ChangeRecord) throws -> SettingsFile {
    let (name, entry) = written(change)
    return try file(name, entry, of: change.path)
  }

  /// The settings before the transaction; none in a file that could not be read, beside its previous version.
  private func settingsBefore(_ change: ChangeRecord) throws -> PropertyListDictionary {
    do {
      return try file(change.kept, entry, of: change.path).root
    } catch let error as DrydockError where [.malformed, .unsupported].contains(error.code) {
      return [:]
    }
  }

  /// What undoes a move into the vault, or redoes one, is sealed as the move was: the value would be in its undo entry
  /// again.
  func keepSealed(to recipients: [AgeRecipient]) throws {
    guard let sealing = entry.record.sealing else { return }
    staged.keepSealed(to: recipients)
    for setting in sealing.settings {
      for change in changes where (change.path.ofPreferencesBackup ?? change.path) == setting.path {
        let value = try settingsBefore(change)[setting.key] ?? writtenFile(change).root[setting.key]
        guard let value else { continue }
        staged.keepSealed(
          MovedSecret(path: setting.path, key: setting.key, value: value), to: recipients)
      }
    }
  }
}

/// The vault, item by item.
extension EntryRollback {
  private mutating func undoVault(_ change: ChangeRecord) throws {
    // As the transaction left it: the very file comes back, and no key is needed.
    if try staged.contentDigest(of: change.path) == change.after?.digest { return try undoWhole(change) }
    guard let keys = staged.deviceKeys else {
      // Without a key, discarding newer changes discards the whole file.
      if discardingNewer { return try undoWhole(change) }
      throw locked(change, "", nil)
    }
    let (before, written, present): (Vault?, Vault?, Vault?)
    do {
      (before, written, present) = (
        try vault((change.kept, entry), keys, change), try vault(self.written(change), keys, change),
        try staged.vault()
      )
    } catch let error as DrydockError where error.code == .vaultLocked {
      throw locked(change, "the given key does not open all of it; ", error)
    } catch let error as DrydockError where error.code == .badVault {
      // One of the three is damaged: then there are no items to compare.
      return try undoWhole(change)
    }
    guard var vault = present ?? before ?? written else { return }
    // What the app has removed as a whole stays removed, but for what the transaction changed.
    if present == nil { vault.removeAll() }
    let (old, new) = (before?.items ?? [:], written?.items ?? [:])
    for id in Set(old.keys).union(new.keys).sorted() where old[id] != new[id] {
      let now = present?[id]
      if now == old[id] { continue }
      if now != new[id] {
        let key = id.description
        guard
          discard(change.path, key: key, before: shown(old[id]), written: shown(new[id]), now: shown(now))
        else { continue }
      }
      if let item = old[id] { vault.put(item) } else { vault.remove(id) }
    }
    try undoKeys(change.path, before?.recipients, written?.recipients, present?.recipients, &vault)
    if vault.items.isEmpty && change.before == nil {
      if present != nil { try staged.remove(change.path) }
    } else if !vault.items.isEmpty || present != nil {
      try staged.setVault(vault)
    }
  }

  private func vault(
    _ place: (name: ContainerPath?, entry: UndoEntry), _ keys: DeviceKeys, _ change: ChangeRecord
  ) throws -> Vault? {
    guard let name = place.name, try place.entry.status(name) != nil else { return nil }
    return try Vault(opening: place.entry.contents(name), with: keys, path: change.path.description)
  }

  private func locked(_ change: ChangeRecord, _ why: String, _ cause: DrydockError?) -> DrydockError {
    DrydockError(
      .vaultLocked,
      "the vault has changed since, and its items cannot be compared without the device key: \(why)give "
        + "it (earlier ones, too), or discard what was written since",
      path: change.path.description, cause: cause)
  }

  /// Seals it to the keys from before again, when the transaction had changed these.
  private mutating func undoKeys(
    _ path: ContainerPath, _ before: [AgeRecipient]?, _ written: [AgeRecipient]?, _ now: [AgeRecipient]?,
    _ vault: inout Vault
  ) throws {
    guard let before, let written, before != written, let now, now != before else { return }
    if now != written {
      guard discard(path, key: "keys", before: shown(before), written: shown(written), now: shown(now)) else {
        return
      }
    }
    try vault.rekey(to: before)
  }

  private func shown(_ recipients: [AgeRecipient]) -> String {
    recipients.map(\.description).joined(separator: ", ")
  }

  private func shown(_ item: VaultItem?) -> String {
    item.map { "\(staged.redactor.shown(secret: $0.value)), accessible \($0.accessibility.rawValue)" }
      ?? "absent"
  }
}
