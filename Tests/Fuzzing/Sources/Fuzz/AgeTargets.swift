import DrydockErrors

@testable import AgeEncryption
@testable import Cryptography

/// age files and keys. Whatever comes of a file must come of it in every way of opening it.
extension FuzzTarget {
  /// The identity and the file key that `make_vectors.py` uses; both are made up.
  private static let identity = Array(
    "AGE-SECRET-KEY-1A00KZ9Q8ZDF3VKQ05U5PK639PCJ822N9XKPNRDERZN65L79HNQSQ88PUAL".utf8)
  private static let fileKey = SecretBytes(Array("NOT A SECRET KEY".utf8))
  private static let nonce = [UInt8](repeating: 7, count: PayloadCipher.nonceLength)

  /// No passphrase: one stanza may ask for 4 GiB and some seconds of work, and be right to do so.
  private static func keys() throws -> AgeKeys {
    AgeKeys(identities: [try AgeIdentity(SecretBytes(identity))])
  }

  /// A whole file, armored or not.
  func openAge(_ file: [UInt8]) throws {
    let keys = try Self.keys()
    let whole = Result { try Age.open(file, with: keys).withBytes { Array($0) } }
    guard AgeHeader.isPresent(in: file.prefix(AgeHeader.probeLength)), file.first == UInt8(ascii: "a") else {
      return
    }
    try compare(whole, Result { try readBackwards(file, keys) })
  }

  /// Stanzas, with an authentication code that fits, and a payload.
  func openStanzas(_ stanzas: [UInt8]) throws {
    let text = Array("age-encryption.org/v1\n".utf8) + stanzas + Array("---".utf8)
    let mac = Base64.encode(try AgeHeader.authenticationCode(of: text, fileKey: Self.fileKey))
    let payload = try seal([(length: 5, number: 0, isLast: true)])
    try openAge(text + [UInt8(ascii: " ")] + mac + [UInt8(ascii: "\n")] + payload)
  }

  /// Chunks in any order and of any length, each with a tag that fits: only one way to seal a content is right.
  func openChunks(_ bytes: [UInt8]) throws {
    let chunks = stride(from: 0, to: bytes.count - 2, by: 3).prefix(8).map { at in
      let length = bytes[at] % 4 == 0 ? PayloadCipher.chunkLength : Int(bytes[at]) * 7
      return (length: length, number: UInt64(bytes[at + 1] % 16), isLast: bytes[at + 2] % 2 == 1)
    }
    let recipient = try AgeIdentity(SecretBytes(Self.identity)).recipient
    let stanza = try Stanza.wrap(Self.fileKey, for: recipient).encoded
    let text = AgeHeader.version + stanza + AgeHeader.endMark
    let mac = Base64.encode(try AgeHeader.authenticationCode(of: text, fileKey: Self.fileKey))
    let file = text + [UInt8(ascii: " ")] + mac + [UInt8(ascii: "\n")] + (try seal(chunks))
    let isRight = chunks.enumerated().allSatisfy { number, chunk in
      let isLast = number == chunks.count - 1
      let hasLength = isLast ? chunk.length > 0 || number == 0 : chunk.length == PayloadCipher.chunkLength
      return chunk.number == UInt64(number) && chunk.isLast == isLast && hasLength
    }
    let isOpen = (try? Age.open(file, with: Self.keys())) != nil
    guard isOpen == (isRight && !chunks.isEmpty) else {
      fatalError("wrongly \(isOpen ? "opened" : "refused"): \(chunks)")
    }
    try openAge(file)
  }

  /// Files of keys. What is accepted must come out as it went in.
  func readKeys(_ bytes: [UInt8]) throws {
    if let identities = try? KeyFile.identities(in: SecretBytes(bytes), path: nil) {
      for identity in identities {
        let text = identity.secretText.withBytes { Array($0) }
        guard bytes.contains(text) else { fatalError("another identity came out") }
      }
    }
    for recipient in try KeyFile.recipients(in: bytes, path: nil) {
      guard bytes.contains(Array(recipient.description.utf8)) else {
        fatalError("another recipient came out")
      }
    }
  }

  // MARK: Ways to open

  private func readBackwards(_ file: [UInt8], _ keys: AgeKeys) throws -> [UInt8] {
    let reader = try AgeReader(size: UInt64(file.count), keys: keys) { target, offset in
      target.copyBytes(from: file[Int(offset)..<(Int(offset) + target.count)])
    }
    var plain = [UInt8](repeating: 0, count: Int(reader.plainSize))
    try plain.withUnsafeMutableBytes { plain in
      var end = plain.count
      while end > 0 {
        let start = max(0, end - 40_000)
        try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: plain[start..<end]), at: UInt64(start))
        end = start
      }
    }
    return plain
  }

  private func compare(_ one: Result<[UInt8], any Error>, _ other: Result<[UInt8], any Error>) throws {
    switch (one, other) {
    case (.success(let one), .success(let other)):
      guard one == other else { fatalError("two ways give two contents") }
    case (.failure(let one), .failure(let other)):
      // Which of two faults is met first may differ; that there is one may not.
      guard one is DrydockError, other is DrydockError else {
        fatalError("not an error of ours: \(one), \(other)")
      }
    default: fatalError("one way opens what another refuses")
    }
  }

  private func seal(_ chunks: [(length: Int, number: UInt64, isLast: Bool)]) throws -> [UInt8] {
    let cipher = try PayloadCipher(fileKey: Self.fileKey, nonce: Self.nonce)
    return try chunks.reduce(into: Self.nonce) { payload, chunk in
      let plain = [UInt8](repeating: 7, count: chunk.length)
      var sealed = [UInt8](repeating: 0, count: chunk.length + PayloadCipher.overhead)
      try plain.withUnsafeBytes { plain in
        try sealed.withUnsafeMutableBytes {
          try cipher.seal(plain, number: chunk.number, isLast: chunk.isLast, into: $0)
        }
      }
      payload += sealed
    }
  }
}
