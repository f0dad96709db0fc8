import CLibZstd
import DrydockErrors

/// The one place that turns libzstd's results into this module's errors.
enum Zstd {
  /// The result of a call that can fail, as a count.
  static func check(_ result: Int, _ doing: String) throws -> Int {
    guard ZSTD_isError(result) != 0 else { return result }
    let reason = ZSTD_getErrorName(result).map { String(cString: $0) } ?? "no reason given"
    switch ZSTD_getErrorCode(result) {
    case ZSTD_error_memory_allocation:
      throw DrydockError(.io, "\(doing) failed: libzstd is out of memory; free some and try again")
    default:
      // Compressing fails for want of memory only; all else comes from reading a damaged frame.
      throw DrydockError.damaged("\(doing) failed: \(reason)")
    }
  }

  /// The error when libzstd cannot even allocate its state.
  static let outOfMemory = DrydockError(
    .io, "libzstd could not start: out of memory; free some and try again")
}
