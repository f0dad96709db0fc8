/// File names of archives: `<app>_<instance>_<UTC>_<first 8 hex of the id>.tar.zst`.
public enum ArchiveName {
  /// The ending of an archive that is not encrypted.
  public static let suffix = ".tar.zst"

  /// The name of an archive.
  ///
  /// - Parameter time: `20261120T101500Z`.
  static func of(app: String, instance: String, time: String, id: ArchiveID) -> String {
    // 255 bytes are the limit of a name: 37 are the fixed part, the rest is shared.
    [plain(app, 100), plain(instance, 100), time, id.short].joined(separator: "_") + suffix
  }

  /// What may stand in a name: letters, digits, `.` and `-`; everything else, the separator too, becomes `-`.
  static func plain(_ text: String, _ limit: Int = 100) -> String {
    let plain = text.prefix(limit).map { character in
      character.isASCII && (character.isLetter || character.isNumber || ".-".contains(character))
        ? character : "-"
    }
    let trimmed = String(plain).drop { $0 == "." || $0 == "-" }
    return trimmed.isEmpty ? "container" : String(trimmed)
  }
}
