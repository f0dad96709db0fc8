import AgeEncryption
import Cryptography
import DrydockErrors
import Foundation
import Testing

/// Digests, random bytes, and how age files are recognised.
@Suite struct DigestTests {
  @Test func knownDigests() throws {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    #expect(try SHA256.hash([]).hex == empty)
    #expect(try SHA256.hash(Array("abc".utf8)).description == abc)
    let digest = try SHA256()
    #expect(try digest.finalize().hex == empty)
    for part in ["a", "", "bc"] { Array(part.utf8).withUnsafeBytes { digest.update($0) } }
    #expect(try digest.finalize().hex == abc)
    #expect(try digest.finalize().hex == empty)
  }

  @Test func digestsAsText() throws {
    let digest = try SHA256.hash([1])
    let coded = try JSONEncoder().encode([digest])
    #expect(String(decoding: coded, as: UTF8.self) == "[\"\(digest.hex)\"]")
    #expect(try JSONDecoder().decode([SHA256.Digest].self, from: coded) == [digest])
    #expect(SHA256.Digest(hex: digest.hex) == digest && SHA256.Digest(bytes: digest.bytes) == digest)
    for text in ["", "00", digest.hex.uppercased(), digest.hex + "00", "g" + digest.hex.dropFirst()] {
      #expect(SHA256.Digest(hex: text) == nil)
      let json = Data("[\"\(text)\"]".utf8)
      #expect(throws: DecodingError.self) { try JSONDecoder().decode([SHA256.Digest].self, from: json) }
    }
    #expect(SHA256.Digest(bytes: [1, 2]) == nil)
  }

  @Test func randomBytesDiffer() throws {
    #expect(try RandomBytes.make(0) == [])
    let first = try RandomBytes.make(32)
    let second = try RandomBytes.make(32)
    #expect(first.count == 32 && first != second)
    #expect(throws: DrydockError.self) { try RandomBytes.make(-1) }
  }

  @Test func ageFilesAreRecognised() {
    #expect(AgeHeader.isPresent(in: Array("age-encryption.org/v1\n-> X25519 x\n".utf8)))
    #expect(AgeHeader.isPresent(in: Array("-----BEGIN AGE ENCRYPTED FILE-----\nYW".utf8)))
    #expect(AgeHeader.isPresent(in: Array(" \r\n-----BEGIN AGE ENCRYPTED FILE-----\r\n".utf8)))
    for text in ["", "age", "age-encryption.org/v2\n", " age-encryption.org/v1\n", "-----BEGIN"] {
      #expect(!AgeHeader.isPresent(in: Array(text.utf8)))
    }
  }
}
