import AgeEncryption
import AppContainer
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// Stages the undo of one transaction, path by path.
struct TransactionUndo {
  let staged: StagedContainer
  /// The retained inodes.
  let kept: UndoFiles
  /// Rollbacks that have reverted a part of it by down steps and are not undone, the newest first: what they wrote counts
  /// as what the transaction wrote.
  let later: [UndoEntry]
  let discardingNewer: Bool
  var conflicts: [RollbackConflict] = []
  /// Settings that are in the vault, or were: whatever they are called, they are secrets.
  private var secrets: Set<Sealing.Setting> = []
  /// The changes of settings files, and the settings that the undo log keeps of them, once a conflict needed these.
  private var settingsChanges: [ChangeRecord] = []
  private var keptSettings: [PropertyListDictionary]?
  /// Previous versions of SharedPreferences files whose settings are undone key by key.
  private var merged: Set<ContainerPath> = []
  /// Databases whose old main file was put back: their old sidecars follow.
  private var returned: Set<ContainerPath> = []

  init(staged: StagedContainer, kept: UndoFiles, later: [UndoEntry], discardingNewer: Bool) {
    self.staged = staged
    self.kept = kept
    self.later = later
    self.discardingNewer = discardingNewer
  }

  mutating func run(_ record: UndoRecord) throws {
    for change in record.changes { try kept.requireUnchanged(change, on: staged) }
    secrets = Set(record.sealing?.settings ?? [])
    settingsChanges = record.changes.filter { change in
      change.granularity == .settings || change.path.ofPreferencesBackup != nil
    }
    var record = record
    let changes = record.changes.map { change in
      var change = change
      if let (later, _) = laterChange(change.path) { change.after = later.after }
      return change
    }
    record.changes = ChangeRecords(changes)
    for change in record.changes {
      switch change.granularity {
      case .settings:
        if try isWhole(change, in: record) {
          try undoWhole(change)
        } else {
          try undoSettings(change, backup: backup(of: change, in: record))
        }
      case .vault: try undoVault(change)
      case .database, .file: if !merged.contains(change.path) { try undoWhole(change) }
      case .sidecar, .directory: continue
      }
    }
    for change in record.changes where change.granularity == .sidecar { try undoSidecar(change) }
    // Directories last, the deepest first: one that was made can go only when it is empty.
    for change in record.changes.reversed() where change.granularity == .directory {
      try undoDirectory(change)
    }
  }

  private func laterChange(_ path: ContainerPath) -> (change: ChangeRecord, kept: UndoFiles)? {
    for undo in later {
      if let change = undo.record.changes[path] { return (change, undo.kept) }
    }
    return nil
  }

  /// The copy of what was written to a settings file or vault, and who keeps it.
  func written(_ change: ChangeRecord) -> (name: ContainerPath?, kept: UndoFiles) {
    laterChange(change.path).map { ($0.change.settingsAfter, $0.kept) } ?? (change.settingsAfter, kept)
  }

  mutating func undoWhole(_ change: ChangeRecord) throws {
    let now = try staged.contentDigest(of: change.path)
    let isAsWritten = now == change.after?.digest && (now == nil) == (change.after == nil)
    if !isAsWritten {
      if now == nil && change.before == nil { return }
      conflicts.append(
        RollbackConflict(
          path: change.path, key: nil, before: describe(change.before), written: describe(change.after),
          now: now == nil ? "absent" : "changed by the app"))
      if !discardingNewer { return }
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
      let conflict = RollbackConflict(
        path: above, key: nil, before: "directory", written: "directory", now: present.type.rawValue)
      if !conflicts.contains(conflict) { conflicts.append(conflict) }
      guard discardingNewer else { return }
      try staged.remove(above)
    }
    if let present = try staged.status(of: change.path), present.type == .directory {
      try staged.remove(change.path)
    }
    try kept.putBack(change, on: staged)
    returned.insert(change.path)
  }

  private mutating func undoSidecar(_ change: ChangeRecord) throws {
    guard change.before != nil else { return }
    if let main = DatabaseUnit.main(ofSidecar: change.path), returned.contains(main) { try putBack(change) }
  }

  private func describe(_ node: NodeRecord?) -> String {
    guard let node else { return "absent" }
    return node.type == .file ? "\(node.size) bytes" : node.type.rawValue
  }

  /// The previous version of a SharedPreferences file that the transaction removed: it had the settings before.
  private func backup(of change: ChangeRecord, in record: UndoRecord) -> ChangeRecord? {
    guard let backup = change.path.preferencesBackup.flatMap({ record.changes[$0] }) else { return nil }
    return backup.before?.type == .file && backup.after == nil ? backup : nil
  }

  /// Whether a settings file is undone as a file, since the app reads its previous version: the transaction wrote or kept
  /// that one.
  private func isWhole(_ change: ChangeRecord, in record: UndoRecord) throws -> Bool {
    guard let path = change.path.preferencesBackup else { return false }
    if let backup = record.changes[path] { return backup.after != nil }
    // The app would have changed the file before it wrote a previous version.
    return try staged.status(of: path) != nil
      && staged.contentDigest(of: change.path) == change.after?.digest
  }

  private mutating func undoSettings(_ change: ChangeRecord, backup: ChangeRecord?) throws {
    // Untouched since: the very files come back.
    if try staged.contentDigest(of: change.path) == change.after?.digest,
      try staged.settingsSource(of: change.path) == change.path
    {
      if change.before != nil { return try putBack(change) }
      if backup != nil { return try undoWhole(change) }
    }
    var found: (before: SettingsFile, written: SettingsFile, present: SettingsFile)?
    do {
      let (name, keptWritten) = self.written(change)
      found = (
        try self.file((backup ?? change).kept, kept, of: change.path),
        try self.file(name, keptWritten, of: change.path),
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
        let values = [before[key], written[key], now].compactMap { $0 }
        // The transaction may have given a secret a new name.
        let redactor = staged.knowingRedactor(showing: values).knowing(settingsKept(), among: values)
        let isSecret = secrets.contains(.init(path: change.path, key: key.text))
        let shown = { (value: PropertyListValue?) in
          value.map { redactor.shown($0, key: isSecret ? "secret" : key.text) } ?? "absent"
        }
        conflicts.append(
          RollbackConflict(
            path: change.path, key: redactor.shown(name: key.text), before: shown(before[key]),
            written: shown(written[key]),
            now: shown(now)))
        if !discardingNewer { continue }
      }
      file.root[key] = before[key]
    }
    if file.root.isEmpty && change.before == nil && backup == nil {
      if try staged.status(of: change.path) != nil { try staged.remove(change.path) }
    } else {
      try staged.setDefaults(file, at: change.path)
    }
  }

  /// All settings before the transaction, and as it wrote them; those of a file that is not one are left out.
  private mutating func settingsKept() -> [PropertyListDictionary] {
    if let keptSettings { return keptSettings }
    var found: [PropertyListDictionary] = []
    for change in settingsChanges {
      if let before = try? settingsBefore(change) { found.append(before) }
      if let written = try? settingsWritten(change) { found.append(written) }
    }
    keptSettings = found
    return found
  }

  func settings(
    _ name: ContainerPath?, _ kept: UndoFiles, of path: ContainerPath
  ) throws -> PropertyListDictionary {
    try file(name, kept, of: path).root
  }

  private func file(
    _ name: ContainerPath?, _ kept: UndoFiles, of path: ContainerPath
  ) throws -> SettingsFile {
    guard let name else { return SettingsFile(newAt: path.description) }
    return try SettingsFile(bytes: kept.contents(name), path: path.description)
  }

  /// The settings before the transaction; none in a file that could not be read, beside its previous version.
  func settingsBefore(_ change: ChangeRecord) throws -> PropertyListDictionary {
    do {
      return try settings(change.kept, kept, of: change.path)
    } catch let error as DrydockError where [.malformed, .unsupported].contains(error.code) {
      return [:]
    }
  }

  func settingsWritten(_ change: ChangeRecord) throws -> PropertyListDictionary {
    let (name, kept) = written(change)
    return try settings(name, kept, of: change.path)
  }

  private mutating func undoDirectory(_ change: ChangeRecord) throws {
    let present = try staged.status(of: change.path)
    guard let before = change.before else {
      if present?.type == .directory, try staged.children(of: change.path).isEmpty {
        try staged.remove(change.path)
      }
      return
    }
    guard before.type == .directory else { return try undoReplacedFile(change, before, present) }
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

  /// A directory had taken the place of a file or link. What the transaction put in it is gone by now; what else is
  /// there is the app's.
  private mutating func undoReplacedFile(
    _ change: ChangeRecord, _ before: NodeRecord, _ present: FileStatus?
  ) throws {
    let isEmpty = try present?.type == .directory && staged.children(of: change.path).isEmpty
    if present != nil && !isEmpty {
      conflicts.append(
        RollbackConflict(
          path: change.path, key: nil, before: describe(before), written: "directory",
          now: "changed by the app"))
      if !discardingNewer { return }
      try staged.remove(change.path)
    }
    try putBack(change)
  }
}

/// The undo of a vault, item by item.
extension TransactionUndo {
  /// The three states of a vault that a rollback compares; nil where there was none.
  private struct States {
    /// What the transaction replaced, and what it wrote.
    var before: Vault?, written: Vault?
    var present: Vault?
  }

  mutating func undoVault(_ change: ChangeRecord) throws {
    // As the transaction left it: the very file comes back, and no key is needed.
    if try staged.contentDigest(of: change.path) == change.after?.digest { return try undoWhole(change) }
    guard let keys = staged.deviceKeys else {
      // Without a key, discarding newer changes discards the whole file.
      if discardingNewer { return try undoWhole(change) }
      throw locked(change, "", nil)
    }
    let states: States
    do {
      states = States(
        before: try vault((change.kept, kept), keys, change),
        written: try vault(written(change), keys, change),
        present: try staged.vault())
    } catch let error as DrydockError where error.code == .vaultLocked {
      throw locked(change, "the given key does not open all of it; ", error)
    } catch let error as DrydockError where error.code == .badVault {
      // One of the three is damaged: then there are no items to compare.
      return try undoWhole(change)
    }
    try undoItems(change, states)
  }

  private func vault(
    _ place: (name: ContainerPath?, kept: UndoFiles), _ keys: DeviceKeys, _ change: ChangeRecord
  ) throws -> Vault? {
    let kept = place.kept
    guard let name = place.name, try kept.status(name) != nil else { return nil }
    return try Vault(opening: kept.contents(name), with: keys, path: change.path.description)
  }

  private func locked(_ change: ChangeRecord, _ why: String, _ cause: DrydockError?) -> DrydockError {
    DrydockError(
      .vaultLocked,
      "the vault has changed since, and its items cannot be compared without the device key: \(why)give "
        + "it (earlier ones, too), or discard what was written since",
      path: change.path.description, cause: cause)
  }

  private mutating func undoItems(_ change: ChangeRecord, _ states: States) throws {
    let (before, written) = (states.before?.items ?? [:], states.written?.items ?? [:])
    guard var vault = states.present ?? states.before ?? states.written else { return }
    // What the app has removed as a whole stays removed, but for what the transaction changed.
    if states.present == nil { vault.removeAll() }
    for id in Set(before.keys).union(written.keys).sorted() where before[id] != written[id] {
      let now = states.present?[id]
      if now == before[id] { continue }
      if now != written[id] {
        conflicts.append(
          RollbackConflict(
            path: change.path, key: id.description, before: shown(before[id]), written: shown(written[id]),
            now: shown(now)))
        if !discardingNewer { continue }
      }
      if let item = before[id] { vault.put(item) } else { vault.remove(id) }
    }
    try undoKeys(change, states, &vault)
    if vault.items.isEmpty && change.before == nil {
      if states.present != nil { try staged.remove(change.path) }
    } else if !vault.items.isEmpty || states.present != nil {
      try staged.setVault(vault)
    }
  }

  /// Seals it to the keys from before again, when the transaction had changed these.
  private mutating func undoKeys(_ change: ChangeRecord, _ states: States, _ vault: inout Vault) throws {
    guard let before = states.before?.recipients, let written = states.written?.recipients,
      before != written, let now = states.present?.recipients, now != before
    else { return }
    if now != written {
      conflicts.append(
        RollbackConflict(
          path: change.path, key: "keys", before: shown(before), written: shown(written), now: shown(now)))
      if !discardingNewer { return }
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

extension TransactionUndo {
  /// What undoes a move into the vault, or redoes one, is sealed as the move was: the value would stand in its undo
  /// again.
  func keepSealed(_ record: UndoRecord, to recipients: [AgeRecipient]) throws {
    guard let sealing = record.sealing else { return }
    staged.keepSealed(to: recipients)
    for setting in sealing.settings {
      for change in record.changes
      where (change.path.ofPreferencesBackup ?? change.path) == setting.path {
        let value =
          try settingsBefore(change)[setting.key]
          ?? settingsWritten(change)[setting.key]
        guard let value else { continue }
        staged.keepSealed(
          MovedSecret(path: setting.path, key: setting.key, value: value), to: recipients)
      }
    }
  }
}
