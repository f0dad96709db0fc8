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
  private func build(_ path: String, seed: UInt64 = 1) throws -> (bytes: [UInt8], header: Int) {
    var random = SeededRandom(seed: seed)
    let samples = [
      Sample("random", random.bytes(500_000)), Sample("text", Array("all work and no play".utf8)),
    ]
    let built = try writeArchive(samples, to: path, encryption: target)
    let reader = try ArchiveReader(path: path, keys: keys)
    let chunks = (Int(reader.contentSize) - 1) / PayloadCipher.chunkLength + 1
    return (built.bytes, built.bytes.count - Int(reader.contentSize) - 16 * chunks)
  }

  /// The error of reading all of a file.
  private func error(_ bytes: [UInt8], _ directory: String, _ keys: AgeKeys? = nil) throws -> DrydockError? {
    try store(bytes, at: directory + "/b")
    do {
      let reader = try ArchiveReader(path: directory + "/b", keys: keys ?? self.keys)
      _ = try tarStream(reader)
      try reader.readManifest { _ in }
      return nil
    } catch let error as DrydockError {
      return error
    }
  }

  @Test func everyCutIsFoundAtOnce() throws {
    try withTemporaryDirectory { directory in
      let (bytes, header) = try build(directory + "/a")
      let boundaries = stride(from: header, to: bytes.count, by: PayloadCipher.sealedChunkLength)
      var random = SeededRandom(seed: 2)
      var cuts = boundaries.flatMap { [$0 - 1, $0, $0 + 1, $0 + 16, $0 + 17] }
      cuts += (0..<60).map { _ in Int.random(in: 1..<bytes.count, using: &random) } + Array(1..<header)
      #expect(boundaries.underestimatedCount > 7)
      for cut in cuts where cut > 0 && cut < bytes.count {
        try store(Array(bytes[..<cut]), at: directory + "/cut")
        let error = #expect(throws: DrydockError.self, "cut at \(cut)") {
          try ArchiveReader(path: directory + "/cut", keys: keys)
        }
        if cut > 25 { #expect(error?.code == .damaged, "cut at \(cut): \(error as Any)") }
        if cut > header { #expect(error?.message.hasPrefix("the key fits, but ") == true, "\(error as Any)") }
      }
      // A cut file with something behind it that was not sealed is no better.
      #expect(try error(bytes + [0], directory)?.code == .damaged)
      #expect(try error(bytes + bytes.suffix(65_552), directory)?.code == .damaged)
    }
  }

  @Test func chunksInAnotherOrderAreFound() throws {
    try withTemporaryDirectory { directory in
      let (bytes, header) = try build(directory + "/a")
      let size = PayloadCipher.sealedChunkLength
      let chunks = stride(from: header, to: bytes.count, by: size).map {
        Array(bytes[$0..<min($0 + size, bytes.count)])
      }
      let start = Array(bytes[..<header])
      #expect(try error(start + chunks.joined(), directory) == nil)
      for (one, other) in [(0, 1), (2, 5), (0, chunks.count - 2), (3, 4)] {
        var swapped = chunks
        swapped.swapAt(one, other)
        let error = try #require(try error(start + swapped.joined(), directory))
        #expect(error.code == .damaged && error.message.contains("the key fits, but"), "\(error)")
      }
      var less = chunks
      less.remove(at: 3)
      #expect(try error(start + less.joined(), directory)?.code == .damaged)
      #expect(try error(start + (chunks[..<4] + chunks[3...]).joined(), directory)?.code == .damaged)
    }
  }

  @Test func everyFlippedBitIsFound() throws {
    try withTemporaryDirectory { directory in
      let (bytes, header) = try build(directory + "/a")
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
  }

  @Test func theHeaderOfAnotherFileDoesNotDo() throws {
    try withTemporaryDirectory { directory in
      let (one, header) = try build(directory + "/a")
      let (other, otherHeader) = try build(directory + "/a", seed: 5)
      #expect(header == otherHeader && one.count == other.count)
      for length in [header - 16, header] {
        let error = try #require(try error(Array(one[..<length] + other[length...]), directory))
        #expect(error.code == .damaged && error.message.hasPrefix("the key fits, but "), "\(error)")
      }
    }
  }

  @Test func aWrongKeyIsNoDamage() throws {
    try withTemporaryDirectory { directory in
      let (bytes, _) = try build(directory + "/a")
      let none = try #require(try error(bytes, directory, AgeKeys()))
      #expect(none.code == .noIdentity)
      #expect(
        none.message.contains("encrypted to 1 recipient (X25519)")
          && none.message.contains("no identity was given")
      )
      let wrong = AgeKeys(identities: [try .generate(), try .generate()], passphrases: [SecretBytes([1])])
      #expect(try error(bytes, directory, wrong)?.code == .noIdentity)

      try writeArchive([], to: directory + "/a", encryption: .passphrase(SecretBytes([1, 2]), workFactor: 4))
      let sealed = Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/a")))
      #expect(try error(sealed, directory, AgeKeys(passphrases: [SecretBytes([1, 2])])) == nil)
      let locked = try #require(try error(sealed, directory, AgeKeys(passphrases: [SecretBytes([2])])))
      #expect(locked.code == .noIdentity && locked.message.contains("with a passphrase (scrypt)"))
      #expect(locked.message.contains("the passphrase"))
    }
  }

  /// What is no archive, in age files that are as they should be.
  @Test func otherContentIsRefused() throws {
    try withTemporaryDirectory { directory in
      let text = Array("no archive at all".utf8)
      for (content, code) in [
        (text, DrydockError.Code.notAnArchive), ([], .truncated), ([0x28, 0xB5], .truncated),
        (try Age.seal(SecretBytes(text), to: target), .notAnArchive),
      ] {
        #expect(try error(Age.seal(SecretBytes(content), to: target), directory)?.code == code)
      }
      // An archive that was cut before it was encrypted.
      try writeArchive([Sample("a", [1])], to: directory + "/a")
      let plain = Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/a")))
      #expect(
        try error(Age.seal(SecretBytes(Array(plain.dropLast(10))), to: target), directory)?.code == .truncated
      )
    }
  }

  @Test func headersThatAreMadeToHarmAreRefusedInNoTime() throws {
    try withTemporaryDirectory { directory in
      let passphrases = AgeKeys(passphrases: [SecretBytes([1, 2])])
      try writeArchive([], to: directory + "/a", encryption: .passphrase(SecretBytes([1, 2]), workFactor: 4))
      let file = Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/a")))
      let text = String(decoding: file.prefix(150), as: Unicode.ASCII.self)
      let start = try #require(text.range(of: " 4\n")?.lowerBound).utf16Offset(in: text)
      for factor in ["30", "23", "04", "4 ", "-4", "99999999999999999999"] {
        let hostile = file[..<start] + Array(" \(factor)\n".utf8) + file[(start + 3)...]
        let time = try processorTime { () throws in
          #expect(try error(Array(hostile), directory, passphrases)?.code == .damaged, "\(factor)")
        }
        #expect(time < .seconds(0.5))
      }
      let armored = Array("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n-----END AGE ENCRYPTED FILE-----\n".utf8)
      let refusal = try #require(try error(armored, directory))
      #expect(refusal.code == .encrypted && refusal.message.contains("age -d"))
    }
  }
}
