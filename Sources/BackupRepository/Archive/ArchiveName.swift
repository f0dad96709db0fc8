/// File names of archives: `<app>_<instance>_<UTC, 20261120T101500Z>_<first 8 hex of the id>.tar.zst`, and `.age` behind
/// it when the archive is encrypted.
///
/// They are for people and for listings by other programs. What an archive is, its header says: it may be renamed. Of
/// an encrypted one without a key, the name is all that tells.
package enum ArchiveName {
  /// The ending of an archive that is not encrypted.
  package static let suffix = ".tar.zst"
  /// What an encrypted one has behind it.
  package static let encryptedSuffix = ".age"

  /// Whether a file is named like an archive. Hidden ones are not: other programs name so what they are still copying.
  static func isArchive(_ name: [UInt8]) -> Bool {
    !name.starts(with: ".".utf8)
      && [suffix, suffix + encryptedSuffix].contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
  }

  /// The name of an archive, and what it is named when there is one of that name: with more of the id.
  ///
  /// - Parameter time: `20261120T101500Z`.
  static func candidates(
    app: String, instance: String, time: String, id: ArchiveID, isEncrypted: Bool = false
  ) -> [String] {
    [8, 16, 32].map { digits in
      // 255 bytes are the limit of a name: the fixed part has 64 at most, the rest is shared.
      [plain(app, 95), plain(instance, 95), time, String(id.description.prefix(digits))].joined(
        separator: "_")
        + suffix + (isEncrypted ? encryptedSuffix : "")
    }
  }

  /// What a name tells; nil for one that was given by hand.
  static func label(of name: String) -> ArchiveLabel? {
    let pattern = #/([^_]+)_([^_]+)_([0-9]{8}T[0-9]{6}Z)_([0-9a-f]{8,32})\.tar\.zst(\.age)?/#
    guard let parts = name.wholeMatch(of: pattern)?.output,
      let time = ArchiveTime.beginning(String(parts.3))
    else { return nil }
    return ArchiveLabel(
      app: String(parts.1), instance: String(parts.2), time: time + "Z", id: String(parts.4))
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
