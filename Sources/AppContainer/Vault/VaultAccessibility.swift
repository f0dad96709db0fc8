/// When a device can read a vault item, and with that whether a backup may bring it back: the keychain's accessibility
/// classes.
package enum VaultAccessibility: String, Sendable, Codable, CaseIterable {
  /// While the device is unlocked. What an item has for which nothing was said.
  case whenUnlocked
  /// From the first unlock after a start on.
  case afterFirstUnlock
  /// Always; deprecated by Apple.
  case always
  /// As ``whenUnlocked``, and on this device alone.
  case whenUnlockedThisDeviceOnly
  /// As ``afterFirstUnlock``, and on this device alone.
  case afterFirstUnlockThisDeviceOnly
  /// As ``always``, and on this device alone; deprecated by Apple.
  case alwaysThisDeviceOnly
  /// While the device is unlocked and has a passcode, on this device alone; no backup ever brings it back.
  case whenPasscodeSetThisDeviceOnly

  /// The keychain's own code, such as `ck`.
  package var code: String {
    switch self {
    case .whenUnlocked: "ak"
    case .afterFirstUnlock: "ck"
    case .always: "dk"
    case .whenUnlockedThisDeviceOnly: "aku"
    case .afterFirstUnlockThisDeviceOnly: "cku"
    case .alwaysThisDeviceOnly: "dku"
    case .whenPasscodeSetThisDeviceOnly: "akpu"
    }
  }

  /// A class by its name or by the keychain's code.
  package init?(_ text: String) {
    guard let found = Self(rawValue: text) ?? Self.allCases.first(where: { $0.code == text }) else {
      return nil
    }
    self = found
  }

  /// Whether an item of this class may leave its device at all.
  package var leavesDevice: Bool {
    switch self {
    case .whenUnlocked, .afterFirstUnlock, .always: true
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
      .whenPasscodeSetThisDeviceOnly:
      false
    }
  }

  /// Whether a backup brings an item of this class back.
  ///
  /// - Parameters:
  ///   - toSameDevice: whether it is the device that the backup was made on.
  ///   - fromEncrypted: whether the backup is encrypted; from any other an item returns to its own device only.
  package func returns(toSameDevice: Bool, fromEncrypted: Bool) -> Bool {
    if self == .whenPasscodeSetThisDeviceOnly { return false }
    return toSameDevice || (leavesDevice && fromEncrypted)
  }
}
