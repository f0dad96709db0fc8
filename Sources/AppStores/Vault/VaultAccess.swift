extension VaultItem {
  /// The keychain's accessibility classes: when a device can read a vault item, and whether a backup may restore it.
  public enum Accessibility: String, Sendable, Codable, CaseIterable {
    /// While the device is unlocked. The default.
    case whenUnlocked
    /// From the first unlock after a boot on.
    case afterFirstUnlock
    /// Always; deprecated by Apple.
    case always
    /// As ``whenUnlocked``, on this device only.
    case whenUnlockedThisDeviceOnly
    /// As ``afterFirstUnlock``, on this device only.
    case afterFirstUnlockThisDeviceOnly
    /// As ``always``, on this device only; deprecated by Apple.
    case alwaysThisDeviceOnly
    /// While the device is unlocked and has a passcode, on this device only; never restored.
    case whenPasscodeSetThisDeviceOnly

    /// The keychain's code, such as `ck`.
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
    public init?(_ text: String) {
      guard let found = Self(rawValue: text) ?? Self.allCases.first(where: { $0.code == text }) else {
        return nil
      }
      self = found
    }

    /// Whether an item of this class may leave its device.
    public var leavesDevice: Bool {
      switch self {
      case .whenUnlocked, .afterFirstUnlock, .always: true
      case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
        .whenPasscodeSetThisDeviceOnly:
        false
      }
    }
  }
}

extension VaultItem {
  /// The flags of the keychain's access control: the authentication required to read an item.
  public struct AccessControl: Sendable, Hashable {
    /// What a user must present, as the keychain names it.
    public enum Flag: String, Sendable, CaseIterable {
      case userPresence, biometryAny, biometryCurrentSet, devicePasscode, watch, companion, or, and
      case privateKeyUsage, applicationPassword
    }

    /// The names of the flags, sorted and unique. Unknown ones are preserved.
    public let flags: [String]

    /// An access control of these flags.
    public init(_ flags: some Sequence<Flag>) { self.init(names: flags.map(\.rawValue)) }

    init(names: some Sequence<String>) { flags = Set(names).sorted() }

    /// Whether it becomes invalid when another finger or face is enrolled: then the item is never restored. Unknown flags may be
    /// as strict, and are treated so.
    package var isBoundToBiometry: Bool {
      flags.contains { name in Flag(rawValue: name).map { $0 == .biometryCurrentSet } ?? true }
    }
  }
}

extension VaultItem.AccessControl: CustomStringConvertible {
  public var description: String { flags.joined(separator: ", ") }
}

package struct VaultReturn: Sendable, Equatable {
  /// Whether the backup was made on the container's device, and its whole vault is readable.
  package var toSameDevice: Bool
  package var fromEncrypted: Bool
  /// Whether synchronizable items are restored, which would overwrite those on the user's other devices.
  package var includesSynchronizable: Bool

  package init(toSameDevice: Bool, fromEncrypted: Bool, includesSynchronizable: Bool = false) {
    (self.toSameDevice, self.fromEncrypted) = (toSameDevice, fromEncrypted)
    self.includesSynchronizable = includesSynchronizable
  }

  package enum Refusal: String, Sendable, CaseIterable, CustomStringConvertible {
    /// Items of its class are never restored.
    case never
    /// It is bound to the enrolled fingers and faces.
    case boundToBiometry
    case otherDevice
    case accessControl
    /// A plain backup restores items to their own device only.
    case notEncrypted
    /// Synchronizable items were not requested.
    case synchronizable

    package var description: String {
      switch self {
      case .never: "accessible with a passcode on its device only: no backup restores it"
      case .boundToBiometry: "bound to the enrolled biometry of its device: no backup restores it"
      case .otherDevice: "for its own device only, and this is another device, or its key is missing"
      case .accessControl: "under access control, restored to its own device only"
      case .notEncrypted: "from a plain archive, restored to its own device only"
      case .synchronizable:
        "synchronizable, and would overwrite other devices' items"
      }
    }
  }

  /// Why an item with these properties is not restored; nil when it is.
  package func refusal(
    of accessibility: VaultItem.Accessibility, _ accessControl: VaultItem.AccessControl?,
    isSynchronizable: Bool
  ) -> Refusal? {
    if accessibility == .whenPasscodeSetThisDeviceOnly { return .never }
    if accessControl?.isBoundToBiometry ?? false { return .boundToBiometry }
    if !toSameDevice {
      if !accessibility.leavesDevice { return .otherDevice }
      if accessControl != nil { return .accessControl }
    }
    // A plain backup restores items to their own device only.
    guard toSameDevice || fromEncrypted else { return .notEncrypted }
    return isSynchronizable && !includesSynchronizable ? .synchronizable : nil
  }

  /// Why an item is not restored; nil when it is.
  package func refusal(of item: VaultItem) -> Refusal? {
    refusal(of: item.accessibility, item.accessControl, isSynchronizable: item.isSynchronizable)
  }
}

extension VaultItem {
  /// Whether it may leave its device in an encrypted backup.
  public var leavesDevice: Bool { accessibility.leavesDevice && accessControl == nil }
}
