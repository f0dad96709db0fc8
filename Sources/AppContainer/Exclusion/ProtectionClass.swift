import FileSystem

/// A class of Apple's data protection: when a device can decrypt a file.
///
/// On Apple's systems the kernel keeps a file's class. Elsewhere there is no such thing, and the class is written down as
/// an extended attribute, which archives carry: for whoever puts the data onto a device.
package enum ProtectionClass: String, Sendable, Codable, CaseIterable {
  /// While the device is unlocked (class 1, `NSFileProtectionComplete`).
  case complete
  /// As `complete`, and for as long as a file stays open (2).
  case completeUnlessOpen
  /// From the first unlock after a start on: what files have that say nothing (3).
  case completeUntilFirstUserAuthentication
  /// Always (4).
  case none
  /// While the user uses the device, and shortly after (7).
  case completeWhenUserInactive

  /// The attribute's name. Its value is Apple's name of the class, such as `NSFileProtectionComplete`.
  package static let attribute = "user.drydock.protection-class"

  /// Apple's name.
  package var appleName: String {
    "NSFileProtection" + rawValue.prefix(1).uppercased() + rawValue.dropFirst()
  }
}

extension FileMetadata {
  /// The class that is written down for a path; nil when there is none, or an unknown one.
  package var protection: ProtectionClass? {
    get {
      let value = attributes.first { $0.name == ProtectionClass.attribute }?.value
      return ProtectionClass.allCases.first { value.map($0.appleName.utf8.elementsEqual) ?? false }
    }
    set {
      if newValue == protection { return }
      attributes.removeAll { $0.name == ProtectionClass.attribute }
      guard let newValue else { return }
      attributes.append(
        ExtendedAttribute(name: ProtectionClass.attribute, value: Array(newValue.appleName.utf8)))
      attributes.sort { $0.name < $1.name }
    }
  }
}
