import AppContainer

/// Puts a stage in place, and remembers what it replaced: by exchange (`Commit+Exchange.swift`) or in place
/// (`Commit+InPlace.swift`). Both prepare everything beside the live container, look at it once more, write the journal's
/// record COMMIT, and only then touch it.
struct Commit {
  static let tree: ContainerPath = "tree"

  let staged: StagedContainer
  let state: StateDirectory
  let way: CommitWay
  let transaction: TransactionID
  /// The transaction's folder: the staged inodes, what replaces the live container, and what a recovery needs.
  let folder: Directory
  /// The container as it was when staging began; nil when there was none.
  let index: TreeIndex?
  let faults: FaultInjection

  /// What came of a commit.
  struct Result {
    /// The paths that an app changed at the same moment, kept under `conflict/<transaction>/`.
    var conflicts: [ContainerPath] = []
    /// What went wrong after the container was new: it is new all the same, and a recovery finishes.
    var unfinished: (any Error)?
  }

  /// Commits.
  ///
  /// - Throws: only when nothing has changed; or ``TransactionError`` with code `interrupted`.
  func run(_ changes: ChangeList, undo: UndoRecord) throws -> Result {
    try writeRecoveryFiles(changes, undo)
    staged.finishWriting()
    return switch way {
    case .exchange: try byExchange(changes, undo)
    case .inPlace: try inPlace(changes, undo)
    }
  }

  /// The live container must be what was staged from.
  func lookAgain() throws {
    guard let index else { return }
    if let moved = try TreeIndex(of: staged.live).differences(from: index).first {
      throw TransactionError(
        .changedMeanwhile,
        "\(moved) changed while the transaction was prepared; nothing was changed, run it again",
        path: staged.container.root)
    }
    try requireSameRoot(try? Directory(staged.container.root).status())
  }

  /// The path must still name the directory that is locked and staged.
  func requireSameRoot(_ status: FileStatus?) throws {
    guard try status?.identity == staged.live.status().identity else {
      throw TransactionError(
        .changedMeanwhile,
        "the container was replaced by another directory while the transaction was prepared; nothing was changed, "
          + "run it again", path: staged.container.root)
    }
  }

  /// What a recovery needs goes to disk before the tree takes the staged files away.
  private func writeRecoveryFiles(_ changes: ChangeList, _ undo: UndoRecord) throws {
    for change in changes.changes {
      guard let copy = change.settingsAfter else { continue }
      let place = staged.place(of: change.path)
      try place.directory.copyContents(of: place.path, to: copy, in: folder)
    }
    try folder.create(UndoRecord.file, StateRecord.encode(undo))
    if let index { try folder.create(TreeIndex.file, index.encoded()) }
  }
}
