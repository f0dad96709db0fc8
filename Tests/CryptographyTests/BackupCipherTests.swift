import DrydockErrors
import Testing

@testable import Cryptography

@Suite("Ciphers of device backups")
struct BackupCipherTests {
  private static func hex(_ text: String) -> [UInt8] {
    let digits = text.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }

  private static func secret(_ text: String) -> SecretBytes { SecretBytes(hex(text)) }

  private static func bytes(_ secret: SecretBytes?) -> [UInt8]? { secret?.withBytes { Array($0) } }

  @Test(
    "PBKDF2 gives the keys of RFC 6070 and RFC 7914",
    arguments: [
      (HashFunction.sha1, "password", "salt", UInt64(1), "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
      (.sha1, "password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"),
      (.sha256, "passwd", "salt", 1, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"),
    ])
  func passwordKey(_ hash: HashFunction, _ password: String, _ salt: String, _ rounds: UInt64, _ key: String)
    throws
  {
    let derived = try SecretBytes(Array(password.utf8)).passwordKey(
      salt: Array(salt.utf8), rounds: rounds, hash)
    let wanted = Self.hex(key)
    #expect(derived.count == 32 && Self.bytes(derived)?.prefix(wanted.count) == wanted[...])
  }

  @Test("No rounds and billions of rounds are refused", arguments: [UInt64(0), 50_000_001, .max])
  func rounds(_ rounds: UInt64) throws {
    let error = #expect(throws: DrydockError.self) {
      try SecretBytes([1]).passwordKey(salt: [1], rounds: rounds, .sha256)
    }
    #expect(error?.code == (rounds == 0 ? .damaged : .limit))
    #expect(error?.code.exitCode == 4)
  }

  @Test("A wrapped key of RFC 3394 is unwrapped, with its own key alone")
  func wrapped() throws {
    let key = Self.secret("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F")
    var wrapped = Self.hex("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21")
    let plain = Self.hex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F")
    #expect(try Self.bytes(key.unwrapKey(wrapped)) == plain)
    #expect(try SecretBytes(plain).unwrapKey(wrapped) == nil)
    for count in 0..<wrapped.count {
      #expect(try key.unwrapKey(Array(wrapped.prefix(count))) == nil)
    }
    wrapped[7] ^= 1
    #expect(try key.unwrapKey(wrapped) == nil)
  }

  static let key = "65a7904fd677e0e658009d225eb9a12f0d92ff70451b1412484fc476a7dc40d3"

  /// By `gcm` of make_device_backup.py, which follows NIST SP 800-38D.
  static let sealed = [
    ("10db191bc05e54e1645bcd64ed472311", ""), ("9c60ac8ef48e498292fd62422f0cc0c0df", "b8"),
    ("9ce569b28417ccf8d5815fd2c20f24e7c2fd2613e567509607cf72589604171a", "b866f57afde29e95645518f3c6451058"),
    (
      "9ce569b28417ccf8d5815fd2c20f24e7b1b1f028ef0f79d666d4d29cf99486e1d3d183f823d65d93294f97986af53a0bb4",
      "b866f57afde29e95645518f3c6451058ca5c2af0fd3cfcdd501a05cfd4f115cba4"
    ),
  ]

  @Test("AES-256-GCM with an empty nonce opens what another implementation sealed", arguments: sealed)
  func emptyNonce(_ sealed: String, _ plain: String) throws {
    let (key, bytes) = (Self.secret(Self.key), Self.hex(sealed))
    #expect(try Self.bytes(EmptyNonceGCM.open(bytes, key: key)) == Self.hex(plain))
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 0x40
      #expect(try EmptyNonceGCM.open(changed, key: key) == nil)
    }
    for count in 0..<bytes.count {
      #expect(try EmptyNonceGCM.open(Array(bytes.prefix(count)), key: key) == nil)
    }
  }

  @Test("CBC decrypts in pieces of any size, and refuses wrong padding", arguments: [1, 15, 16, 17, 64])
  func cbc(_ size: Int) throws {
    let zeros = [UInt8](repeating: 0, count: 16)
    for (sealed, plain) in [
      ("753fab7779fc56ec9fd98e3108cf8e2d06b389ba5ad2fe28382ed8294d39e914", String(repeating: "x", count: 16)),
      ("0b26217bfd4d04e98672e8e4f4547c3c", ""), ("cb5f695cb74ead516187838fa84e6756", "made up text"),
    ] {
      let bytes = Self.hex(sealed)
      let cipher = try CBCDecryption(key: Self.secret(Self.key), iv: zeros)
      var opened: [UInt8] = []
      for start in stride(from: 0, to: bytes.count, by: size) {
        opened += try cipher.update(Array(bytes[start..<min(start + size, bytes.count)]))
      }
      opened += try #require(cipher.finish())
      #expect(opened == Array(plain.utf8))
      let cut = try CBCDecryption(key: Self.secret(Self.key), iv: zeros)
      _ = try cut.update(Array(bytes.dropLast()))
      #expect(cut.finish() == nil)
    }
    #expect(throws: DrydockError.self) { try CBCDecryption(key: SecretBytes([1]), iv: zeros) }
  }

  @Test("SHA-1 is that of FIPS 180")
  func sha1() throws {
    #expect(try HashFunction.sha1.hash(Array("abc".utf8)).hex == "a9993e364706816aba3e25717850c26c9cd0d89d")
    #expect(try HashFunction.sha1.hash([]).hex == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
  }
}
