import AppContainer
import Foundation

/// The identifiers of devices and containers: the UUIDs of containers, in Apple's metadata and in paths, and what apps
/// call a device's identifier.
enum DeviceIdentifiers {
  /// Keys that hold one, in small letters and without signs.
  private static let keys: Set<String> = [
    "mcmmetadatauuid", "personauniquestring", "udid", "uniquedeviceidentifier", "deviceid", "deviceuuid",
    "deviceidentifier", "identifierforvendor", "vendoridentifier", "idfv", "advertisingidentifier", "idfa",
    "androidid",
  ]

  /// Whether a key holds an identifier, if its value looks like one.
  static func isKey(_ key: String) -> Bool {
    guard key.utf8.count <= 40 else { return false }
    return keys.contains(key.lowercased().filter { $0.isLetter })
  }

  /// Whether a text may be one: a UUID with or without dashes, or a long hexadecimal number, as older devices have.
  static func isIdentifier(_ text: String) -> Bool {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
    return (16...64).contains(digits.count) && digits.allSatisfy(isDigit)
  }

  /// The UUID of a text with its dashes, in its own case; nil for anything else.
  static func uuid(_ text: some StringProtocol) -> String? {
    let digits = Array(text.utf8.filter { $0 != UInt8(ascii: "-") })
    guard digits.count == 32, text.utf8.count == 32 || text.utf8.count == 36, digits.allSatisfy(isDigit)
    else {
      return nil
    }
    let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32]
    return parts.map { String(decoding: digits[$0], as: UTF8.self) }.joined(separator: "-")
  }

  /// The 16 bytes of a UUID; nil for anything else.
  static func bytes(_ uuid: String) -> [UInt8]? {
    guard let value = UUID(uuidString: uuid) else { return nil }
    return withUnsafeBytes(of: value.uuid) { Array($0) }
  }

  static func uuid(bytes: [UInt8]) -> String? {
    guard bytes.count == 16 else { return nil }
    return uuid(bytes.map { String(format: "%02X", $0) }.joined())
  }

  // MARK: Paths

  /// The directories that have a container of each app, or the data of each simulated device.
  private static let parents: Set<Substring> = [
    "Application", "AppGroup", "PluginKitPlugin", "VPNPlugin", "SystemGroup", "InternalDaemon", "Devices",
  ]

  /// The UUIDs of containers and devices in the paths that a text has.
  static func inPaths(_ text: String) -> Set<String> {
    guard text.utf8.count > 48, holdsPath(Array(text.utf8)) else { return [] }
    let names = text.split(separator: "/")
    return Set(
      zip(names, names.dropFirst()).compactMap { parent, name in
        parents.contains(parent) && name.utf8.count >= 36 ? uuid(name.prefix(36)) : nil
      })
  }

  private static let markers = ["/Containers/", "/CoreSimulator/"].map { Array($0.utf8) }

  /// Whether bytes may have such a path: most have none.
  static func holdsPath(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBufferPointer { bytes in
      for index in bytes.indices.dropLast(12) where bytes[index] == 0x2F && bytes[index + 1] == 0x43 {
        if markers.contains(where: { bytes[index...].starts(with: $0) }) { return true }
      }
      return false
    }
  }

  /// The UUIDs that a container's directories are named by.
  static func of(_ container: Container) -> Set<String> {
    let roots = [container.root] + container.groups.map(\.root)
    return Set(roots.flatMap { $0.split(separator: "/").compactMap { $0.utf8.count == 36 ? uuid($0) : nil } })
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
  }
}
