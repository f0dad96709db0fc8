import DrydockErrors
import FileSystem

/// Edits that keep a file's size and modification time (`cp -p`, `rsync -t --inplace`): its change time alone shows them.
extension Commit {
  /// No replaced file may have been edited so since staging began.
  ///
  /// It is asked before anything is linked, while the change time of every replaced file counts, also of one with another
  /// name that stays; and in place once more right before the moves, because a rename moves the change time. What changed
  /// so that it shows later is left to the later looks.
  func requireNoQuietEdit(_ undo: UndoRecord) throws {
    guard let index else { return }
    for path in undo.touched.sorted() {
      guard let seen = index.paths[path], seen.type != .directory, let status = try staged.live.status(path)
      else { continue }
      let now = IndexedStatus(status)
      if now.isSame(as: seen) && !now.isSame(as: seen, byChangeTime: true) { throw changed(path) }
    }
  }

  func changed(_ path: ContainerPath) -> DrydockError {
    DrydockError(
      .changedMeanwhile,
      "\(path) changed while the transaction was prepared; nothing was changed, run it again",
      path: staged.container.root)
  }
}
