import CLibArchive
import DrydockErrors
import FileSystem

/// libarchive's results as this module's errors and values.
enum LibArchive {
  static func reason(_ archive: OpaquePointer) -> String {
    guard let text = archive_error_string(archive) else { return "libarchive gives no reason" }
    return String(cString: text)
  }

  /// Throws unless writing succeeded without a warning.
  ///
  /// A warning while writing means that something was left out or changed, which must not happen silently.
  static func checkWrite(_ status: Int32, _ archive: OpaquePointer, _ doing: String) throws {
    guard status != ARCHIVE_OK else { return }
    throw DrydockError(
      status == ARCHIVE_WARN ? .invalidUse : .io, "\(doing) failed: \(reason(archive)); nothing was published"
    )
  }

  /// The error for a status other than OK or EOF while reading.
  ///
  /// RETRY, WARN, FAILED and FATAL all end the reading: this format's own archives give none of them.
  static func readError(_ archive: OpaquePointer, _ doing: String) -> DrydockError {
    let reason = reason(archive)
    if reason.hasPrefix("Truncated tar archive") { return .truncated("\(doing) failed: \(reason)") }
    return .damaged("\(doing) failed: \(reason)")
  }

  /// The error when libarchive cannot even allocate its state.
  static let outOfMemory = DrydockError(
    .io, "libarchive could not start: out of memory; free some and try again")
}

extension LibArchive {
  /// A name as it is, whatever its encoding.
  static func bytes(_ text: UnsafePointer<CChar>) -> [UInt8] {
    var length = 0
    while text[length] != 0 { length += 1 }
    return UnsafeBufferPointer(start: text, count: length).map { UInt8(bitPattern: $0) }
  }

  static func mode(_ entry: OpaquePointer) -> UInt16 {
    UInt16(truncatingIfNeeded: archive_entry_perm(entry)) & 0o7777
  }

  /// Nil for numbers that no user or group has.
  static func owner(_ entry: OpaquePointer) -> (user: UInt32, group: UInt32)? {
    guard let user = UInt32(exactly: archive_entry_uid(entry)),
      let group = UInt32(exactly: archive_entry_gid(entry))
    else { return nil }
    return (user, group)
  }

  /// How tar names the only inode flag that archives hold.
  static let noDump = "nodump"

  /// The names of the inode flags.
  static func flags(_ entry: OpaquePointer) -> String {
    archive_entry_fflags_text(entry).map { String(cString: $0) } ?? ""
  }

  /// Nanoseconds since 1970; nil when they do not fit.
  static func modified(_ entry: OpaquePointer) -> Int64? {
    let (whole, overflow) = Int64(archive_entry_mtime(entry)).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = whole.addingReportingOverflow(Int64(archive_entry_mtime_nsec(entry)))
    return overflow || overflow2 ? nil : sum
  }

  /// The extended attributes, sorted by the bytes of their names; one name may come twice, then in the order of the headers.
  static func attributes(_ entry: OpaquePointer) -> [ExtendedAttribute] {
    var attributes: [ExtendedAttribute] = []
    archive_entry_xattr_reset(entry)
    while true {
      var key: UnsafePointer<CChar>?
      var value: UnsafeRawPointer?
      var size = 0
      guard archive_entry_xattr_next(entry, &key, &value, &size) == ARCHIVE_OK, let key else { break }
      let content = [UInt8](UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : size))
      attributes.append(
        ExtendedAttribute(name: String(decoding: percentDecoded(bytes(key)), as: UTF8.self), value: content))
    }
    // The sort is stable.
    return attributes.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  /// Whether a name of an attribute is as libarchive writes it, and is UTF-8: one attribute has one form.
  static func isEncodedAttribute(_ name: [UInt8]) -> Bool {
    let plain = percentDecoded(name)
    let encoded = plain.flatMap { byte -> [UInt8] in
      let isOdd = !(33...126).contains(byte) || byte == UInt8(ascii: "%") || byte == UInt8(ascii: "=")
      return isOdd ? Array(("%" + [byte].hex.uppercased()).utf8) : [byte]
    }
    return !plain.isEmpty && !plain.contains(0) && encoded == name
      && String(validating: plain, as: UTF8.self) != nil
  }

  /// libarchive writes attribute names with `%XX` for odd bytes, and does not undo that when it reads.
  private static func percentDecoded(_ name: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var index = 0
    while index < name.count {
      if name[index] == UInt8(ascii: "%"), index + 2 < name.count, name[index + 1] != UInt8(ascii: "+"),
        let byte = UInt8(String(decoding: name[index + 1...index + 2], as: UTF8.self), radix: 16)
      {
        result.append(byte)
        index += 3
      } else {
        result.append(name[index])
        index += 1
      }
    }
    return result
  }
}
