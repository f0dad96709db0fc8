import AppContainer
import DrydockErrors
import FileSystem

/// Carries out the moves of a plan, forwards or back. Each is one rename, or two; each looks first where its parts are,
/// so that all of it may be run again, in either direction, after a crash between any two.
struct Mover {
  let live, folder: Directory
  let conflicts: KeptConflicts
  let plan: MovePlan
  let faults: FaultInjection
  /// Is called for what was live at a path, right after it was moved to a name in the folder.
  let replaced: (ContainerPath, ContainerPath) throws -> Void

  // MARK: Forwards

  func forward() throws {
    for move in plan.moves {
      try forward(move)
      try faults.reach(.moved)
    }
  }

  private func forward(_ move: MovePlan.Move) throws {
    switch move.kind {
    case .aside: try aside(move)
    case .place: try place(move)
    case .swap: try swap(move)
    }
  }

  private func aside(_ move: MovePlan.Move) throws {
    guard let old = move.old else { return }
    guard try live.status(move.path) != nil else { return try replaced(move.path, old) }
    // Once the new main file is there, what is beside it is its own.
    if try hasNewMain(move.path) { return }
    if try folder.status(old) == nil {
      try live.withWritableParent(of: move.path) {
        try live.renameOnto(nothingAt: old, move.path, in: folder)
      }
      try replaced(move.path, old)
    } else if !isPlaced(later: move.path) {
      // It has gone already, and an app has made it anew.
      try live.withWritableParent(of: move.path) { try conflicts.take(move.path, from: live) }
    }
  }

  /// Whether the path is that of a database's sidecar, and the database's new main file has come.
  private func hasNewMain(_ path: ContainerPath) throws -> Bool {
    guard DatabaseFormat.sidecarSuffixes.contains(where: path.nameString.hasSuffix) else { return false }
    return try plan.moves.contains { move in
      try move.isDatabase && DatabaseFormat.sidecarSuffixes.contains { move.path.withSuffix($0) == path }
        && live.status(move.path)?.inode == move.inode
    }
  }

  /// Whether a successor that comes by another move of the plan is at the path already.
  private func isPlaced(later path: ContainerPath) -> Bool {
    plan.moves.contains { $0.kind == .place && $0.path == path }
  }

  private func place(_ move: MovePlan.Move) throws {
    guard let new = move.new, let status = try folder.status(new), status.inode == move.inode else { return }
    // An app may make the same path again and again; not for ever.
    for attempt in 0..<100 {
      do {
        if move.isDatabase { try clearSidecars(of: move.path) }
        try live.withWritableParent(of: move.path) {
          try folder.renameOnto(nothingAt: move.path, new, in: live)
        }
        return
      } catch let error as DrydockError where error.isErrno(.fileExists) && attempt < 99 {
        if try status.type == .directory && live.status(move.path)?.type == .directory {
          return try folder.removeDirectory(new)
        }
        try conflicts.take(move.path, from: live)
      } catch let error as DrydockError where error.code == .notFound && attempt < 99 {
        // An app has removed the directory above.
        try live.createDirectories(move.path.parent, mode: 0o755)
      }
    }
  }

  private func clearSidecars(of main: ContainerPath) throws {
    for sidecar in DatabaseFormat.sidecarSuffixes.map(main.withSuffix) {
      guard let status = try live.status(sidecar) else { continue }
      let isOwn = plan.moves.contains { $0.path == sidecar && $0.inode == status.inode }
      if !isOwn { try conflicts.take(sidecar, from: live) }
    }
  }

  private func swap(_ move: MovePlan.Move) throws {
    guard let new = move.new, let old = move.old, let status = try folder.status(new) else { return }
    if status.inode == move.inode {
      guard try folder.status(old) == nil, try live.status(move.path) != nil else {
        // The app has removed it, or it was moved aside and the crash came before its successor did.
        return try place(move)
      }
      do {
        if move.isDatabase { try clearSidecars(of: move.path) }
        try live.withWritableParent(of: move.path) { try folder.exchange(new, in: live, with: move.path) }
      } catch let error as DrydockError where error.meansNoSuchRename {
        try live.withWritableParent(of: move.path) {
          try live.renameOnto(nothingAt: old, move.path, in: folder)
        }
        try replaced(move.path, old)
        return try place(move)
      }
    }
    try replaced(move.path, new)
    // The folder's `new` is what was live until the exchange.
    if try folder.status(old) == nil {
      try folder.rename(new, in: folder, to: old)
    } else {
      try conflicts.take(move.path, from: folder, as: new)
    }
  }

  // MARK: Back

  /// Takes back whatever has been moved.
  func back() throws {
    for move in plan.moves.reversed() { try back(move) }
  }

  private func back(_ move: MovePlan.Move) throws {
    if let new = move.new, let inode = move.inode {
      let atPath = try live.status(move.path)
      let inFolder = try folder.status(new)
      if let inFolder, inFolder.inode != inode, atPath?.inode == inode {
        // Exchanged, and no further.
        return try folder.exchange(new, in: live, with: move.path)
      }
      if let atPath, atPath.inode == inode, inFolder == nil {
        // A directory that an app has put something into stays with it.
        if atPath.type == .directory, try !live.directory(move.path).names().isEmpty { return }
        if move.kind == .swap, let old = move.old, try folder.status(old) != nil {
          try folder.rename(old, in: folder, to: new)
          do {
            return try folder.exchange(new, in: live, with: move.path)
          } catch let error as DrydockError where error.meansNoSuchRename {
            try folder.rename(new, in: folder, to: old)
          }
        }
        try live.renameOnto(nothingAt: new, move.path, in: folder)
      }
    }
    guard let old = move.old, try folder.status(old) != nil else { return }
    if try live.status(move.path) == nil {
      try folder.renameOnto(nothingAt: move.path, old, in: live)
    } else {
      // An app has made it anew meanwhile: its own stays, what was there before is kept.
      try conflicts.take(move.path, from: folder, as: old)
    }
  }
}
