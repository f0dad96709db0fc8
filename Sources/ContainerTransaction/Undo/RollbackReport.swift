import AppContainer

/// Something that both a transaction and, since then, the app changed.
public struct RollbackConflict: Sendable, Codable, Equatable, CustomStringConvertible {
  /// Where: the path, and the key of a setting.
  public var path: ContainerPath, key: String?
  /// What the transaction replaced, what it wrote, and what is there now, for people; secrets redacted.
  public var before: String, written: String, now: String

  /// Such as `theme in Library/…plist: was "dark", the transaction wrote "light", now "blue"`.
  public var description: String {
    let place = key.map { "\($0) in \(path)" } ?? path.description
    return "\(place): was \(before), the transaction wrote \(written), now \(now)"
  }
}

/// What a rollback did.
public struct RollbackReport: Sendable {
  /// A transaction that was undone.
  public struct Undone: Sendable, Codable, Equatable {
    /// Its name.
    public var transaction: TransactionID
    /// What it was for, and what it had done.
    public var kind: TransactionKind, summary: String
  }

  /// The transactions that were undone, the newest first.
  public var undone: [Undone]
  /// What the app had changed since and was given up, with `discardingNewer`.
  public var discarded: [RollbackConflict]
}
