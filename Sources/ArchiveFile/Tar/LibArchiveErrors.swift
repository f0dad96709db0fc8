import CLibArchive
import DrydockErrors

/// The one place that turns libarchive's statuses into this module's errors.
enum LibArchive {
  /// What libarchive says of its last failure; it may say nothing.
  static func reason(_ archive: OpaquePointer) -> String {
    guard let text = archive_error_string(archive) else { return "libarchive gives no reason" }
    return String(cString: text)
  }

  /// Throws unless writing succeeded without a warning.
  ///
  /// A warning while writing means that something was left out or changed, which a backup must not do silently.
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
