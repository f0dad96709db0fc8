import FileSystem
import SystemPackage

/// Which files this process has open itself, as a library in an app: closing a raw descriptor of one would drop the
/// locks that the app's SQLite has on it.
enum OpenHere {
  /// An open descriptor of a file that is not Drydock's own, to be read from and never closed.
  static func descriptor(of identity: FileIdentity, besides own: FileDescriptor? = nil) throws
    -> FileDescriptor?
  {
    for bytes in try Directory("/dev/fd").names() {
      guard let number = Int32(String(decoding: bytes, as: UTF8.self)), number != own?.rawValue else {
        continue
      }
      let descriptor = FileDescriptor(rawValue: number)
      // One that was closed meanwhile is nobody's, and of a file that cannot be asked SQLite has no locks.
      guard let status = try? FileStatus(of: descriptor, path: "/dev/fd"), status.identity == identity,
        !isLockOfDrydock(number)
      else { continue }
      return descriptor
    }
    return nil
  }

  /// Whether this process has another descriptor of a file.
  static func isUsed(_ file: FileDescriptor) throws -> Bool {
    try descriptor(of: FileStatus(of: file, path: "/dev/fd").identity, besides: file) != nil
  }

  /// The first bytes of a file that this process has open, read through its descriptor; nil for other files.
  static func prefix(of status: FileStatus, _ count: Int) throws -> [UInt8]? {
    guard let descriptor = try descriptor(of: status.identity) else { return nil }
    var bytes = [UInt8](repeating: 0, count: count)
    let read = try? bytes.withUnsafeMutableBytes { try descriptor.read(fromAbsoluteOffset: 0, into: $0) }
    // Its owner may have closed it meanwhile.
    let after = try? FileStatus(of: descriptor, path: "/dev/fd").identity
    guard let read, after == status.identity else { return nil }
    return Array(bytes.prefix(read))
  }

  /// Open-file-description locks are what Drydock locks with, and SQLite does not.
  private static func isLockOfDrydock(_ number: Int32) -> Bool {
    guard
      let info = try? FileDescriptor.open("/proc/self/fdinfo/\(number)", .readOnly, options: .closeOnExec)
    else { return false }
    defer { try? info.close() }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = (try? bytes.withUnsafeMutableBytes { try info.read(into: $0) }) ?? 0
    return String(decoding: bytes.prefix(count), as: UTF8.self).contains("OFDLCK")
  }
}
