/// The design's table and rules of what leaves a device and what comes back, written down a second time and
/// independently of `VaultPlan`. All is plain text here.
struct VaultRestoreModel {
  /// The restore's device, as the archive's sees it.
  enum Device: CaseIterable, Hashable {
    /// The same one, and its key.
    case same
    /// The same one; its key was replaced, and the old one is still at hand, or is not.
    case rotated, rotatedAndLost
    case other
  }

  /// What the container holds of an item of the archive, or an item that only the container has.
  enum Live: String, CaseIterable { case absent, same, otherValue, extra }

  enum Control: String, CaseIterable { case none, userPresence, biometryCurrentSet }

  struct Item: Hashable {
    var code: String
    var isSynchronizable: Bool
    var control: Control
    var live: Live
    var name: String {
      "s/\(code)-\(control.rawValue)-\(live.rawValue)" + (isSynchronizable ? " [synchronizable]" : "")
    }
  }

  enum End: String { case archive, live, absent }

  var device: Device
  var isEncrypted: Bool
  var hadKeyAtSnapshot: Bool
  var hasKey: Bool
  var includesSynchronizable = false
  var keepsExtra = false
  var hasVault = true

  /// The table: same device, other device from an encrypted archive.
  static let table: [String: (same: Bool, other: Bool)] = [
    "ak": (true, true), "ck": (true, true), "dk": (true, true), "aku": (true, false), "cku": (true, false),
    "dku": (true, false), "akpu": (false, false),
  ]

  /// Where items come from.
  enum Source { case sealed, forOthers, nothing }

  var source: Source {
    guard hasKey else { return .nothing }
    if device == .same || device == .rotated { return .sealed }
    return isEncrypted && hadKeyAtSnapshot ? .forOthers : .nothing
  }

  private func mayReturn(_ item: Item) -> Bool {
    guard let row = Self.table[item.code], item.control != .biometryCurrentSet else { return false }
    if item.isSynchronizable && !includesSynchronizable { return false }
    switch source {
    case .sealed: return row.same
    case .forOthers: return row.other && item.control == .none
    case .nothing: return false
    }
  }

  func live(_ item: Item) -> Live { hasVault ? item.live : item.live == .extra ? .extra : .absent }

  func end(_ item: Item) -> End {
    switch live(item) {
    case .extra:
      if !hasVault { return .absent }
      return mayReturn(item) && !keepsExtra ? .absent : .live
    case .absent: return mayReturn(item) ? .archive : .absent
    case .same, .otherValue: return mayReturn(item) ? .archive : .live
    }
  }

  /// Whether the restore has to say that the item stayed behind.
  func isNotRestored(_ item: Item) -> Bool {
    guard item.live != .extra, !mayReturn(item) else { return false }
    let isForOthers = Self.table[item.code]?.other == true && item.control == .none
    switch source {
    case .sealed: return live(item) != .same
    // Of what does not leave its device only the name is known.
    case .forOthers: return !isForOthers || live(item) != .same
    case .nothing: return isEncrypted && hadKeyAtSnapshot
    }
  }

  /// Whether there is more that nobody can name.
  var leavesUnknown: Bool { source == .nothing && !(isEncrypted && hadKeyAtSnapshot) }

  func isReturned(_ item: Item) -> Bool { end(item) == .archive && live(item) != .same }
  func isRemoved(_ item: Item) -> Bool { live(item) == .extra && hasVault && end(item) == .absent }
}
