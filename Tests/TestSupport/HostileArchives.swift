import Foundation

/// The committed hostile archives, and what each must be refused with.
public struct HostileArchive: Sendable, CustomStringConvertible {
  /// When something is noticed at the latest: the opening is part of every command, the structure of `verify` and of a
  /// restore, every byte only of `verify --data`.
  public enum Notice: String, Sendable { case never, open, structure, data }

  /// The file's name without `.tar.zst`.
  public let description: String
  /// The code of the error.
  public let code: String
  /// When it is noticed.
  public let noticed: Notice
  /// Whether a restore refuses it too. One that does not reads nothing of what is wrong.
  public let isRefusedByRestore: Bool

  /// The file.
  public var path: String { Self.directory + "/" + description + ".tar.zst" }

  /// Where they are.
  public static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("BackupRepositoryTests/HostileArchives").path

  /// All of `table.tsv`.
  public static func all() throws -> [HostileArchive] {
    let table = try String(contentsOfFile: directory + "/table.tsv", encoding: .utf8)
    return try table.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let fields = line.split(separator: "\t").map(String.init)
      guard fields.count == 4, let noticed = Notice(rawValue: fields[2]),
        ["refused", "fine"].contains(fields[3])
      else { throw SystemFailure("table.tsv: \(line)") }
      return HostileArchive(
        description: fields[0], code: fields[1], noticed: noticed, isRefusedByRestore: fields[3] == "refused")
    }
  }
}
