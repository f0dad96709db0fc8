import AgeEncryption
import Cryptography
import DrydockErrors
import TestSupport
import Testing

@testable import ArchiveFile

/// Whatever happens to an encrypted archive: a reader says so, distinguishes damage from a wrong key, and never gives wrong bytes.
@Suite struct EncryptedDamageTests {
  private let directory: TemporaryDirectory
  private let keys: AgeKeys
  private let target: AgeTarget

  init() throws {
    directory = try TemporaryDirectory()
    let identity = try AgeIdentity.generate()
    keys = AgeKeys(identities: [identity])
    target = .recipients([identity.recipient])
  }

  /// An archive of nine chunks and where the first one starts.
  private func build() throws -> (bytes: [UInt8], header: Int) {
    var random = SeededRandom(seed: 1)
    let samples = [
      Sample("random", random.bytes(500_000)), Sample("text", Array("all work and no play".utf8)),
    ]
    let built = try writeArchive(samples, to: directory("a"), encryption: target)
    let reader = try ArchiveReader(path: directory("a"), keys: keys)
    let chunks = (Int(reader.contentSize) - 1) / PayloadCipher.chunkLength + 1
    return (built.bytes, built.bytes.count - Int(reader.contentSize) - 16 * chunks)
  }

  /// The error of reading all of a file.
  private func error(_ bytes: [UInt8], _ keys: AgeKeys? = nil) throws -> DrydockError? {
    try store(bytes, at: directory("b"))
    do {
      let reader = try ArchiveReader(path: directory("b"), keys: keys ?? self.keys)
      _ = try tarStream(reader)
      try reader.readManifest { _ in }
      return nil
    } catch let error as DrydockError {
      return error
    }
  }

  /// `DamageTests` of AgeEncryption has every place.
  @Test func aCutIsFoundAtOnce() throws {
    let (bytes, header) = try build()
    let boundaries = stride(from: header, to: bytes.count, by: PayloadCipher.sealedChunkLength)
    #expect(boundaries.underestimatedCount > 7)
    let cuts = boundaries.flatMap { [$0 - 1, $0, $0 + 1, $0 + 16, $0 + 17] } + [25, 26, bytes.count - 1]
    for cut in cuts where cut < bytes.count {
      try store(Array(bytes[..<cut]), at: directory("cut"))
      let error = #expect(throws: DrydockError.self, "cut at \(cut)") {
        try ArchiveReader(path: directory("cut"), keys: keys)
      }
      if cut > 25 { #expect(error?.code == .damaged, "cut at \(cut): \(error as Any)") }
      if cut > header { #expect(error?.message.hasPrefix("the key fits, but ") == true, "\(error as Any)") }
    }
    // A cut file with something behind it that was not encrypted is no better.
    #expect(try error(bytes + [0])?.code == .damaged)
    #expect(try error(bytes + bytes.suffix(65_552))?.code == .damaged)
  }

  @Test func aFlippedBitIsFound() throws {
    let (bytes, header) = try build()
    var random = SeededRandom(seed: 3)
    let starts = Array(stride(from: header, to: bytes.count, by: PayloadCipher.sealedChunkLength))
    for place in starts + starts.dropFirst().map({ $0 - 1 }) + [bytes.count - 1, bytes.count - 17]
      + (0..<header)
    {
      var damaged = bytes
      damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      let error = try #require(try error(damaged), "byte \(place)")
      // In the header a key may not even be found any more, or the file not be seen to be one of age's.
      let codes: [DrydockError.Code] =
        place >= header ? [.damaged] : place < 21 ? [.notAnArchive] : [.damaged, .noIdentity, .notAnArchive]
      #expect(codes.contains(error.code), "\(place): \(error)")
      #expect(place < header || error.message.hasPrefix("the key fits, but "), "\(place): \(error)")
    }
  }

  @Test func aWrongKeyIsNoDamage() throws {
    let (bytes, _) = try build()
    let none = try #require(try error(bytes, AgeKeys()))
    #expect(none.code == .noIdentity)
    #expect(
      none.message.contains("encrypted to 1 recipient (X25519)")
        && none.message.contains("no identity was given")
    )
    let wrong = AgeKeys(identities: [try .generate(), try .generate()], passphrases: [SecretBytes([1])])
    #expect(try error(bytes, wrong)?.code == .noIdentity)

    try writeArchive([], to: directory("a"), encryption: .passphrase(SecretBytes([1, 2]), workFactor: 4))
    let encrypted = try stored(directory("a"))
    #expect(try error(encrypted, AgeKeys(passphrases: [SecretBytes([1, 2])])) == nil)
    let locked = try #require(try error(encrypted, AgeKeys(passphrases: [SecretBytes([2])])))
    #expect(locked.code == .noIdentity && locked.message.contains("with a passphrase (scrypt)"))
    #expect(locked.message.contains("the passphrase"))
  }

  /// What is no archive, in age files that are as they should be.
  @Test func otherContentIsRefused() throws {
    let text = Array("no archive at all".utf8)
    for (content, code) in [
      (text, DrydockError.Code.notAnArchive), ([], .truncated), ([0x28, 0xB5], .truncated),
      (try Age.seal(SecretBytes(text), to: target), .notAnArchive),
    ] {
      #expect(try error(Age.seal(SecretBytes(content), to: target))?.code == code)
    }
    // An archive that was cut before it was encrypted.
    try writeArchive([Sample("a", [1])], to: directory("a"))
    let plain = try stored(directory("a"))
    #expect(try error(Age.seal(SecretBytes(Array(plain.dropLast(10))), to: target))?.code == .truncated)
  }
}
