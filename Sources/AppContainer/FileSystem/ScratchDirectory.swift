import AgeEncryption
import Foundation

/// Private directories for work that is thrown away or moved to its place: open to their owner only, and removed
/// even when their process is killed, by whoever makes the next one in the same place.
public enum ScratchDirectory {
  /// Runs a body with a new directory, which is removed afterwards.
  ///
  /// - Parameters:
  ///   - prefix: what the name starts with: everything of this user with it counts as a scratch directory.
  ///   - base: where it is made.
  /// - Throws: ``ContainerError`` when it cannot be made, and what the body throws.
  public static func with<T>(
    _ prefix: String, in base: Directory, _ body: (Directory) throws -> T
  ) throws -> T {
    try removeStale(prefix, in: base)
    while true {
      let random = try RandomBytes.make(16).map { String(format: "%02x", $0) }.joined()
      let name = try ContainerPath(prefix + random)
      try base.createDirectory(name)
      // Until it is locked, another run takes it for one that a killed run left.
      guard let scratch = try? base.directory(name), try scratch.tryLock(exclusive: true),
        try base.status(name)?.identity == scratch.status().identity
      else { continue }
      defer { try? base.removeTree(name) }
      return try body(scratch)
    }
  }

  /// As ``with(_:in:_:)``, in the system's directory for temporary files.
  public static func withTemporary<T>(_ body: (Directory) throws -> T) throws -> T {
    try with(temporaryPrefix, in: Directory(NSTemporaryDirectory()), body)
  }

  /// Removes what killed runs left in the system's directory for temporary files.
  public static func removeStaleTemporary() throws {
    try removeStale(temporaryPrefix, in: Directory(NSTemporaryDirectory()))
  }

  private static let temporaryPrefix = "drydock-scratch-"

  /// A scratch directory whose lock can be had belongs to a run that was killed.
  private static func removeStale(_ prefix: String, in base: Directory) throws {
    for bytes in try base.names(startingWith: prefix) {
      let name = ContainerPath(name: bytes)
      // The directory for temporary files is everybody's: what another user has put there is left alone.
      guard let status = try? base.status(name), status.type == .directory, status.user == geteuid(),
        let stale = try? base.directory(name), (try? stale.tryLock(exclusive: true)) == true
      else { continue }
      try? base.removeTree(name)
    }
  }
}
