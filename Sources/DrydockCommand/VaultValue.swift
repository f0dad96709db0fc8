import Drydock
import Foundation

/// A secret value that is given to the program: from a file, from standard input, or by a person at a terminal.
struct VaultValue {
  /// More than this is no value for a vault.
  private static let limit = 16 << 20

  /// The file; nil for standard input.
  var file: String?
  /// Whether a line break at its end is no part of it.
  var isText: Bool
  /// Whether it may be empty: as a rule that is a command in front of the pipe that failed.
  var mayBeEmpty: Bool

  func read() throws -> SecretBytes {
    let value = try trimmed(given())
    guard value.count > 0 || mayBeEmpty else {
      throw UsageError(message: "the value is empty; give --empty when that is meant, nothing was changed")
    }
    return value
  }

  private func given() throws -> SecretBytes {
    if let file { return try SecretFile.read(file, limit: Self.limit) }
    if isatty(STDIN_FILENO) == 1 {
      guard Passphrase.canAsk else {
        throw UsageError(message: "no value is given; pipe it in, or give --value-file FILE")
      }
      return try Passphrase.ask("the item's value")
    }
    return try SecretFile.readStandardInput(limit: Self.limit)
  }

  private func trimmed(_ value: SecretBytes) throws -> SecretBytes {
    try value.withBytes { bytes in
      let ending = bytes.suffix(2).elementsEqual("\r\n".utf8) ? 2 : bytes.last == UInt8(ascii: "\n") ? 1 : 0
      guard isText else {
        if ending > 0 {
          Output.note("drydock: note: the value ends with a line break, which is part of it; --text drops it")
        }
        return value
      }
      guard value.isText else {
        throw UsageError(message: "the value is no text (UTF-8); leave --text out, nothing was changed")
      }
      return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes.dropLast(ending)))
    }
  }
}
