import DrydockErrors

/// Files of keys as the age programs write and read them: one key in each line, comments behind `#`, empty lines.
package enum KeyFile {
  /// The identities in a file, of which there must be one at least.
  ///
  /// - Throws: `DrydockError` (`.malformed`) with the number of the line; nothing of the line is in the message.
  package static func identities(in file: SecretBytes, path: String?) throws -> [AgeIdentity] {
    try file.withBytes { bytes in
      guard !AgeHeader.isPresent(in: bytes.prefix(AgeHeader.probeLength)) else {
        throw DrydockError(
          .badKey, "the key file is itself encrypted: decrypt it first, with `age -d`", path: path)
      }
      let identities = try lines(of: bytes).map { number, line in
        do {
          return try AgeIdentity(SecretBytes(copying: line))
        } catch let error as DrydockError {
          throw DrydockError(error.code, "line \(number): \(error.message)", path: path)
        }
      }
      guard !identities.isEmpty else {
        throw DrydockError(
          .badKey, "there is no identity in this file: make one with `drydock keygen -o FILE`", path: path)
      }
      return identities
    }
  }

  /// The recipients in a file, of which there must be one at least.
  ///
  /// - Throws: `DrydockError` (`.malformed`) with the number of the line; nothing of the line is in the message, as it
  ///   may be a secret key in the wrong file.
  package static func recipients(in file: [UInt8], path: String?) throws -> [AgeRecipient] {
    try file.withUnsafeBytes { bytes in
      let recipients = try lines(of: bytes).map { number, line in
        do {
          return try AgeRecipient(String(decoding: line, as: UTF8.self))
        } catch let error as DrydockError {
          throw DrydockError(error.code, "line \(number): \(error.message)", path: path)
        }
      }
      guard !recipients.isEmpty else {
        throw DrydockError(.badKey, "there is no recipient in this file: add one (age1…)", path: path)
      }
      return recipients
    }
  }

  /// The text of a key file with one identity, as `age-keygen` writes it. `created` is a time as RFC 3339 has it.
  package static func text(of identity: AgeIdentity, created: String) -> SecretBytes {
    let comments = Array("# created: \(created)\n# public key: \(identity.recipient)\n".utf8)
    return identity.secretText.withBytes { key in
      SecretBytes(count: comments.count + key.count + 1) { text in
        text.copyBytes(from: comments)
        UnsafeMutableRawBufferPointer(rebasing: text[comments.count...]).copyMemory(from: key)
        text[text.count - 1] = UInt8(ascii: "\n")
      }
    }
  }

  /// The lines with a key, numbered from 1, without their line breaks (LF or CRLF).
  private static func lines(of bytes: UnsafeRawBufferPointer) -> [(number: Int, line: UnsafeRawBufferPointer)]
  {
    bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated()
      .compactMap { index, line in
        let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        guard let first = line.first, first != UInt8(ascii: "#") else { return nil }
        return (index + 1, UnsafeRawBufferPointer(rebasing: line))
      }
  }
}
