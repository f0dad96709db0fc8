import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem

/// The files that an undo keeps: as they were, or sealed.
struct KeptFiles {
  /// The undo's folder.
  let directory: Directory
  /// What opens those that are sealed.
  let keys: AgeKeys
  /// Whether a file that was written to since it was replaced comes back as it is.
  var takesChanged = false

  /// The name of a kept file once it is sealed.
  static func sealed(_ name: ContainerPath) -> ContainerPath { name.withSuffix(".age") }

  /// Whether a file is kept sealed.
  func isSealed(_ name: ContainerPath) throws -> Bool {
    try directory.status(name) == nil && directory.status(Self.sealed(name)) != nil
  }

  /// The status of a file as it is kept.
  func status(_ name: ContainerPath) throws -> FileStatus? {
    try directory.status(name) ?? directory.status(Self.sealed(name))
  }

  /// A file's content.
  func contents(_ name: ContainerPath) throws -> [UInt8] {
    guard try isSealed(name) else {
      var bytes = try directory.contents(name)
      ReplacedMark.remove(from: &bytes)
      return bytes
    }
    return try open(name).withBytes { Array($0) }
  }

  /// The content of a file that is kept sealed.
  ///
  /// - Throws: `DrydockError` with code `vaultLocked` when no key opens it; ``DrydockError`` with code
  ///   `nothingToUndo` when it is damaged.
  private func open(_ name: ContainerPath) throws -> SecretBytes {
    let path = directory.full(Self.sealed(name))
    do {
      guard !keys.isEmpty else {
        throw DrydockError(
          .vaultLocked,
          "what this transaction replaced is kept sealed, since it holds a setting that is in the vault now; give the "
            + "device key with --device-key FILE or DRYDOCK_DEVICE_KEY", path: path)
      }
      return try Age.open(directory.contents(Self.sealed(name)), with: keys)
    } catch let error as DrydockError where error.code == .noIdentity {
      throw DrydockError(
        .vaultLocked,
        "what this transaction replaced is kept sealed, and the device key that was given does not open it: give the "
          + "one that the vault had then", path: path, cause: error)
    } catch let error as DrydockError
      where [.badKey, .header, .mac, .payload, .armor, .cryptography].contains(error.code)
    {
      throw DrydockError(
        .nothingToUndo,
        "what this transaction replaced is kept sealed, and is damaged (\(error.message)); restore it from a backup",
        path: path, cause: error)
    }
  }

  /// Stages what was at a path before.
  ///
  /// - Throws: ``DrydockError``: `conflict` when what is kept was written to since, unless that is taken as it is;
  ///   `nothingToUndo` when it is gone.
  func putBack(_ change: ChangeRecord, on staged: StagedContainer) throws {
    guard let name = change.kept, let before = change.before else { return }
    try requireUnchanged(change, on: staged)
    guard let status = try status(name) else {
      throw DrydockError(
        .nothingToUndo, "the version that was kept is not there any more; restore it from a backup",
        path: change.path.description)
    }
    if try isSealed(name) {
      try staged.putFile(at: change.path, metadata: before.metadata, size: before.size) {
        try $0.write(contents(name))
      }
    } else {
      try staged.adopt(name, in: directory, type: status.type, at: change.path)
    }
  }

  /// What is kept must be what was replaced: a program that still had it open, or another hard link, leads to it.
  func requireUnchanged(_ change: ChangeRecord, on staged: StagedContainer) throws {
    guard !takesChanged, let name = change.kept, let before = change.before, let status = try status(name)
    else { return }
    let size = try isSealed(name) ? UInt64(contents(name).count) : status.size
    guard status.modified != before.metadata.modified || size != before.size else { return }
    throw DrydockError(
      .conflict,
      "the version that was kept was written to after it was replaced, by a program that had it open or through "
        + "another hard link; nothing was changed. It is \(directory.full(name)), the newer one is "
        + "\(staged.live.full(change.path)). Give --discard-newer to put it back as it is",
      path: change.path.description)
  }

  /// Opens all that is sealed, and forgets it: before anything is staged.
  func check(_ record: UndoRecord) throws {
    for name in record.changes.flatMap({ [$0.kept, $0.settingsAfter].compactMap { $0 } })
    where try isSealed(name) { _ = try open(name) }
  }
}
