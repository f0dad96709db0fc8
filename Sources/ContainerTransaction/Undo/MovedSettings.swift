import AgeEncryption
import FileSystem
import Formats

/// The settings of a container that were ever moved into its vault, by name: a file of the state directory, which stays
/// when the undos go. Should one of them be in the settings again (a restore of an old archive brings it back) and then
/// go again (that restore is rolled back), it is kept sealed again, without any key being at hand.
struct MovedSettings: Codable, Sendable {
  static let file: ContainerPath = "moved"

  /// Public keys, to whose owners such a value is sealed: those of the newest move.
  var recipients: [String] = []
  var settings: [Sealing.Setting] = []

  /// Reads the file in a state directory; empty when there is none.
  ///
  /// - Throws: ``DrydockError`` with code `damagedState`.
  init(in state: Directory) throws {
    guard try state.status(Self.file) != nil else { return }
    self = try StateRecord.read(
      Self.file, in: state, damaged: "the list of the settings that are in the vault cannot be read")
  }

  /// Adds what a transaction has moved.
  static func add(_ sealing: Sealing, in state: Directory) throws {
    var moved = try MovedSettings(in: state)
    moved.settings += sealing.settings.filter { !moved.settings.contains($0) }
    moved.recipients = sealing.recipients
    try state.replace(file, with: StateRecord.encode(moved))
  }

  /// Has a stage keep sealed what it takes out of such settings.
  func keepSealed(in staged: StagedContainer) throws {
    for setting in settings where staged.overlay[setting.path] != nil {
      guard try staged.live.status(setting.path)?.type == .file,
        let value = try PropertyListFile.settings(in: staged.live.contents(setting.path))?[setting.key],
        // What cannot be read as settings any more is not what it was: then it is sealed.
        (try? staged.defaults(setting.path))?.root[setting.key] != value
      else { continue }
      staged.keepSealed(
        MovedSecret(path: setting.path, key: setting.key, value: value),
        to: try recipients.map { try AgeRecipient($0) })
    }
  }
}
