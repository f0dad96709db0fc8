import AppContainer

/// Apple's flag for what a backup leaves out.
enum BackupExclusion {
  /// The attribute as Apple's systems write it: the binary property list of one text.
  static func attribute() -> ExtendedAttribute {
    // A property list file of ours has a dictionary at its top; this one is a single string of 17 bytes.
    let text = Array("com.apple.backupd".utf8)
    let value = Array("bplist00".utf8) + [0x5f, 0x10, UInt8(text.count)] + text
    let trailer: [UInt8] =
      [8] + [0, 0, 0, 0, 0, 0, 1, 1] + number(1) + number(0) + number(UInt8(value.count))
    return ExtendedAttribute(name: name, value: value + trailer)
  }

  /// Whether a path carries the flag itself.
  static func isSet(on path: ContainerPath, in root: Directory) throws -> Bool {
    try root.attribute(name, of: path) != nil
  }

  private static var name: String {
    #if canImport(Darwin)
      "com.apple.metadata:com_apple_backup_excludeItem"
    #else
      "user.com.apple.metadata:com_apple_backup_excludeItem"
    #endif
  }

  private static func number(_ value: UInt8) -> [UInt8] { [0, 0, 0, 0, 0, 0, 0, value] }
}
