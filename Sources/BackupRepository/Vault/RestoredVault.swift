import AppContainer

/// What a restore did with the vault, or would do: items by name, never a value.
public struct RestoredVault: Sendable, Codable, Equatable {
  /// An item that did not come back.
  public struct LeftBehind: Sendable, Codable, Equatable {
    /// Its name; nil for whatever is in a vault that cannot be opened.
    public var item: String?
    /// Why not.
    public var reason: String
  }

  /// Items that came back, new or in place of another value.
  public var returned: [String] = []
  /// Items that the archive does not have and that went.
  public var removed: [String] = []
  /// Items that did not come back. What the container has in their place stayed.
  public var leftBehind: [LeftBehind] = []
  /// Number of items that were right already.
  public var unchanged = 0
  /// Why none came back, where the reason is the same for all: no key, or a file that does not open.
  public var problem: String?
  /// Whether the archive is of this device; nil when that is not known.
  public var isSameDevice: Bool?

  /// Whether the container had all that may come back, and nothing more.
  public var isUpToDate: Bool { returned.isEmpty && removed.isEmpty && problem == nil }
}
