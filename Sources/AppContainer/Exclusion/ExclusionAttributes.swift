import AppStores
import DrydockErrors
import FileSystem

// The extended attributes that exclude a path.
extension Exclusion {
  /// Apple's attribute since iOS 5.1. On Linux the name has the prefix `user.`; without it, it comes from archives and macOS.
  ///
  /// Any value excludes the path: Apple's systems write a binary property list, scripts write `com.apple.backupd`, `true` or
  /// nothing.
  package static let appleAttribute = "com.apple.metadata:com_apple_backup_excludeItem"
  /// Apple's attribute for iOS 5.0.1: one byte, which excludes the path unless it is 0.
  package static let oldAppleAttribute = "com.apple.MobileBackup"
  /// The attribute of freedesktop.org; only the value `false` excludes the path.
  package static let robotsAttribute = "user.xdg.robots.backup"

  private static let userPrefix = "user."

  /// Apple's attribute as its systems write it, with this system's name: a binary property list of one string.
  package static let appleFlag: ExtendedAttribute = {
    let text = Array("com.apple.backupd".utf8)
    let value = Array("bplist00".utf8) + [0x5F, 0x10, UInt8(text.count)] + text
    let numbers = [1, 0, UInt8(value.count)].flatMap { [0, 0, 0, 0, 0, 0, 0, $0] as [UInt8] }
    #if canImport(Darwin)
      let name = appleAttribute
    #else
      let name = userPrefix + appleAttribute
    #endif
    return ExtendedAttribute(name: name, value: value + [8, 0, 0, 0, 0, 0, 0, 1, 1] + numbers)
  }()

  /// The rule that applies to a path's attributes, and the attribute.
  ///
  /// - Parameter value: reads the value of an attribute, where it matters.
  package static func rule(
    among names: [String], value: (String) throws -> [UInt8]?
  ) rethrows -> (rule: Rule, attribute: String)? {
    if names.isEmpty { return nil }
    if let name = names.first(where: { bare($0) == appleAttribute[...] }) { return (.appleAttribute, name) }
    for name in names where bare(name) == oldAppleAttribute[...] {
      if let value = try value(name), value.contains(where: { $0 != 0 }) { return (.appleAttribute, name) }
    }
    for name in names where name == robotsAttribute {
      guard let value = try value(name) else { continue }
      let text = value.split { $0 <= 0x20 }
      if text.count == 1, text[0].elementsEqual("false".utf8) {
        return (.robotsAttribute, "\(robotsAttribute) = false")
      }
    }
    return nil
  }

  /// Whether an attribute is one of Apple's, with or without the prefix of Linux.
  package static func isApple(_ name: String) -> Bool {
    [appleAttribute[...], oldAppleAttribute[...]].contains(bare(name))
  }

  private static func bare(_ name: String) -> Substring {
    name.hasPrefix(userPrefix) ? name.dropFirst(userPrefix.count) : name[...]
  }
}

extension FileMetadata {
  /// Whether one of Apple's attributes excludes the path from backups.
  package var hasAppleFlag: Bool { exclusionFlags.contains(.appleAttribute) }

  /// Sets Apple's attribute, or removes all its forms.
  package mutating func setAppleFlag(_ isSet: Bool) {
    if isSet == hasAppleFlag { return }
    attributes.removeAll { Exclusion.isApple($0.name) }
    if isSet {
      attributes.append(Exclusion.appleFlag)
      attributes.sort { $0.name < $1.name }
    }
  }

  /// The flags of a path that exclude it from backups.
  package var exclusionFlags: [Exclusion.Rule] {
    let attribute = Exclusion.rule(among: attributes.map(\.name)) { name in
      attributes.first { $0.name == name }?.value
    }
    return (attribute.map { [$0.rule] } ?? []) + (isNoDump ? [.noDump] : [])
  }
}

// The tag of a cache directory (<https://bford.info/cachedir/>).
extension Exclusion {
  package static let cacheTag: ContainerPath = "CACHEDIR.TAG"
  private static let signature = Array("Signature: 8a477f597d28d172789f06886806bc55".utf8)

  /// Whether a file is a tag: a regular file that starts with the signature.
  static func isCacheTag(_ status: FileStatus, _ name: ContainerPath, in directory: Directory) throws -> Bool
  {
    guard status.type == .file, status.size >= signature.count else { return false }
    do {
      return try directory.prefix(of: name, signature.count) == signature
    } catch let error as DrydockError where error.code != .permission && error.code != .io {
      // It was removed, or replaced with a link.
      return false
    }
  }
}

/// A class of Apple's data protection: when a device can decrypt a file.
///
/// Apple's kernels store a file's class. Elsewhere it is recorded as an extended attribute, also in archives, for writing
/// the data to a device.
package enum ProtectionClass: String, Sendable, Codable, CaseIterable {
  /// While the device is unlocked (class 1, `NSFileProtectionComplete`).
  case complete
  /// As `complete`, and for as long as a file stays open (2).
  case completeUnlessOpen
  /// From the first unlock after a boot on: the default (3).
  case completeUntilFirstUserAuthentication
  /// Always (4).
  case none
  /// While the user is active, and shortly after (7).
  case completeWhenUserInactive

  /// The attribute's name. Its value is Apple's name of the class, such as `NSFileProtectionComplete`.
  package static let attribute = "user.drydock.protection-class"

  /// The class of an attribute's value; nil for none or an unknown one.
  package init?(recorded value: [UInt8]?) {
    guard let found = Self.allCases.first(where: { value.map($0.appleName.utf8.elementsEqual) ?? false })
    else { return nil }
    self = found
  }

  package var appleName: String {
    "NSFileProtection" + rawValue.prefix(1).uppercased() + rawValue.dropFirst()
  }
}

extension FileMetadata {
  /// The recorded class of a path; nil for none or an unknown one.
  package var protection: ProtectionClass? {
    get {
      ProtectionClass(recorded: attributes.first { $0.name == ProtectionClass.attribute }?.value)
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
