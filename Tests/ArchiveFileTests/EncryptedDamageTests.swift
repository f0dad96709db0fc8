import AgeEncryption
import Cryptography
import DrydockErrors
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import ArchiveFile

/// Whatever happens to an encrypted archive: a reader says so, tells damage from a wrong key, and never gives wrong bytes.
@Suite struct EncryptedDamageTests {
  private let keys: AgeKeys
  private let target: AgeTarget

  init() throws {
    let identity = try AgeIdentity.generate()
    keys = AgeKeys(identities: [identity])
    target = .recipients([identity.recipient])
  }

  /// An archive of nine chunks and where the first one starts.
  private func build(_ path: String) throws -> (bytes: [UInt8], header: Int) {
    var random = SeededRandom(seed: 1)
    let samples = [
      Sample("random", random.bytes(500_000)), Sample("text", Array("all work and no play".utf8)),
    ]
    let built = try writeArchive(samples, to: path, encryption: target)
    let reader = try ArchiveReader(path: path, keys: keys)
    let chunks = (Int(reader.contentSize) - 1) / PayloadCipher.chunkLength + 1
    return (built.bytes, built.bytes.count - Int(reader.contentSize) - 16 * chunks)
  }

  /// The error of reading all of a file.
  private func error(_ bytes: [UInt8], _ directory: TemporaryDirectory, _ keys: AgeKeys? = nil) throws
    -> DrydockError?
  {
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

  @Test func everyCutIsFoundAtOnce() throws {
    let directory = try TemporaryDirectory()
    let (bytes, header) = try build(directory("a"))
    let boundaries = stride(from: header, to: bytes.count, by: PayloadCipher.sealedChunkLength)
    var random = SeededRandom(seed: 2)
    var cuts = boundaries.flatMap { [$0 - 1, $0, $0 + 1, $0 + 16, $0 + 17] }
    cuts += (0..<60).map { _ in Int.random(in: 1..<bytes.count, using: &random) } + Array(1..<header)
    #expect(boundaries.underestimatedCount > 7)
    for cut in cuts where cut > 0 && cut < bytes.count {
      try store(Array(bytes[..<cut]), at: directory("cut"))
      let error = #expect(throws: DrydockError.self, "cut at \(cut)") {
        try ArchiveReader(path: directory("cut"), keys: keys)
      }
      if cut > 25 { #expect(error?.code == .damaged, "cut at \(cut): \(error as Any)") }
      if cut > header { #expect(error?.message.hasPrefix("the key fits, but ") == true, "\(error as Any)") }
    }
    // A cut file with something behind it that was not sealed is no better.
    #expect(try error(bytes + [0], directory)?.code == .damaged)
    #expect(try error(bytes + bytes.suffix(65_552), directory)?.code == .damaged)
  }

  @Test func everyFlippedBitIsFound() throws {
    let directory = try TemporaryDirectory()
    let (bytes, header) = try build(directory("a"))
    let size = PayloadCipher.sealedChunkLength
    var random = SeededRandom(seed: 3)
    let starts = Array(stride(from: header, to: bytes.count, by: size))
    var places = starts + starts.dropFirst().map { $0 - 1 } + [bytes.count - 1, bytes.count - 17]
    places += (0..<60).map { _ in Int.random(in: header..<bytes.count, using: &random) }
    for place in places {
      var damaged = bytes
      damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      let error = try #require(try error(damaged, directory), "byte \(place)")
      #expect(error.code == .damaged && error.message.hasPrefix("the key fits, but "), "\(place): \(error)")
    }
    // In the header a key may not even be found any more, or the file not be seen to be one of age's.
    for place in 0..<header {
      var damaged = bytes
      damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      let error = try #require(try error(damaged, directory), "byte \(place)")
      let codes: [DrydockError.Code] =
        place < 21 ? [.notAnArchive] : [.damaged, .noIdentity, .notAnArchive]
      #expect(codes.contains(error.code), "\(place): \(error)")
    }
  }

  @Test func aWrongKeyIsNoDamage() throws {
    let directory = try TemporaryDirectory()
    let (bytes, _) = try build(directory("a"))
    let none = try #require(try error(bytes, directory, AgeKeys()))
    #expect(none.code == .noIdentity)
    #expect(
      none.message.contains("encrypted to 1 recipient (X25519)")
        && none.message.contains("no identity was given")
    )
    let wrong = AgeKeys(identities: [try .generate(), try .generate()], passphrases: [SecretBytes([1])])
    #expect(try error(bytes, directory, wrong)?.code == .noIdentity)

    try writeArchive([], to: directory("a"), encryption: .passphrase(SecretBytes([1, 2]), workFactor: 4))
    let sealed = Array(try Data(contentsOf: URL(fileURLWithPath: directory("a"))))
    #expect(try error(sealed, directory, AgeKeys(passphrases: [SecretBytes([1, 2])])) == nil)
    let locked = try #require(try error(sealed, directory, AgeKeys(passphrases: [SecretBytes([2])])))
    #expect(locked.code == .noIdentity && locked.message.contains("with a passphrase (scrypt)"))
    #expect(locked.message.contains("the passphrase"))
  }

  /// What is no archive, in age files that are as they should be.
  @Test func otherContentIsRefused() throws {
    let directory = try TemporaryDirectory()
    let text = Array("no archive at all".utf8)
    for (content, code) in [
      (text, DrydockError.Code.notAnArchive), ([], .truncated), ([0x28, 0xB5], .truncated),
      (try Age.seal(SecretBytes(text), to: target), .notAnArchive),
    ] {
      #expect(try error(Age.seal(SecretBytes(content), to: target), directory)?.code == code)
    }
    // An archive that was cut before it was encrypted.
    try writeArchive([Sample("a", [1])], to: directory("a"))
    let plain = Array(try Data(contentsOf: URL(fileURLWithPath: directory("a"))))
    #expect(
      try error(Age.seal(SecretBytes(Array(plain.dropLast(10))), to: target), directory)?.code == .truncated
    )
  }
}
