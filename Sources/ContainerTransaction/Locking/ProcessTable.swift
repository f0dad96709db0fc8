import Foundation
import SystemPackage

/// The processes of this machine as `/proc` shows them; empty where there is no such thing.
///
/// macOS has libproc instead; it is not used yet, so that there a container in use is noticed by SQLite's
/// locks only (untested).
enum ProcessTable {
  static func identifiers() -> [Int32] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { Int32($0) }.sorted()
  }

  static func name(of process: Int32) -> String {
    let name = contents("/proc/\(process)/comm").map { String(decoding: $0, as: UTF8.self) }
    return name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown"
  }

  /// A file of `/proc` to its end. The kernel gives such a file in pieces and says that it is empty, and Foundation
  /// stops after the first piece.
  static func contents(_ path: String) -> [UInt8]? {
    guard let file = try? FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec) else {
      return nil
    }
    defer { try? file.close() }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while let count = try? buffer.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
      bytes.append(contentsOf: buffer[..<count])
    }
    return bytes
  }
}
