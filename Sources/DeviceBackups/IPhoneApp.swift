import AppContainer
import AppStores
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// One app in a device backup, with its groups and its keychain items.
package struct IPhoneApp: ImportedApp {
  package let app: String
  package let groups: [String]
  package var source: String { opened.backup.path }
  package var layout: ContainerLayout { .ios }
  private let opened: OpenedBackup
  private let domain: String
  private let accessGroups: Set<String>
  private let notes: [String]

  /// - Parameters:
  ///   - groups: ids of groups that come with the app, besides those that the backup names as its, and those named after it.
  ///   - accessGroups: of the keychain, besides the app's own, with or without a team's prefix, and the groups.
  /// - Throws: `DrydockError`: `missing` when the backup does not have the app or a group; `damaged`.
  package init(_ app: String, in opened: OpenedBackup, groups: [String], accessGroups: [String]) throws {
    let all = try opened.list()
    let names = { (kind: BackupContents.Kind) in all.filter { $0.kind == kind }.map(\.id) }
    // The data of an extension is imported as an app's.
    guard let own = all.first(where: { $0.kind != .group && $0.id.isExactly(app) }) else {
      throw ImportReport.missing(app, among: names(.app) + names(.plugin), opened.backup.path)
    }
    for group in groups where !names(.group).contains(where: { $0.isExactly(group) }) {
      throw ImportReport.missing("the group \(group)", among: names(.group), opened.backup.path)
    }
    let declared = opened.backup.declaredGroups(of: app).union(groups)
    let found = names(.group).filter {
      declared.contains($0) || $0 == "group.\(app)" || $0.hasPrefix("group.\(app).")
    }
    for group in found {
      guard let path = try? ContainerPath(group), path.components.count == 1, !group.hasPrefix(".") else {
        throw DrydockError(
          .unsafeName, "the backup has a group whose id is not a name",
          path: ContainerPath.printable(Array(group.utf8)))
      }
    }
    (self.app, self.opened, domain) = (app, opened, own.kind.prefix + own.id)
    self.groups = found
    self.accessGroups = Set(accessGroups + found)
    let plugins = names(.plugin).filter { $0.hasPrefix(app + ".") }
    notes =
      plugins.isEmpty
      ? []
      : [
        "extensions of the app have data of their own, which was not imported; import each as an app: "
          + ContainerPath.printable(Array(plugins.joined(separator: ", ").utf8))
      ]
  }

  package func stage(into staged: StagedContainer) throws -> ImportReport {
    var target = ImportTarget(staged)
    target.report.notes = notes
    if opened.backup.isUnfinished {
      target.report.leaveOut(
        "what the device had not backed up yet",
        "the backup was not completed (`SnapshotState` of Status.plist)")
    }
    var files: [(group: String?, file: BackupFile)] = []
    var keychain: BackupFile?
    let withoutDomain = try opened.index.rows { row in
      if row.domain == BackupIndex.keychainDomain {
        if row.path.elementsEqual(KeychainBackup.path.utf8) { keychain = try BackupFile(row) }
        return
      }
      let group =
        row.domain == domain ? nil : groups.first { BackupContents.Kind.group.prefix + $0 == row.domain }
      guard row.domain == domain || group != nil else { return }
      guard let file = try BackupFile(row) else {
        let path = ContainerPath(unchecked: row.path).inContainer(group)
        target.report.leaveOut("\(path)", "neither a file nor a directory nor a link")
        return
      }
      files.append((group, file))
    }
    if withoutDomain > 0 {
      target.report.notes.append(
        "rows of the backup's index without a domain, which may be any app's, were skipped: \(withoutDomain)")
    }
    for (group, file) in files.sorted(by: { ($0.group ?? "", $0.file.path) < ($1.group ?? "", $1.file.path) })
    {
      switch file.kind {
      case .directory: try target.putDirectory(file.path, group, file.metadata)
      case .symbolicLink(let link): try target.putLink(file.path, group, to: link, file.metadata)
      case .file(let size): try put(file, size, group, &target)
      }
    }
    try importKeychain(keychain, &target)
    return try target.finished()
  }

  private func put(
    _ file: BackupFile, _ size: UInt64, _ group: String?, _ target: inout ImportTarget
  ) throws {
    let stored = try target.putFile(
      file.path, group, file.metadata, space: opened.storedSize(of: file)
    ) { staged in
      var count: UInt64 = 0
      let missing = try opened.read(file) { piece in
        count += UInt64(piece.count)
        try staged.write(piece)
      }
      return (count, missing)
    }
    if let stored, stored != size { target.report.otherSizes += 1 }
  }

  // MARK: The keychain

  /// Whether an access group is the app's: its id, also behind a team's 10 letters, or one that was named.
  private func accepts(_ group: String) -> Bool {
    if accessGroups.contains(where: group.isExactly) || group.isExactly(app) { return true }
    let prefix = group.prefix { $0 != "." }
    return prefix.utf8.count == 10 && group.dropFirst(11).description.isExactly(app)
      && prefix.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
  }

  private func importKeychain(_ file: BackupFile?, _ target: inout ImportTarget) throws {
    guard let file else { return }
    guard opened.backup.isEncrypted else {
      target.report.notes.append(
        "the keychain of a backup that is not encrypted can be read on its device only; no item was imported")
      return
    }
    let size = try opened.storedSize(of: file)
    guard size <= 256 << 20 else {
      throw IPhoneBackup.damaged("its keychain has \(size) bytes", source)
    }
    var bytes: [UInt8] = []
    if let reason = try opened.read(file, { bytes += $0 }) {
      target.report.leaveOut(KeychainBackup.path, reason)
      return
    }
    let backup = try KeychainBackup(bytes, keys: opened.keys, accepts: accepts)
    if backup.deviceOnly > 0 {
      target.report.notes.append(
        "\(backup.deviceOnly) keychain items of the device, of whichever app, are for that device only and cannot be read"
      )
    }
    if backup.unreadable > 0 {
      target.report.leaveOut(
        "\(backup.unreadable) keychain items of the device",
        "damaged, or of an unknown form; any may be the app's")
    }
    try addToVault(backup.items, &target)
  }

  private func addToVault(_ items: [VaultItem], _ target: inout ImportTarget) throws {
    let rule = VaultReturn(toSameDevice: false, fromEncrypted: true, includesSynchronizable: true)
    var wanted: [VaultItem] = []
    for item in items.sorted(by: { $0.id < $1.id }) {
      if wanted.last?.id == item.id {
        target.report.leaveOut("\(item)", "another item of the same name was imported")
      } else if let refusal = rule.refusal(of: item) {
        target.report.leaveOut("\(item)", "\(refusal)")
      } else {
        wanted.append(item)
      }
    }
    if wanted.isEmpty { return }
    guard let keys = target.staged.deviceKeys else {
      for item in wanted { target.report.leaveOut("\(item)", "no device key was given to seal the vault to") }
      return
    }
    do {
      var vault = try target.staged.vault() ?? Vault(new: keys)
      for item in wanted { vault.put(item) }
      try target.staged.setVault(vault)
      target.report.vaultItems = wanted.map(\.description)
    } catch let error as DrydockError where [.vaultLocked, .badVault].contains(error.code) {
      // The app's own vault, of another device key.
      for item in wanted { target.report.leaveOut("\(item)", error.message) }
    }
  }
}
