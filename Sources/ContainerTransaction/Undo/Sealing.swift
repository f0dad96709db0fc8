import AgeEncryption
import DrydockErrors
import FileSystem
import Formats

/// What of a transaction's undo is kept sealed, because a setting's value was moved into the vault. It is a part of
/// `record.json`: a recovery, which has no key, seals with it what a killed commit did not come to.
struct Sealing: Codable, Sendable {
  /// One setting.
  struct Setting: Codable, Sendable, Hashable {
    var path: ContainerPath
    @ExactText var key: String
  }

  /// Public keys, to whose owners it is sealed.
  var recipients: [String]
  /// The settings that were moved, and those that had their values before: what is kept of their files is sealed.
  var settings: [Setting]
  /// Files that other transactions have kept, as paths below a state directory, and that hold one of the values, too.
  var older: [ContainerPath]

  /// Whether what is kept of a file is sealed.
  func covers(_ path: ContainerPath) -> Bool { settings.contains { $0.path == path } }

  /// Seals a file that is kept, and removes it. It may be run again after a crash at any moment.
  func seal(_ name: ContainerPath, in directory: Directory) throws {
    guard let status = try directory.status(name), status.type == .file else { return }
    var bytes = try directory.contents(name)
    let sealed = try Age.seal(SecretBytes(wiping: &bytes), to: lock())
    let temporary = KeptFiles.sealed(name).withSuffix(".new")
    try directory.removeFile(temporary, missingIsFine: true)
    try directory.create(temporary, sealed)
    // A rollback tells by the time whether it is what was replaced.
    try directory.setModified(status.modified, of: temporary)
    let file = try directory.open(temporary, .readWrite)
    defer { try? file.close() }
    try directory.syncFile(file, temporary)
    try directory.rename(temporary, in: directory, to: KeptFiles.sealed(name))
    try directory.directory(name.parent).sync()
    try directory.removeFile(name)
  }

  private func lock() throws -> AgeLock {
    do {
      return .recipients(try recipients.map { try AgeRecipient($0) })
    } catch {
      throw DrydockError(
        .damagedState,
        "the record of a transaction names a key that is none, so that nothing can be sealed to it",
        cause: error)
    }
  }
}

extension Sealing {
  /// What a stage wants sealed; nil when nothing.
  init?(_ staged: StagedContainer, _ states: [StateDirectory]) throws {
    for state in states { try MovedSettings(in: state.directory).keepSealed(in: staged) }
    guard !staged.movedSecrets.isEmpty else { return nil }
    recipients = staged.sealedTo.map(\.description).sorted()
    let held = try states.map {
      try HeldSecrets(state: $0, container: staged.container, secrets: staged.movedSecrets).find()
    }
    older = held.flatMap(\.files)
    // Under the names that it had before, too: a restore of an old archive may bring it back under one of them.
    settings = Set(
      staged.movedSecrets.map { Setting(path: $0.path, key: $0.key) } + held.flatMap(\.settings)
    ).sorted { ($0.path, ExactText($0.key)) < ($1.path, ExactText($1.key)) }
  }
}
