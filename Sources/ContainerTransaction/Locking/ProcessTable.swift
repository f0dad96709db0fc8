import FileSystem
import Foundation
import SystemPackage

/// The processes of this machine as `/proc` shows them; empty where there is no such thing.
///
/// macOS has libproc instead; it is not used yet, so that there a container in use is noticed by SQLite's
/// locks only (untested).
enum ProcessTable {
  /// This process, by the number that it has in `/proc`: mounted in an outer PID namespace, that is another one than
  /// `getpid()`.
  static let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self"))
    .flatMap { Int32($0) }

  static func identifiers() -> [Int32] { numbers(in: "/proc") ?? [] }

  /// The threads of a process, among them the first one, which has the process's number.
  static func threads(of process: Int32) -> [Int32] {
    // Counted as sub-directories, which is much cheaper than to list them.
    let path = "/proc/\(process)/task"
    return FollowedStatus.links(path) == 3 ? [process] : numbers(in: path) ?? []
  }

  private static func numbers(in path: String) -> [Int32]? {
    try? Directory(path).names().compactMap { Int32(String(decoding: $0, as: UTF8.self)) }
  }

  static func name(of process: Int32) -> String {
    let name = contents("/proc/\(process)/comm").map { String(decoding: $0, as: UTF8.self) }
    return name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown"
  }

  /// What a process can have open.
  enum Kind {
    case program
    /// A thread of the kernel: nothing.
    case kernel
    /// A process whose first thread has ended: what its other threads have open.
    case zombie
  }

  /// Whether a failed read means that this user may not look into a process, rather than that it has ended.
  static func isRefusal(_ error: any Error) -> Bool {
    [.permissionDenied, .notPermitted].contains(error as? Errno)
  }

  /// Nil for a process that has ended.
  static func kind(of process: Int32) -> Kind? {
    let bytes: [UInt8]
    do { bytes = try self.bytes(of: "/proc/\(process)/stat") } catch {
      return isRefusal(error) ? .program : nil
    }
    // The name in parentheses can have anything in it; behind it are the state and, six fields on, the flags.
    let fields =
      String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
    let kernelThread = 0x0020_0000
    guard fields.count > 6, let flags = Int(fields[6]) else { return .program }
    if flags & kernelThread != 0 { return .kernel }
    return fields[0] == "Z" || fields[0] == "X" ? .zombie : .program
  }

  /// The value of a line of `/proc/self/status`.
  static func status(_ name: String) -> String? {
    guard let bytes = contents("/proc/self/status") else { return nil }
    let line = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first {
      $0.hasPrefix(name + ":")
    }
    return line.map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
  }

  /// A file of `/proc` to its end. The kernel gives such a file in pieces and says that it is empty, and Foundation
  /// stops after the first piece.
  static func contents(_ path: String) -> [UInt8]? { try? bytes(of: path) }

  /// - Throws: `Errno` when it cannot be opened.
  static func bytes(of path: String) throws -> [UInt8] {
    let file = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
    defer { try? file.close() }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while let count = try? buffer.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
      bytes.append(contentsOf: buffer[..<count])
    }
    return bytes
  }
}
