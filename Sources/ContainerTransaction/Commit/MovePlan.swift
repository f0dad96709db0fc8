import AppStores
import DrydockErrors
import FileSystem

/// One move of a journaled replacement, between the live container and the transaction's folder.
struct Move: Codable, Sendable {
  enum Kind: String, Codable {
    /// What is at the path goes into the folder, as `old`.
    case aside
    /// The folder's `new` goes to the path, where nothing is.
    case place
    /// Both in one step: at every moment the path has the old or the new one.
    case swap
  }

  /// The file with all moves, in their order, written down before the first of them.
  static let plan: ContainerPath = "plan"
  /// Names of the directories that hold the place of a main file.
  fileprivate static let hold = "hold-"

  var kind: Kind
  var path: ContainerPath
  var old, new: ContainerPath?
  /// The inode number of `new`, by which it is known wherever it is. (Not its device: that may have another number
  /// after the machine has been started again.)
  var inode: UInt64?
  /// A database's main file: what lies at its sidecars' names and is not of this plan goes before it comes.
  var isDatabase = false
  /// Whether `new` is what was staged for the path. The name of a staged file may start as that of a directory that holds a
  /// place: files of a large new directory have their own names, in a folder.
  var isStaged: Bool { kind != .aside && !(new?.description.hasPrefix(Self.hold) ?? true) }
}

/// The plan of a journaled replacement.
extension [Move] {
  /// Plans a stage's moves, and makes the directories that are new in the folder, so that they only have to be moved.
  init(_ records: ChangeRecords, _ staged: StagedContainer, in folder: Directory) throws {
    self.init()
    let paths = Set(records.map(\.path))
    // Databases with sidecars on either side: no main file may ever stand beside a log that is not its own, and SQLite
    // takes a log without a main file for none.
    let mains = records.filter { change in
      change.granularity == .database
        && DatabaseFormat.sidecarSuffixes.contains { paths.contains(change.path.withSuffix($0)) }
    }
    let sidecars = Set(mains.flatMap { main in DatabaseFormat.sidecarSuffixes.map(main.path.withSuffix) })
    let grouped = sidecars.union(mains.map(\.path))

    var number = 0
    func newName(_ prefix: String) -> ContainerPath {
      number += 1
      return ContainerPath(name: [UInt8]("\(prefix)\(number)".utf8))
    }
    func aside(_ path: ContainerPath, as kept: ContainerPath?) {
      append(Move(kind: .aside, path: path, old: kept ?? newName("gone-")))
    }
    // Where nothing is, SQLite would make a database, and remove the log that is still there.
    func hold(_ main: ChangeRecord) throws {
      let name = newName(Move.hold)
      try folder.createDirectory(name)
      append(
        Move(kind: .swap, path: main.path, old: main.kept, new: name, inode: try folder.status(name)?.inode))
    }
    func come(_ kind: Move.Kind, _ change: ChangeRecord) throws {
      guard case .inode(let inode) = staged.stage.overlay[change.path] else { return }
      // In a group of files it is a directory that goes, and the old main file has gone before.
      let old = kind == .swap ? (grouped.contains(change.path) ? newName("gone-") : change.kept) : nil
      append(
        Move(
          kind: kind, path: change.path, old: old, new: inode.name,
          inode: try folder.status(inode.name)?.inode, isDatabase: change.granularity == .database))
    }

    for main in mains where main.before != nil { try hold(main) }
    for change in records where sidecars.contains(change.path) && change.before != nil {
      aside(change.path, as: change.kept)
    }
    for main in mains where main.before != nil && main.after == nil { aside(main.path, as: nil) }
    // What goes, the deepest first; also what makes way for something of another kind.
    for change in records.reversed() where !grouped.contains(change.path) && change.isRemoved {
      aside(change.path, as: change.kept)
    }
    var flags = NewInodeFlags(staged)
    for change in records where change.after?.type == .directory && change.before?.type != .directory {
      let name = newName("made-")
      try folder.createDirectory(name)
      if let metadata = change.after?.metadata { try folder.apply(metadata, to: name) }
      try folder.setMode((change.after?.metadata.mode ?? 0o700) | 0o700, of: name)
      if let flags = try flags.directory(change.path) { try folder.setFlags(flags, of: name) }
      append(
        Move(kind: .place, path: change.path, new: name, inode: try folder.status(name)?.inode))
    }
    for change in records where !grouped.contains(change.path) {
      guard let after = change.after, after.type != .directory else { continue }
      let isReplaced = change.before.map { $0.type != .directory } ?? false
      try come(isReplaced ? .swap : .place, change)
    }
    for change in records where sidecars.contains(change.path) && change.after != nil {
      try come(.place, change)
    }
    for main in mains where main.after != nil { try come(main.before == nil ? .place : .swap, main) }
  }

  init(in folder: Directory) throws {
    let damaged = "the plan of an interrupted commit is corrupt; nothing was moved"
    self = try folder.record(Move.plan, field: "moves", damaged: damaged)
    guard allSatisfy(\.isSound) else {
      throw DrydockError(.damagedState, damaged, path: folder.full(Move.plan))
    }
  }

  /// Whether one of them is done: the old file is in the folder, or the new one has left it. A power cut can lose what
  /// was staged before the plan: then it is nowhere.
  ///
  /// - Parameter live: the live root; nil when there is none.
  func haveBegun(in folder: Directory, _ live: Directory?) throws -> Bool {
    try contains { move in
      if let old = move.old, try folder.status(old) != nil { return true }
      guard let new = move.new, try folder.status(new)?.inode != move.inode else { return false }
      guard let live, move.path.inGroup == nil else { return true }
      return try live.status(move.path)?.inode == move.inode
    }
  }
}

extension Move {
  /// Whether it is between a path of the container, not of Drydock's own state, and a name in the folder.
  fileprivate var isSound: Bool {
    let own = (path.inGroup?.path ?? path).components
    return !own.isEmpty && own[0] != ContainerPath.stateDirectory.bytes
      && old?.isRoot != true && new?.isRoot != true
  }
}

extension ChangeRecord {
  /// Whether something goes from the path without a successor of a kind that could be exchanged with it.
  fileprivate var isRemoved: Bool {
    guard let before else { return false }
    guard let after else { return true }
    return (before.type == .directory) != (after.type == .directory)
  }
}
