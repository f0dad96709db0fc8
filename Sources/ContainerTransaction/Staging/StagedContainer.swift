import AgeEncryption
import AppContainer
import AppStores
import ContainerDiff
import Cryptography
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A container as it will be after the commit: reads fall through to the live one, writes go to the stage.
///
/// The first change of anything about a path gives it a new inode in the stage, so that nothing live is ever changed
/// through a link.
///
/// Two values do the work: `LiveContainer` reads, `Stage` holds the new inodes. Extensions in `StagedFiles.swift`,
/// `StagedDatabases.swift` and `StagedValues.swift` change files, databases, and settings and the vault.
package class StagedContainer {
  package let container: Container
  /// The transaction's name, for records; empty in a dry run.
  package let transaction: String
  /// The side that is read.
  let liveContainer: LiveContainer
  /// The side that is written.
  let stage: Stage
  /// The live container as a transaction saw it when it began: the commit finds every later change. Nil in a dry run.
  var index: TreeIndex?
  /// Whether databases keep a copy of what they were before their first change, for a difference of rows.
  let keepsBefore: Bool
  /// Files of the stage with these copies.
  var databasesBefore: [ContainerPath: ContainerPath] = [:]
  /// Staged databases that a failure left half written: they can only be discarded.
  var brokenDatabases: Set<ContainerPath> = []
  /// Files of the stage whose indexes are in the order of the app's collations.
  var orderedDatabases: Set<ContainerPath> = []
  /// Connections to files of the stage that are being read.
  var openDatabases: [ContainerPath: Database] = [:]
  /// Whether staged databases and property lists are checked before the commit: what is restored may be damaged.
  package var checksResult = true
  /// Whether logs that are beside a new database are another one's: a restore decides about each file itself.
  package var removesStraySidecars = true
  /// What opens the vault, if given.
  package let deviceKeys: DeviceKeys?
  /// Counts what is done, if it is to be shown.
  package let progress: WorkProgress?
  /// Hides secrets in all output about this run.
  package private(set) var redactor: Redactor
  /// The settings files that were read or written last, before a change and after it: a migration asks for them again and
  /// again, and large ones take a second to read.
  var recentSettings: [(bytes: [UInt8], path: ContainerPath, file: SettingsFile)] = []
  /// What the settings files of the live container hold, once a message needed it.
  private var settingsBefore: [PropertyListDictionary]?
  /// Settings whose values a step has moved into the vault, and to whose keys an undo of them is sealed.
  package private(set) var movedSecrets: [MovedSecret] = []
  private(set) var secretRecipients: Set<AgeRecipient> = []
  /// The metadata that paths really got, by what was wanted except for the time.
  private var attained: [NodeRecord: (metadata: FileMetadata, keepsFractions: Bool)] = [:]
  /// Of a rollback: the transactions that it has undone, and those that it has undone in part.
  var undoes: [TransactionID] = [], undoesPartly: [TransactionID] = []
  /// Files of the stage: what steps wrote down for their down steps.
  var undoSteps: [ContainerPath] = []
  /// Main files that the undo log keeps and that are to come back, without their marks.
  var adopted: [(undo: Directory, name: ContainerPath)] = []
  private(set) var triggered: [ContainerPath: TriggeredColumns] = [:]
  /// What the undo log still holds of the transaction whose steps are reverted: nil when it is gone, or none is.
  package internal(set) var kept: UndoEntry?

  /// - Parameter transaction: nil for a stage that is discarded.
  package init(
    _ container: Container, live: Directory, stage: Directory, transaction: TransactionID? = nil,
    locks: [ContainerPath: DatabaseLock] = [:], keepsBefore: Bool = false, options: TransactionOptions
  ) {
    self.container = container
    self.transaction = transaction?.description ?? ""
    self.stage = Stage(stage, foldsNames: options.seams.foldsNames)
    liveContainer = LiveContainer(live, locks: locks, stage: self.stage, busyTimeout: options.busyTimeout)
    self.keepsBefore = keepsBefore
    (deviceKeys, redactor, progress) = (options.deviceKeys, options.redactor, options.progress)
  }

  /// The live root, open and locked.
  package var live: Directory { liveContainer.root }

  /// The status that a live file had when the transaction began, without its mount and blocks, if a listing says that the same
  /// inode is there.
  package func fileSeen(_ path: ContainerPath, listed item: NameList.Item) -> FileStatus? {
    index?.file(path, listed: item)
  }

  /// Says that a secret was moved into the vault: all that the undo log keeps of this transaction and of earlier ones is sealed.
  ///
  /// - Parameter recipients: to whose keys: the vault's.
  package func keepSealed(to recipients: some Sequence<AgeRecipient>) {
    secretRecipients.formUnion(recipients)
  }

  /// The same of a setting's value.
  package func keepSealed(_ secret: MovedSecret, to recipients: some Sequence<AgeRecipient>) {
    movedSecrets.append(secret)
    keepSealed(to: recipients)
    // Hidden under any name from now on.
    redactor = secret.known(to: redactor)
  }

  /// A redactor for a message that shows values: it also hides what was a secret by its name before the transaction,
  /// since a step may have given it a new name.
  package func knowingRedactor(showing values: [PropertyListValue]) -> Redactor {
    if values.isEmpty { return redactor }
    let settings = settingsBefore ?? readSettings()
    settingsBefore = settings
    return redactor.knowing(settings, among: values)
  }

  /// All settings of the live container; those of a file that cannot be read are left out.
  private func readSettings() -> [PropertyListDictionary] {
    // A step may change any file as settings.
    let changed: [ContainerPath] = stage.overlay.paths.filter { path in
      [".plist", ".xml"].contains { path.nameString.hasSuffix($0) }
    }
    return Set(container.settingsFiles(in: live)).union(changed).compactMap { try? live.settings($0).root }
  }

  /// Says which columns triggers wrote that no statement names.
  package func note(_ columns: TriggeredColumns, in database: ContainerPath) {
    triggered[database, default: [:]].merge(columns) { $0.merging($1) { $1 } }
  }

  /// Checks what the stage changes, as before a commit.
  ///
  /// - Returns: notes on what was wrong before.
  func check() throws -> [String] {
    if removesStraySidecars { try removeStraySidecars() }
    return checksResult ? try checkStage() : []
  }

  func missing(_ path: ContainerPath) -> DrydockError {
    let reason = container.reason(againstGroupOf: path)
    return DrydockError(.missing, reason ?? "not in the container", path: path.description)
  }
}

extension StagedContainer: ContainerContent {
  /// The status of a path as it will be; nil when nothing will be there.
  package func status(of path: ContainerPath) throws -> FileStatus? {
    switch stage.overlay[path] {
    case .removed: nil
    case .inode(let inode): try stage.directory.status(inode.name)
    case .directory(let metadata): FileStatus(directory: metadata)
    case nil: try liveContainer.status(of: path)
    }
  }

  /// The paths of a list, best sorted, at which directories will be.
  package func directories(among paths: some Sequence<ContainerPath>) throws -> [ContainerPath] {
    let live = LastDirectory(live)
    return try paths.filter { path in
      // Most paths of a restore are not there yet.
      if stage.overlay[path] == nil, try live.status(of: path) == nil { return false }
      return try status(of: path)?.type == .directory
    }
  }

  /// A path's metadata as it will be; nil when nothing will be there.
  package func metadata(of path: ContainerPath) throws -> FileMetadata? {
    switch stage.overlay[path] {
    case .removed: nil
    case .inode(let inode): try stage.directory.metadata(inode.name)
    case .directory(let metadata): metadata
    case nil: try live.metadata(path)
    }
  }

  /// What is directly in a directory, sorted; nothing for a path that is not a directory.
  package func children(of path: ContainerPath) throws -> [ContainerPath] {
    guard try status(of: path)?.type == .directory else { return [] }
    var names: Set<ContainerPath> = []
    if try live.status(path)?.type == .directory {
      names = Set(try live.directory(path).names().map { path.appending(name: $0) })
      names = names.filter { !live.isState($0) }
    }
    for child in stage.overlay.children(of: path) {
      if case .removed = stage.overlay[child] { names.remove(child) } else { names.insert(child) }
    }
    return names.sorted()
  }

  /// Everything below a directory, sorted, parents first.
  package func descendants(of path: ContainerPath) throws -> [ContainerPath] {
    try children(of: path).flatMap { (live.isGroupList($0) ? [] : [$0]) + (try descendants(of: $0)) }
  }

  package func location(of path: ContainerPath) -> (directory: Directory, path: ContainerPath) {
    if case .inode(let inode) = stage.overlay[path] { return (stage.directory, inode.name) }
    return (live, path)
  }

  /// Reads a regular file of any size in pieces, in order.
  ///
  /// - Throws: ``DrydockError`` as ``read(_:)``, and what `body` throws.
  package func read(_ path: ContainerPath, by body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let location = try fileLocation(of: path)
    try location.directory.read(location.path, by: body)
  }

  /// The content of a regular file, up to 64 MiB.
  ///
  /// - Throws: ``DrydockError``: `missing`, or `io` when it cannot be read or is not a file.
  package func read(_ path: ContainerPath) throws -> [UInt8] {
    let location = try fileLocation(of: path)
    return try location.directory.contents(location.path)
  }

  private func fileLocation(of path: ContainerPath) throws -> (directory: Directory, path: ContainerPath) {
    guard let status = try status(of: path) else { throw missing(path) }
    guard status.type == .file else {
      throw DrydockError(.unsupported, "not a regular file; links are not followed", path: path.description)
    }
    return location(of: path)
  }

  /// Whether the stage changes anything directly in a directory.
  package func changesNames(in directory: ContainerPath) -> Bool {
    stage.overlay.hasChildren(directory)
  }

  /// Whether a path is as it was when the transaction began, with all below it: then its undo entry keeps what a step
  /// removes there, and ``UndoEntry/putBack(_:on:)`` gives it back. What was changed or moved there before in the same
  /// transaction is kept nowhere.
  package func isUntouched(_ path: ContainerPath) throws -> Bool {
    try live.status(path) != nil && !stage.overlay.paths.contains { $0 == path || $0.isInside(path) }
  }

  /// What a path has once this metadata has been put on it: a user who is not root cannot change owners, and a
  /// file system may lack attributes or flags, or round times. Found out by trying, once for each kind of metadata.
  package func attainable(_ metadata: FileMetadata, for type: FileType) throws -> FileMetadata {
    var wanted = NodeRecord(type: type, metadata: metadata, size: 0)
    // A file system may keep whole seconds.
    let whole = metadata.modified - metadata.modified % 1_000_000_000
    wanted.metadata.modified = metadata.modified == whole ? 0 : 1
    if let (made, keepsFractions) = attained[wanted] {
      var known = made
      known.modified = keepsFractions ? metadata.modified : whole
      return known
    }
    let name = stage.newName()
    switch type {
    case .directory: try stage.directory.createDirectory(name)
    case .symbolicLink: try stage.directory.createLink(name, target: [0x2E])
    case .file, .other: try stage.directory.createFile(name).close()
    }
    try stage.directory.apply(metadata, to: name)
    let made = try stage.directory.metadata(name) ?? metadata
    try stage.directory.removeTree(name)
    if [metadata.modified, whole].contains(made.modified) {
      attained[wanted] = (made, made.modified == metadata.modified)
    }
    return made
  }

  /// SHA-256 over what is at a path, whatever its metadata: a file's content, a database's captured content
  /// (``ContentHash``), a link's target, and of a directory the names, types and contents of all below it.
  ///
  /// - Throws: ``DrydockError``: `missing` when nothing is there; `malformed` for a database that SQLite cannot open.
  package func digest(of path: ContainerPath) throws -> SHA256.Digest {
    guard let type = try status(of: path)?.type else { throw missing(path) }
    if try isDatabase(path) { return try databaseDigest(path) }
    guard type == .directory else { return try contentDigest(of: path) ?? type.digest }
    let hash = try SHA256()
    for below in try descendants(of: path) where try !isSidecar(below) {
      guard let type = try status(of: below)?.type else { continue }
      // Paths have no NUL, so that no two trees give the same bytes.
      let name = below.rebased(from: path, to: .root)
      let content = type == .directory ? [] : Array(try digest(of: below).hex.utf8)
      for part in [Array(type.rawValue.utf8), name.bytes, content] {
        (part + [0]).withUnsafeBytes(hash.update)
      }
    }
    return try hash.finalize()
  }
}
