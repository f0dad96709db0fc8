import Foundation

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
    let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
    return name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "unknown"
  }
}
