import AgeEncryption
import DrydockErrors
import Foundation

/// Private directories for work that is thrown away or moved to its place: open to their owner only, and removed
/// even when their process is killed, by whoever makes the next one in the same place.
package enum ScratchDirectory {
  /// Runs a body with a new directory, which is removed afterwards.
  ///
  /// - Parameters:
  ///   - prefix: what the name starts with: everything of this user with it counts as a scratch directory.
  ///   - base: where it is made.
  /// - Throws: ``DrydockError`` when it cannot be made, and what the body throws.
  package static func with<T>(
    _ prefix: String, in base: Directory, _ body: (Directory) throws -> T
  ) throws -> T {
    try removeStale(prefix, in: base)
    while true {
      let random = try RandomBytes.make(16).map { String(format: "%02x", $0) }.joined()
      let name = try ContainerPath("\(prefix)\(ScratchOwner.current)-\(random)")
      try base.createDirectory(name)
      // Until it is locked, another run takes it for one that a killed run left.
      let scratch: Directory
      do { scratch = try base.directory(name) } catch let error as DrydockError
        where error.code == .notFound
      {
        continue
      }
      guard try scratch.tryLock(exclusive: true),
        try base.status(name)?.identity == scratch.status().identity
      else { continue }
      defer { try? base.removeTree(name) }
      return try body(scratch)
    }
  }

  /// As ``with(_:in:_:)``, in the system's directory for temporary files.
  package static func withTemporary<T>(_ body: (Directory) throws -> T) throws -> T {
    try with(temporaryPrefix, in: Directory(NSTemporaryDirectory()), body)
  }

  /// Removes what killed runs left in the system's directory for temporary files.
  package static func removeStaleTemporary() throws {
    try removeStale(temporaryPrefix, in: Directory(NSTemporaryDirectory()))
  }

  private static let temporaryPrefix = "drydock-scratch-"

  /// A scratch directory whose lock can be had belongs to a run that was killed, where the lock says something: on a network
  /// file system a lock may be known to the machine alone that holds it.
  private static func removeStale(_ prefix: String, in base: Directory) throws {
    for bytes in try base.names(startingWith: prefix) {
      let name = ContainerPath(name: bytes)
      // The directory for temporary files is everybody's: what another user has put there is left alone.
      guard let status = try? base.status(name), status.type == .directory, status.user == geteuid(),
        ScratchOwner.current.mayRemove(name, prefix: prefix, modified: status.modified),
        let stale = try? base.directory(name), (try? stale.tryLock(exclusive: true)) == true
      else { continue }
      try? base.removeTree(name)
    }
  }
}

/// The machine that a scratch directory was made on, and the run of that machine since its start: a part of its name.
struct ScratchOwner: CustomStringConvertible {
  /// Hexadecimal digits, or nothing where the system does not say.
  var host, boot: String

  /// This machine, now.
  static let current = ScratchOwner(
    host: digest((read("/etc/machine-id") ?? "") + hostName()),
    boot: digest(read("/proc/sys/kernel/random/boot_id") ?? ""))

  /// How long another machine's is left alone: no command takes that long.
  static let foreignAge: Int64 = 30 * 24 * 3600 * 1_000_000_000

  var description: String { "\(host)-\(boot)" }

  /// Whether a directory may be removed when its lock can be had: one of this machine; another machine's, and one of which
  /// that is not known, only when it is old.
  func mayRemove(_ name: ContainerPath, prefix: String, modified: Int64) -> Bool {
    let parts = name.nameString.dropFirst(prefix.count).split(
      separator: "-", omittingEmptySubsequences: false)
    if parts.count == 3, parts[0] == host { return true }
    // Each start of a machine has an id of its own, also when the machine is called otherwise meanwhile.
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

  /// Without asking the network, as Foundation does.
  private static func hostName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
