import ArchiveManifest
import Cryptography
import FileSystem
import Formats
import Storage

/// Whose archive a file is, and of when: from its header, or as far as its name says.
///
/// Names are `<app>_<UTC, 20261120T101500Z>_<id>.tar.zst`, and `.age` behind it when the archive is encrypted. The id
/// has the first 8 hexadecimal digits of the archive's, and 8 of a hash of the instance, so that without a key it is
/// known which archives are of one instance. That of an incremental archive is followed by `-` and the first 8 digits
/// of its parent's, so that without a key it is known which archives it needs. The time is followed by `+` if an
/// archive of a later time was there already: then without a key the order is not known.
///
/// They are for people and other programs: an archive may be renamed, as its header says what it is. Without a key, the
/// name is all that is known of an encrypted one.
package struct ArchiveLabel: Sendable, Hashable {
  /// Bundle id or package, and which instance of it. From a name, odd characters of the app are `-`, and the instance
  /// is `#` and its ``mark``.
  package var app: String, instance: String
  /// When the capture began, UTC: `2026-11-20T10:15:00Z`.
  package var time: String
  /// The archive's id, or its beginning of 8 digits or more.
  package var id: String
  /// The parent's id, or its first 8 digits; nil for a full archive.
  package var parent: String?

  /// Whether an archive of a later time was there already.
  var followsLater = false
  /// What a name has of the instance; nil where the instance is known.
  package var mark: String?

  /// App and instance, which together own archives: `com.example.notes/red`.
  package var owner: String { "\(app)/\(instance)" }
  /// Identifies the owner, as far as it is known.
  var ownerKey: String { mark == nil ? Self.ownerKey(app, instance) : nameKey }
  /// Identifies the owner by what a name has of it: the same for few others.
  var nameKey: String { Self.nameKey(app, instance) }

  /// By bytes: the forms of two apps in names may be equal, and texts that are equal by Unicode's rules may be two
  /// names.
  static func ownerKey(_ app: String, _ instance: String) -> String {
    let text = Array(app.utf8) + [0] + Array(instance.utf8)
    return (try? SHA256.hash(text).hex) ?? ""
  }

  /// - Parameter instance: its name, or `#` and its mark.
  static func nameKey(_ app: String, _ instance: String) -> String {
    plain(app) + "_" + (isMark(instance) ? instance : "#" + mark(app, instance))
  }

  /// Whether it is of an app, of an instance, or of one instance of an app, by their exact names; nil for any. A
  /// file's name has only the form of the app, and the mark of the instance.
  func isOf(app: String?, instance: String?) -> Bool {
    if let app {
      let isSame =
        mark != nil ? Self.plain(app) == Self.plain(self.app) : app.utf8.elementsEqual(self.app.utf8)
      if !isSame { return false }
    }
    guard let instance else { return true }
    if Self.isMark(instance) { return nameKey == Self.nameKey(self.app, instance) }
    if instance.utf8.elementsEqual(self.instance.utf8) { return true }
    return mark.map { $0 == Self.mark(self.app, instance) } ?? false
  }

  /// Whether both may be the same archive: a name has only the beginning of the id.
  func mayBe(_ other: ArchiveLabel) -> Bool { id.hasPrefix(other.id) || other.id.hasPrefix(id) }
}

extension ArchiveLabel {
  init(_ header: Archive.Header) {
    self.init(
      app: header.app, instance: header.instance, time: header.time, id: header.archive.description,
      parent: header.parent?.description, followsLater: header.follows != nil)
  }

  /// The fields of a file's name; nil for one that was given by hand.
  init?(fileName name: String) {
    let ending = name.hasSuffix(Self.encryptedSuffix) ? Self.suffix + Self.encryptedSuffix : Self.suffix
    let fields = name.dropLast(ending.count).split(separator: "_", omittingEmptySubsequences: false)
    guard name.hasSuffix(ending), fields.count == 3, !fields[0].isEmpty,
      fields[1].hasForm("00000000T000000Z") || fields[1].hasForm("00000000T000000Z+"),
      let time = UTCTime.beginning(String(fields[1].prefix(16)))
    else { return nil }
    let ids = fields[2].split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard (16...40).contains(ids[0].utf8.count), ids[0].utf8.allSatisfy(\.isLowercaseHexDigit),
      ids.dropFirst().allSatisfy({ $0.hasForm("ffffffff") })
    else { return nil }
    let mark = String(ids[0].suffix(8))
    self.init(
      app: String(fields[0]), instance: "#" + mark, time: time + "Z", id: String(ids[0].dropLast(8)),
      parent: ids.count == 2 ? String(ids[1]) : nil, followsLater: fields[1].hasSuffix("+"), mark: mark)
  }

  /// The name of the archive's file, and the names when that is taken: with more of the id.
  func fileNames(isEncrypted: Bool) -> [String] {
    let time = time.filter { $0 != "-" && $0 != ":" } + (followsLater ? "+" : "")
    let ending =
      (parent.map { "-" + $0.prefix(8) } ?? "") + Self.suffix + (isEncrypted ? Self.encryptedSuffix : "")
    return [8, 16, 32].map { digits in
      "\(Self.plain(app))_\(time)_\(id.prefix(digits))\(mark ?? Self.mark(app, instance))\(ending)"
    }
  }

  private static let suffix = ".tar.zst"
  static let encryptedSuffix = ".age"

  /// Whether a file is named like an archive. Hidden ones are not: other programs use hidden names while they copy.
  static func isFileName(_ name: [UInt8]) -> Bool {
    !name.starts(with: ".".utf8)
      && [suffix, suffix + encryptedSuffix].contains { name.suffix($0.utf8.count).elementsEqual($0.utf8) }
  }

  /// What a name has of an instance: 8 digits of a hash, which do not give its name away.
  static func mark(_ app: String, _ instance: String) -> String {
    let text = plain(app) + "\n" + instance
    return (try? String(SHA256.hash(Array(text.utf8)).hex.prefix(8))) ?? ""
  }

  /// Whether a text has the form of a mark, which no instance's name may have.
  static func isMark(_ text: String) -> Bool { text.hasPrefix("#") && text.dropFirst().hasForm("ffffffff") }

  /// A text as it is in a name: letters, digits, `.` and `-`; everything else, the separator too, becomes `-`. Where
  /// something is replaced or cut, the beginning of the text's SHA-256 follows, so that no two texts have the same form; the
  /// form of a form is itself. Texts that are equal by Unicode's rules, but differ in their bytes, have different forms.
  static func plain(_ text: String) -> String {
    let longest = 90
    let plain = text.unicodeScalars.prefix(longest).map { scalar in
      let isKept = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
      return isKept || scalar == "." || scalar == "-" ? Character(scalar) : "-"
    }
    let trimmed = String(plain).drop { $0 == "." || $0 == "-" }
    if trimmed.utf8.elementsEqual(text.utf8) && !text.isEmpty { return text }
    let hash = (try? SHA256.hash(Array(text.utf8)).hex.prefix(8)) ?? ""
    return (trimmed.isEmpty ? "container" : trimmed.prefix(longest - 9)) + "-" + hash
  }
}

extension PlaceListing {
  /// The files that are named like archives, each with what its name says; nil where that was given by hand.
  var archives: [(name: ContainerPath, label: ArchiveLabel?)] {
    names.filter(ArchiveLabel.isFileName).map { bytes in
      let name = ContainerPath(name: bytes)
      return (name, ArchiveLabel(fileName: name.nameString))
    }
  }

  /// The same files, first those whose names have the beginning of an id.
  func archives(withFirst id: ArchiveID) -> [(name: ContainerPath, isNamed: Bool)] {
    let beginning = Array(id.short.utf8)
    var (named, others): ([ContainerPath], [ContainerPath]) = ([], [])
    for bytes in names where ArchiveLabel.isFileName(bytes) {
      let name = ContainerPath(name: bytes)
      // Thousands may be there: a field is compared faster than a name is parsed.
      let field = bytes[((bytes.lastIndex(of: UInt8(ascii: "_")) ?? -1) + 1)...]
      let label = field.starts(with: beginning) ? ArchiveLabel(fileName: name.nameString) : nil
      if label.map({ id.description.hasPrefix($0.id) }) ?? false {
        named.append(name)
      } else {
        others.append(name)
      }
    }
    return named.map { ($0, true) } + others.map { ($0, false) }
  }
}
