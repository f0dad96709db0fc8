import Cryptography
import Foundation

/// The machine and its boot session: a part of the names of scratch directories, and of the locks of remote repositories.
package struct MachineIdentity: Sendable, CustomStringConvertible {
  /// Digests of 8 digits.
  var host: String, boot: String

  static let current = MachineIdentity(
    host: digest((machineID ?? "") + hostName()), boot: digest(bootID ?? ""))

  package var description: String { "\(host)-\(boot)" }

  /// The boot session of this machine; nil when it is not known. A power cut can leave content that is newer than its file's
  /// times, which are written later: what a status proves, it proves until the end of the session.
  package static let session = current.hasBoot ? current.description : nil

  /// Whether the boot session is known.
  var hasBoot: Bool { boot != Self.digest("") }

  /// Where the number of this process means something: its boot session and process namespace. Without both it is a random
  /// text, so that nobody is known to be dead.
  package static let processes: String = {
    #if os(Linux)
      guard let boot = bootID,
        let namespace = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/ns/pid"),
        let digest = try? SHA256.hash(Array((boot + namespace).utf8))
      else { return UUID().uuidString }
      // As long as the other.
      return String(digest.hex.prefix(36))
    #else
      // macOS: untested.
      return UUID().uuidString
    #endif
  }()

  #if os(Linux)
    private static var machineID: String? { read("/etc/machine-id") }
    private static var bootID: String? { read("/proc/sys/kernel/random/boot_id") }
  #else
    // macOS: untested.
    private static var machineID: String? { kernelText("kern.uuid") }
    private static var bootID: String? { kernelText("kern.bootsessionuuid") }

    private static func kernelText(_ name: String) -> String? {
      var text = [UInt8](repeating: 0, count: 256)
      var count = text.count
      guard sysctlbyname(name, &text, &count, nil, 0) == 0 else { return nil }
      return String(decoding: text[..<count].prefix { $0 != 0 }, as: UTF8.self)
    }
  #endif

  private static func digest(_ text: String) -> String {
    ((try? SHA256.hash(Array(text.utf8)).hex) ?? "").prefix(8).description
  }

  private static func read(_ path: String) -> String? {
    guard let bytes = FileManager.default.contents(atPath: path) else { return nil }
    return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Without a network query, which Foundation would make.
  package static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
