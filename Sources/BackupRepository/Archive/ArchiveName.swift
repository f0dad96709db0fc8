/// File names of archives: `<app>_<instance>_<UTC, 20261120T101500Z>_<first 8 hex of the id>.tar.zst`, and `.age` behind
/// it when the archive is encrypted.
///
/// They are for people and other programs: an archive may be renamed, as its header says what it is. Without a key, the
/// name is all that is known of an encrypted one.
package enum ArchiveName {
  package static let suffix = ".tar.zst"
  package static let encryptedSuffix = ".age"

  /// Whether a file is named like an archive. Hidden ones are not: other programs use hidden names while they copy.
  static func isArchive(_ name: [UInt8]) -> Bool {
    !name.starts(with: ".".utf8)
      && [suffix, suffix + encryptedSuffix].contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
  }

  /// The name of an archive, and the names when that is taken: with more of the id.
  ///
  /// - Parameter time: `20261120T101500Z`.
  static func candidates(
    app: String, instance: String, time: String, id: Archive.ID, isEncrypted: Bool = false
  ) -> [String] {
    [8, 16, 32].map { digits in
      // 255 bytes are the limit of a name: the fixed part has 64 at most, the rest is shared.
      [plain(app, 95), plain(instance, 95), time, String(id.description.prefix(digits))].joined(
        separator: "_")
        + suffix + (isEncrypted ? encryptedSuffix : "")
    }
  }

  /// The fields of a name; nil for one that was given by hand.
  static func label(of name: String) -> ArchiveLabel? {
    let pattern = #/([^_]+)_([^_]+)_([0-9]{8}T[0-9]{6}Z)_([0-9a-f]{8,32})\.tar\.zst(\.age)?/#
    guard let parts = name.wholeMatch(of: pattern)?.output,
      let time = ArchiveTime.beginning(String(parts.3))
    else { return nil }
    return ArchiveLabel(
      app: String(parts.1), instance: String(parts.2), time: time + "Z", id: String(parts.4))
  }

  /// A text as it is in a name: letters, digits, `.` and `-`; everything else, the separator too, becomes `-`.
  static func plain(_ text: String, _ limit: Int) -> String {
    let plain = text.prefix(limit).map { character in
      character.isASCII && (character.isLetter || character.isNumber || ".-".contains(character))
        ? character : "-"
    }
    let trimmed = String(plain).drop { $0 == "." || $0 == "-" }
    return trimmed.isEmpty ? "container" : String(trimmed)
  }
}

/// Whose archive a file is, and of when: from its header, or as far as its name says.
package struct ArchiveLabel: Sendable, Hashable {
  /// Bundle id or package, and which instance of it. In a name odd characters of them are `-`.
  package var app: String, instance: String
  /// When the capture began, UTC: `2026-11-20T10:15:00Z`.
  package var time: String
  /// The archive's id, or its beginning of 8 digits or more.
  package var id: String

  /// App and instance, which together own archives: `com.example.notes/red`.
  package var owner: String { "\(app)/\(instance)" }
}

extension ArchiveLabel {
  init(_ header: Archive.Header) {
    self.init(
      app: header.app, instance: header.instance, time: header.time, id: header.archive.description)
  }

  /// Whether both may be the same archive: a name has only the beginning of the id.
  func mayBe(_ other: ArchiveLabel) -> Bool { id.hasPrefix(other.id) || other.id.hasPrefix(id) }
}

/// Times of archives, all UTC, as text: it sorts as the times do.
enum ArchiveTime {
  /// Whether a text is a time as in headers, such as `2026-11-20T10:15:00Z`.
  static func isWhole(_ text: String) -> Bool { text.utf8.count == 20 && beginning(text) != nil }

  /// The beginning of such a time that a person means: `2026`, `2026-11`, `2026-11-14`, `2026-11-14T12:00`, with or
  /// without `Z`, or `20261114T120000Z` as in file names. Nil for anything else.
  static func beginning(_ text: String) -> String? {
    if let parts = text.wholeMatch(of: #/([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z/#)?
      .output
    {
      return beginning("\(parts.1)-\(parts.2)-\(parts.3)T\(parts.4):\(parts.5):\(parts.6)Z")
    }
    let date = #/[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?/#
    let clock = #/([01][0-9]|2[0-3])(:[0-5][0-9](:([0-5][0-9]|60))?)?Z?/#
    let parts = text.split(separator: "T", maxSplits: 1, omittingEmptySubsequences: false)
    guard let day = parts.first, day.wholeMatch(of: date) != nil else { return nil }
    if parts.count == 1 { return text }
    guard day.utf8.count == 10, parts[1].wholeMatch(of: clock) != nil else { return nil }
    return text.hasSuffix("Z") ? String(text.dropLast()) : text
  }
}
