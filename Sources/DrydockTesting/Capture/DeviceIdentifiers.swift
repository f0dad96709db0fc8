import AppContainer
import Foundation

/// The identifiers of devices and containers: the UUIDs of containers, in Apple's metadata and in paths, and the values of
/// keys such as `identifierForVendor`.
enum DeviceIdentifiers {
  /// In lower case, without signs.
  private static let keys: Set<String> = [
    "mcmmetadatauuid", "personauniquestring", "udid", "uniquedeviceidentifier", "deviceid", "deviceuuid",
    "deviceidentifier", "identifierforvendor", "vendoridentifier", "idfv", "advertisingidentifier", "idfa",
    "androidid",
  ]

  /// Whether a key holds an identifier, if its value has the form of one.
  static func isKey(_ key: String) -> Bool {
    key.utf8.count <= 40 && keys.contains(key.lowercased().filter(\.isLetter))
  }

  /// Whether a text may be one: a UUID with or without dashes, or a long hexadecimal number, as older devices have.
  static func isIdentifier(_ text: String) -> Bool {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
    return (16...64).contains(digits.count)
      && digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
  }

  /// The UUID in a text with its dashes, in capitals; nil for anything else.
  static func uuid(_ text: some StringProtocol) -> String? {
    var digits = String(text).filter { $0 != "-" }
    guard digits.utf8.count == 32, digits.count == 32 else { return nil }
    for offset in [20, 16, 12, 8] {
      digits.insert("-", at: digits.index(digits.startIndex, offsetBy: offset))
    }
    return UUID(uuidString: digits)?.uuidString
  }

  static func uuid(bytes: [UInt8]) -> String? {
    bytes.count == 16 ? uuid(bytes.map { String(format: "%02X", $0) }.joined()) : nil
  }

  /// The 16 bytes of a UUID; nil for anything else.
  static func bytes(_ uuid: String) -> [UInt8]? {
    UUID(uuidString: uuid).map { withUnsafeBytes(of: $0.uuid) { Array($0) } }
  }

  /// The UUIDs of containers and simulated devices in the paths in a text.
  static func inPaths(_ text: String) -> [String] {
    let bytes = text.utf8
    guard bytes.count > 48,
      bytes.contains("/Containers/".utf8) || bytes.contains("/CoreSimulator/".utf8)
    else { return [] }
    let path =
      #/\/(?:Application|AppGroup|PluginKitPlugin|VPNPlugin|SystemGroup|InternalDaemon|Devices)\/([0-9A-Fa-f\-]{36})/#
    return text.matches(of: path).compactMap { uuid($0.1) }
  }

  /// The UUIDs that a container's directories are named by.
  static func of(_ container: Container) -> [String] {
    let roots = [container.root] + container.groups.map(\.root)
    return roots.flatMap { $0.split(separator: "/").compactMap { $0.utf8.count == 36 ? uuid($0) : nil } }
  }
}
