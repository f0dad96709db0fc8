/// File names of archives: `<app>_<instance>_<UTC, 20261120T101500Z>_<first 8 hex of the id>.tar.zst`.
///
/// They are for people and for listings by other programs. What an archive is, its header says: it may be renamed.
public enum ArchiveName {
  /// The ending of an archive that is not encrypted.
  public static let suffix = ".tar.zst"
  /// The ending of an encrypted one.
  static let encryptedSuffix = suffix + ".age"

  /// Whether a file is named like an archive. Hidden ones are not: other programs name so what they are still copying.
  static func isArchive(_ name: [UInt8]) -> Bool {
    !name.starts(with: ".".utf8)
      && [suffix, encryptedSuffix].contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
  }

  /// The name of an archive, and what it is named when there is one of that name: with more of the id.
  ///
  /// - Parameter time: `20261120T101500Z`.
  static func candidates(app: String, instance: String, time: String, id: ArchiveID) -> [String] {
    [8, 16, 32].map { digits in
      // 255 bytes are the limit of a name: the fixed part has 60 at most, the rest is shared.
      [plain(app, 95), plain(instance, 95), time, String(id.description.prefix(digits))].joined(
        separator: "_")
        + suffix
    }
  }

  /// What may stand in a name: letters, digits, `.` and `-`; everything else, the separator too, becomes `-`.
  static func plain(_ text: String, _ limit: Int) -> String {
    let plain = text.prefix(limit).map { character in
      character.isASCII && (character.isLetter || character.isNumber || ".-".contains(character))
        ? character : "-"
    }
    let trimmed = String(plain).drop { $0 == "." || $0 == "-" }
    return trimmed.isEmpty ? "container" : String(trimmed)
  }
}
