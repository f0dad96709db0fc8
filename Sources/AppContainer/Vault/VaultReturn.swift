/// Between which two places a backup's items travel: what decides, item by item, which of them come back.
package struct VaultReturn: Sendable, Equatable {
  /// Whether the container is on the device that the backup was made on, and all of its vault can be read.
  package var toSameDevice: Bool
  /// Whether the backup is encrypted.
  package var fromEncrypted: Bool
  /// Whether synchronizable items come back: they would overwrite what the owner's other devices have.
  package var includesSynchronizable: Bool

  /// A way from its parts.
  package init(toSameDevice: Bool, fromEncrypted: Bool, includesSynchronizable: Bool = false) {
    (self.toSameDevice, self.fromEncrypted) = (toSameDevice, fromEncrypted)
    self.includesSynchronizable = includesSynchronizable
  }

  /// Why an item does not come back.
  package enum Refusal: String, Sendable, CaseIterable, CustomStringConvertible {
    /// No backup ever brings items of its class back.
    case never
    /// It is bound to the fingers and faces that were enrolled.
    case boundToBiometry
    /// Its class binds it to its device.
    case otherDevice
    /// Its access control binds it to its device.
    case accessControl
    /// From a backup that everybody can read, items return to their own device only.
    case notEncrypted
    /// It is synchronizable, and those were not asked for.
    case synchronizable

    /// In words, and what can be done about it.
    package var description: String {
      switch self {
      case .never: "accessible with a passcode on its device only: no backup brings it back"
      case .boundToBiometry: "bound to the fingers and faces of its device: no backup brings it back"
      case .otherDevice: "for its own device only, and this is another one, or its key is not at hand"
      case .accessControl: "under access control, which returns to its own device only"
      case .notEncrypted: "from an archive that is not encrypted it returns to its own device only"
      case .synchronizable:
        "synchronizable, and would overwrite other devices' items; --include-synchronizable brings it back"
      }
    }
  }

  /// Why an item of these traits does not come back; nil when it does.
  package func refusal(
    of accessibility: VaultAccessibility, _ accessControl: VaultAccessControl?, isSynchronizable: Bool
  ) -> Refusal? {
    if accessibility == .whenPasscodeSetThisDeviceOnly { return .never }
    if accessControl?.isBoundToBiometry ?? false { return .boundToBiometry }
    if !toSameDevice {
      if !accessibility.leavesDevice { return .otherDevice }
      if accessControl != nil { return .accessControl }
    }
    guard accessibility.returns(toSameDevice: toSameDevice, fromEncrypted: fromEncrypted) else {
      return .notEncrypted
    }
    return isSynchronizable && !includesSynchronizable ? .synchronizable : nil
  }

  /// Why an item does not come back; nil when it does.
  package func refusal(of item: VaultItem) -> Refusal? {
    refusal(of: item.accessibility, item.accessControl, isSynchronizable: item.isSynchronizable)
  }
}

extension VaultItem {
  /// Whether it may leave its device, in an encrypted backup.
  package var leavesDevice: Bool { accessibility.leavesDevice && accessControl == nil }
}
