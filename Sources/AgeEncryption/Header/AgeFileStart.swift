import DrydockErrors

/// What a new age file begins with, and the cipher for what follows: for who seals the chunks of the payload, in any
/// order and on several threads. `AgeWriter` does all of it in one stream.
package struct AgeFileStart: Sendable {
  /// The header and the payload's nonce.
  package let bytes: [UInt8]
  /// Seals the payload's chunks.
  package let cipher: PayloadCipher

  /// A file key of its own, wrapped for everybody that `lock` names.
  ///
  /// - Throws: `DrydockError` (`.malformed`) for a lock without or with too many recipients, a weak recipient, an empty
  ///   passphrase or a work factor out of range; `.cryptography`.
  package init(to lock: AgeLock) throws {
    let fileKey = try RandomBytes.secret(WrappedKey.fileKeyLength)
    let stanzas = try Self.stanzas(for: lock, fileKey)
    let text = AgeHeader.version + stanzas.flatMap(\.encoded) + AgeHeader.endMark
    let mac = try AgeHeader.authenticationCode(of: text, fileKey: fileKey)
    let nonce = try RandomBytes.make(PayloadCipher.nonceLength)
    bytes = text + [UInt8(ascii: " ")] + Base64.encode(mac) + [UInt8(ascii: "\n")] + nonce
    cipher = try PayloadCipher(fileKey: fileKey, nonce: nonce)
  }

  private static func stanzas(for lock: AgeLock, _ fileKey: SecretBytes) throws -> [Stanza] {
    switch lock {
    case .passphrase(let passphrase, let workFactor):
      return [try ScryptStanza.wrap(fileKey, passphrase: passphrase, workFactor: workFactor)]
    case .recipients(let recipients):
      var seen: Set<AgeRecipient> = []
      let recipients = recipients.filter { seen.insert($0).inserted }
      guard !recipients.isEmpty else {
        throw DrydockError(.badKey, "there is no recipient to encrypt to: name one at least")
      }
      guard recipients.count <= AgeHeader.maximumStanzas else {
        throw DrydockError(
          .badKey, "\(recipients.count) recipients are too many: name \(AgeHeader.maximumStanzas) at most")
      }
      return try recipients.map { try X25519Stanza.wrap(fileKey, for: $0) }
    }
  }
}
