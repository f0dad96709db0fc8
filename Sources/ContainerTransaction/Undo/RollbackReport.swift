import FileSystem

/// Something that both a transaction and, since then, the app changed.
package struct RollbackConflict: Sendable, Codable, Equatable, CustomStringConvertible {
  /// Where: the path, and the key of a setting.
  package var path: ContainerPath, key: String?
  /// What the transaction replaced, what it wrote, and what is there now, for people; secrets redacted.
  package var before: String, written: String, now: String

  /// Such as `theme in Library/…plist: was "dark", the transaction wrote "light", now "blue"`.
  package var description: String {
    let place = key.map { "\($0) in \(path)" } ?? path.description
    return "\(place): was \(before), the transaction wrote \(written), now \(now)"
  }
}

/// What a rollback did.
package struct RollbackReport: Sendable {
  /// A transaction that was undone.
  package struct Undone: Sendable, Codable, Equatable {
    /// Its name.
    package var transaction: TransactionID
    /// What it was for, and what it had done.
    package var kind: TransactionKind, summary: String
  }

  /// The transactions that were undone, the newest first.
  package var undone: [Undone]
  /// What the app had changed since and was given up, with `discardingNewer`.
  package var discarded: [RollbackConflict]
}
