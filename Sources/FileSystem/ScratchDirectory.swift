import AgeEncryption
import DrydockErrors
import Foundation

/// A private temporary directory, open to its user only. It is removed at the end of the value's scope; the directory of
/// a killed process is removed when the next one is created in the same place.
package struct ScratchDirectory: ~Copyable {
  package let directory: Directory
  private let base: Directory
  private let name: ContainerPath

  /// Creates a directory in `base`.
  ///
  /// - Parameter prefix: the start of its name. Every directory of this user with it counts as a scratch directory.
  package init(_ prefix: String, in base: Directory) throws {
    try Self.removeStale(prefix, in: base)
    while true {
      let random = try RandomBytes.make(16).map { String(format: "%02x", $0) }.joined()
      let name = try ContainerPath("\(prefix)\(ScratchOwner.current)-\(random)")
      try base.createDirectory(name)
      // Until it is locked, another process may take it for a stale one.
      do {
        let directory = try base.directory(name)
        guard try directory.tryLock(exclusive: true),
          try base.status(name)?.identity == directory.status().identity
        else { continue }
        (self.directory, self.base, self.name) = (directory, base, name)
        return
      } catch let error as DrydockError where error.code == .notFound {}
    }
  }

  /// Creates a directory with this name, which is not locked: whoever chose the name removes what is left of it.
  package init(named name: ContainerPath, in base: Directory) throws {
    try base.createDirectory(name)
    (directory, self.base, self.name) = (try base.directory(name), base, name)
  }

  /// Creates one in the system's directory for temporary files.
  package static func temporary() throws -> ScratchDirectory {
    try ScratchDirectory(temporaryPrefix, in: Directory(NSTemporaryDirectory()))
  }

  deinit { try? base.removeTree(name) }

  /// Removes what killed processes left in the system's directory for temporary files.
  package static func removeStaleTemporary() throws {
    try removeStale(temporaryPrefix, in: Directory(NSTemporaryDirectory()))
  }

  private static let temporaryPrefix = "drydock-scratch-"

  /// A scratch directory that is not locked belongs to a killed process, if it is of this machine: on a network file system,
  /// other machines may not see the lock.
  private static func removeStale(_ prefix: String, in base: Directory) throws {
    for bytes in try base.names(startingWith: prefix) {
      let name = ContainerPath(name: bytes)
      // Other users' files in the shared directory for temporary files are left unchanged.
      guard let status = try? base.status(name), status.type == .directory, status.user == geteuid(),
        ScratchOwner.current.mayRemove(name, prefix: prefix, modified: status.modified),
        let stale = try? base.directory(name), (try? stale.tryLock(exclusive: true)) == true
      else { continue }
      try? base.removeTree(name)
    }
  }
}

/// The machine and its boot session that a scratch directory was created in: a part of the directory's name.
struct ScratchOwner: CustomStringConvertible {
  var host, boot: String

  static let current = ScratchOwner(
    host: digest((machineID ?? "") + hostName()), boot: digest(bootID ?? ""))

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

  /// The age from which another machine's directory is stale: no command takes that long.
  static let foreignAge: Int64 = 30 * 24 * 3600 * 1_000_000_000

  var description: String { "\(host)-\(boot)" }

  /// Whether an unlocked directory may be removed: one of this machine always, any other only when it is old.
  func mayRemove(_ name: ContainerPath, prefix: String, modified: Int64) -> Bool {
    let parts = name.nameString.dropFirst(prefix.count).split(
      separator: "-", omittingEmptySubsequences: false)
    if parts.count == 3, parts[0] == host { return true }
    // The boot session identifies this machine even after it was renamed.
    if parts.count == 3, parts[1] == boot, boot != Self.digest("") { return true }
    return Int64(Date().timeIntervalSince1970 * 1e9) - modified > Self.foreignAge
  }

  private static func digest(_ text: String) -> String {
    ((try? SHA256.hash(Array(text.utf8)).hex) ?? "").prefix(8).description
  }

  private static func read(_ path: String) -> String? {
    guard let bytes = FileManager.default.contents(atPath: path) else { return nil }
    return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Without a network query, which Foundation would make.
  private static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
