import AppContainer

/// What a restore did with the vault, or would do: items by name, never a value.
package struct RestoredVault: Sendable, Codable, Equatable {
  /// An item that did not come back.
  package struct LeftBehind: Sendable, Codable, Equatable {
    /// Its name; nil for whatever is in a vault that cannot be opened.
    package var item: String?
    /// Why not.
    package var reason: String
  }

  /// Items that came back, new or in place of another value.
  package var returned: [String] = []
  /// Items that the archive does not have and that went.
  package var removed: [String] = []
  /// Items that did not come back. What the container has in their place stayed.
  package var leftBehind: [LeftBehind] = []
  /// Number of items that were right already.
  package var unchanged = 0
  /// Why none came back, where the reason is the same for all: no key, or a file that does not open.
  package var problem: String?
  /// Whether the archive is of this device; nil when that is not known.
  package var isSameDevice: Bool?

  /// Whether the container had all that may come back, and nothing more.
  package var isUpToDate: Bool { returned.isEmpty && removed.isEmpty && problem == nil }
}
