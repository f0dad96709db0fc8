import FileSystem

/// The extended attributes that keep a path out of a backup.
package enum ExclusionAttributes {
  /// Apple's, as the systems set it since iOS 5.1. Linux has only names with `user.`; bare ones come from archives
  /// and from macOS.
  ///
  /// Whoever carries it is left out, whatever its value: a binary property list from Apple's systems, text from
  /// scripts (`com.apple.backupd`, `true`, nothing at all). It is taken off by removing it.
  package static let apple = "com.apple.metadata:com_apple_backup_excludeItem"
  /// Apple's for iOS 5.0.1: one byte, where 0 takes the flag off. Apps of that time set either.
  package static let oldApple = "com.apple.MobileBackup"
  /// Of freedesktop.org; only the value `false` keeps a path out.
  package static let robots = "user.xdg.robots.backup"

  private static let userPrefix = "user."

  /// Apple's flag as its systems write it, under the name that it has here: the binary property list of one text.
  package static let appleFlag: ExtendedAttribute = {
    // A property list file of ours has a dictionary at its top; this one is a single string of 17 bytes.
    let text = Array("com.apple.backupd".utf8)
    let value = Array("bplist00".utf8) + [0x5F, 0x10, UInt8(text.count)] + text
    let numbers = [1, 0, UInt8(value.count)].flatMap { [0, 0, 0, 0, 0, 0, 0, $0] as [UInt8] }
    #if canImport(Darwin)
      let name = apple
    #else
      let name = userPrefix + apple
    #endif
    return ExtendedAttribute(name: name, value: value + [8, 0, 0, 0, 0, 0, 0, 1, 1] + numbers)
  }()

  /// The rule that a path's attributes speak for, and the attribute.
  ///
  /// - Parameters:
  ///   - names: the names of all its attributes.
  ///   - value: reads the value of one; it is asked only for those whose value matters.
  package static func rule(
    among names: [String], value: (String) throws -> [UInt8]?
  ) rethrows -> (rule: Exclusion.Rule, attribute: String)? {
    if names.isEmpty { return nil }
    if let name = names.first(where: { bare($0) == apple[...] }) { return (.appleAttribute, name) }
    for name in names where bare(name) == oldApple[...] {
      if let value = try value(name), value.contains(where: { $0 != 0 }) { return (.appleAttribute, name) }
    }
    for name in names where name == robots {
      guard let value = try value(name) else { continue }
      let text = value.split { $0 <= 0x20 }
      if text.count == 1, text[0].elementsEqual("false".utf8) {
        return (.robotsAttribute, "\(robots) = false")
      }
    }
    return nil
  }

  /// Whether an attribute is one of Apple's, with or without the namespace of Linux.
  package static func isApple(_ name: String) -> Bool {
    bare(name) == apple[...] || bare(name) == oldApple[...]
  }

  private static func bare(_ name: String) -> Substring {
    name.hasPrefix(userPrefix) ? name.dropFirst(userPrefix.count) : name[...]
  }
}

extension FileMetadata {
  /// Whether one of Apple's flags keeps it out of backups, however it is spelled.
  package var hasAppleFlag: Bool { exclusionFlags.contains(.appleAttribute) }

  /// Sets Apple's flag, or takes it off in every spelling.
  package mutating func setAppleFlag(_ isSet: Bool) {
    if isSet == hasAppleFlag { return }
    attributes.removeAll { ExclusionAttributes.isApple($0.name) }
    if isSet {
      attributes.append(ExclusionAttributes.appleFlag)
      attributes.sort { $0.name < $1.name }
    }
  }

  /// The flags on a path itself that keep it out of backups, however they are spelled: part of what a path is.
  package var exclusionFlags: [Exclusion.Rule] {
    let attribute = ExclusionAttributes.rule(among: attributes.map(\.name)) { name in
      attributes.first { $0.name == name }?.value
    }
    return (attribute.map { [$0.rule] } ?? []) + (isNoDump ? [.noDump] : [])
  }
}
