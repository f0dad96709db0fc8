import AgeEncryption
import AppContainer

extension Undoing {
  /// What undoes a move into the vault, or redoes one, is sealed as the move was: the value would stand in its undo
  /// again.
  func keepSealed(_ record: UndoRecord, to recipients: [AgeRecipient]) throws {
    for setting in record.sealing?.settings ?? [] {
      for change in record.changes where change.path == setting.path {
        let value =
          try settings(change.kept, kept)[setting.key] ?? settingsWritten(change)[setting.key]
        guard let value else { continue }
        staged.keepSealed(
          MovedSecret(path: setting.path, key: setting.key, value: value), to: recipients)
      }
    }
  }
}
