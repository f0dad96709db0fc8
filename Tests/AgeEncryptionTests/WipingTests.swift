#if os(Linux)
  import TestSupport
  import Testing

  @testable import AgeEncryption
  @testable import Cryptography

  /// After its last use no copy of a secret is left anywhere in this process's memory.
  @Suite("Wiping", .serialized) struct WipingTests {
    /// Larger than what is used again at once when it was given back.
    private static func secret(_ count: Int) throws -> SecretBytes { try RandomBytes.secret(count) }

    private static func copy(_ secret: SecretBytes) -> SecretBytes {
      secret.withBytes { SecretBytes(copying: $0) }
    }

    @Test func `The memory search finds copies`() throws {
      let needle = try Self.secret(40)
      #expect(try MemoryScan.copies(of: needle) == 0)
      let copies = [Self.copy(needle), Self.copy(needle)]
      let array = needle.withBytes { Array($0) }
      // A region that another test's thread changes just then is passed over: then it is looked at once more.
      let isFound = try withExtendedLifetime((copies, array)) {
        try (0..<5).contains { _ in try MemoryScan.copies(of: needle) == 3 }
      }
      #expect(isFound)
    }

    @Test func `Content that is sealed and opened`() throws {
      let needle = try Self.secret(20_000)
      let keys = AgeKeys(identities: [try AgeIdentity.generate()])
      let file = try Age.seal(Self.copy(needle), to: .recipients(keys.identities.map(\.recipient)))
      #expect(try Age.open(file, with: keys) == needle)
      let reader = try AgeReader(size: UInt64(file.count), keys: keys) {
        $0.copyBytes(from: file[Int($1)..<(Int($1) + $0.count)])
      }
      #expect(try SecretBytes(count: needle.count) { try reader.read(into: $0, at: 0) } == needle)
      _ = try SecretBytes(count: 10) { try reader.read(into: $0, at: 5) }
      #expect(try MemoryScan.copies(of: needle) == 0)
    }

    @Test func `Passphrases`() throws {
      let needle = try Self.secret(3000)
      let file = try Age.seal(SecretBytes([1]), to: .passphrase(Self.copy(needle), workFactor: 4))
      #expect(try Age.open(file, with: AgeKeys(passphrases: [Self.copy(needle)])).count == 1)
      #expect(try MemoryScan.copies(of: needle) == 0)
    }

    @Test func `Identities, as text and as bytes`() throws {
      let (text, bytes) = try use()
      #expect(try MemoryScan.copies(of: text) == 0)
      #expect(try MemoryScan.copies(of: bytes) == 0)
    }

    private func use() throws -> (text: SecretBytes, bytes: SecretBytes) {
      let identity = try AgeIdentity.generate()
      let keyFile = KeyFile.text(of: identity, created: "2026-11-20T10:15:00Z")
      let read = try KeyFile.identities(in: keyFile, path: nil)
      let file = try Age.seal(SecretBytes([1]), to: .recipients(read.map(\.recipient)))
      #expect(try Age.open(file, with: AgeKeys(identities: read)).count == 1)
      return (identity.secretText, Self.copy(identity.secret))
    }

    @Test func `File keys and what is derived from them`() throws {
      let (fileKey, payloadKey) = try derive()
      #expect(try MemoryScan.copies(of: fileKey) == 0)
      #expect(try MemoryScan.copies(of: payloadKey) == 0)
    }

    private func derive() throws -> (SecretBytes, SecretBytes) {
      let identity = try AgeIdentity.generate()
      let file = try Age.seal(SecretBytes([1]), to: .recipients([identity.recipient]))
      let header = try file.withUnsafeBytes { try HeaderParser.parse($0, isWhole: true) }.unwrapped(
        "no header")
      let keys = AgeKeys(identities: [identity])
      #expect(try Age.open(file, with: keys).count == 1)
      let fileKey = try header.fileKey(with: keys)
      let nonce = Array(file[header.byteCount..<(header.byteCount + PayloadCipher.nonceLength)])
      return (fileKey, try LibCrypto.hkdf(fileKey, salt: nonce, info: "payload"))
    }
  }
#endif
