import Cryptography
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
      let random = try RandomBytes.make(16).hex
      let name = try ContainerPath("\(prefix)\(MachineIdentity.current)-\(random)")
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
        MachineIdentity.current.mayRemove(name, prefix: prefix, modified: status.modified),
        let stale = try? base.directory(name), (try? stale.tryLock(exclusive: true)) == true
      else { continue }
      try? base.removeTree(name)
    }
  }
}

extension MachineIdentity {
  /// The age from which another machine's directory is stale: no command takes that long.
  static let foreignAge: Int64 = 30 * 24 * 3600 * 1_000_000_000

  /// Whether an unlocked directory may be removed: one of this machine always, any other only when it is old.
  func mayRemove(_ name: ContainerPath, prefix: String, modified: Int64) -> Bool {
    let parts = name.nameString.dropFirst(prefix.count).split(
      separator: "-", omittingEmptySubsequences: false)
    if parts.count == 3, parts[0] == host { return true }
    // The boot session identifies this machine even after it was renamed.
    if parts.count == 3, parts[1] == boot, hasBoot { return true }
    return Int64(Date().timeIntervalSince1970 * 1e9) - modified > Self.foreignAge
  }
}
