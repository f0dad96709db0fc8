import CLibZstd

/// The one place that turns libzstd's results into this module's errors.
enum Zstd {
  /// The result of a call that can fail, as a count.
  static func check(_ result: Int, _ doing: String) throws -> Int {
    guard ZSTD_isError(result) != 0 else { return result }
    let reason = ZSTD_getErrorName(result).map { String(cString: $0) } ?? "no reason given"
    switch ZSTD_getErrorCode(result) {
    case ZSTD_error_memory_allocation:
      throw ArchiveError(.io, "\(doing) failed: libzstd is out of memory; free some and try again")
    case ZSTD_error_srcSize_wrong:
      throw ArchiveError.truncated("\(doing) failed: \(reason)")
    case ZSTD_error_checksum_wrong, ZSTD_error_corruption_detected, ZSTD_error_prefix_unknown,
      ZSTD_error_dstSize_tooSmall, ZSTD_error_frameParameter_unsupported,
      ZSTD_error_frameParameter_windowTooLarge, ZSTD_error_dictionary_wrong:
      throw ArchiveError.damaged("\(doing) failed: \(reason)")
    default:
      throw ArchiveError(.damaged, "\(doing) failed: libzstd says: \(reason)")
    }
  }

  /// The error when libzstd cannot even allocate its state.
  static let outOfMemory = ArchiveError(
    .io, "libzstd could not start: out of memory; free some and try again")
}
