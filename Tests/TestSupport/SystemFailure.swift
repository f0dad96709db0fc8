import Foundation

/// A system call or a helper that failed in a test's scaffolding.
public struct SystemFailure: Error, CustomStringConvertible {
  /// What was tried, on what, and why it failed.
  public let description: String

  /// A failure with its own words.
  public init(_ description: String) {
    self.description = description
  }

  /// The failure of a call that set `errno`. Create it before anything else can change `errno`.
  public init(call: String, path: [UInt8]) {
    description = "\(call) of \(readable(path)): \(String(cString: strerror(errno)))"
  }
}

/// Bytes as text: what is not UTF-8 or not printable is shown as `\xNN`, so that two names never look alike.
public func readable(_ bytes: [UInt8]) -> String {
  if let text = String(validating: bytes, as: UTF8.self),
    !text.unicodeScalars.contains(where: { $0.value < 32 })
  {
    return text
  }
  return bytes.reduce(into: "") { text, byte in
    if (32..<127).contains(byte) {
      text.unicodeScalars.append(Unicode.Scalar(byte))
    } else {
      text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
  }
}
