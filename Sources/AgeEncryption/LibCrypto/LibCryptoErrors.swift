import CLibCrypto
import DrydockErrors

/// The one place that turns libcrypto's errors into this module's.
enum LibCrypto {
  /// An error for a failed call, with everything that libcrypto has queued for this thread.
  ///
  /// The queue is emptied: what stays in it would be blamed on the next failure.
  static func error(_ doing: String) -> DrydockError {
    let reasons = drainQueue()
    let why = reasons.isEmpty ? "no reason given" : reasons.joined(separator: "; ")
    return DrydockError(
      .cryptography, "libcrypto failed while \(doing): \(why); check the installation of OpenSSL 3")
  }

  private static func drainQueue() -> [String] {
    var reasons: [String] = []
    while true {
      let code = ERR_get_error()
      if code == 0 { return reasons }
      var text = [CChar](repeating: 0, count: 256)
      ERR_error_string_n(code, &text, text.count)
      let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      reasons.append(String(decoding: bytes, as: UTF8.self))
    }
  }
}
