import AgeEncryption
import Cryptography
import DrydockErrors
import TestSupport
import Testing

/// What headers say without a key, and what they may cost.
@Suite struct HeaderTests {
  private func header(_ file: [UInt8]) throws -> AgeHeader {
    try AgeHeader.read(size: UInt64(file.count)) { target, offset in
      target.copyBytes(from: file[Int(offset)..<(Int(offset) + target.count)])
    }
  }

  /// A header that is well made but for its code.
  private func text(_ stanzas: String) -> [UInt8] {
    Array("age-encryption.org/v1\n\(stanzas)--- \(String(repeating: "A", count: 43))\n".utf8)
  }

  @Test func `How a file is encrypted`() throws {
    func summary(_ name: String) throws -> String { try header(Vector(name).file).summary }
    #expect(try summary("x25519") == "encrypted to 1 recipient (X25519)")
    #expect(try summary("x25519_second_of_two") == "encrypted to 2 recipients (X25519)")
    #expect(try summary("unknown_body_48") == "encrypted to 1 recipient (X25519) and 1 of an unknown type")
    #expect(try summary("unknown_only") == "encrypted to 1 recipient of an unknown type")
    #expect(try summary("scrypt") == "encrypted with a passphrase (scrypt)")
  }

  @Test func `An error for a missing key says how the file is encrypted and what to do`() throws {
    func message(_ name: String, _ keys: AgeKeys) throws -> String {
      let file = try Vector(name).file
      let error = expectError(.noIdentity) { try Age.open(file, with: keys) }
      return error?.message ?? ""
    }
    let one = AgeKeys(identities: [try .generate()])
    let two = AgeKeys(identities: [try .generate(), try .generate()])
    let word = AgeKeys(passphrases: [SecretBytes([1])])
    #expect(AgeKeys().isEmpty && !one.isEmpty && !word.isEmpty)
    #expect(try message("x25519", AgeKeys()).contains("1 recipient (X25519): no identity was given"))
    #expect(try message("x25519", word).contains("no identity was given"))
    #expect(try message("x25519", one).contains("the identity does not match"))
    #expect(try message("x25519_second_of_two", two).contains("none of the 2 identities"))
    #expect(try message("scrypt", one).contains("a passphrase (scrypt): no passphrase was given"))
    #expect(try message("scrypt", word).contains("the passphrase is wrong"))
  }

  @Test func `A long header is refused at its limit, whatever there is more of`() throws {
    let limit = AgeHeader.maximumLength
    let line = String(repeating: "A", count: 64) + "\n"
    let manyLines = "-> q\n" + String(repeating: line, count: limit / 65 + 1) + "\n"
    let manyStanzas = String(repeating: "-> q\n\n", count: AgeHeader.maximumStanzas + 1)
    let longArgument = "-> " + String(repeating: "q", count: limit) + "\n\n"
    for stanzas in [manyLines, manyStanzas, longArgument] {
      let file = text(stanzas)
      let error = expectError(.header) { try header(file) }
      #expect(error?.message.contains(#/longer than|more than/#) == true)
    }
  }

  @Test func `As many recipients as may be are opened in good time, and one more is not written`() throws {
    let mine = try AgeIdentity.generate()
    let others = try (1..<AgeHeader.maximumStanzas).map { _ in try AgeIdentity.generate().recipient }
    let file = try Age.seal(SecretBytes([7]), to: .recipients(others + [mine.recipient]))
    #expect(try header(file).summary == "encrypted to 4096 recipients (X25519)")
    let time = try processorTime { () throws in
      #expect(try Age.open(file, with: AgeKeys(identities: [mine])).count == 1)
    }
    #expect(time < .seconds(10))
    expectError(.badKey) {
      try AgeFileStart(to: .recipients(others + [mine.recipient, try AgeIdentity.generate().recipient]))
    }
  }

  @Test func `A recipient that is named twice counts once, and none is refused`() throws {
    let mine = try AgeIdentity.generate()
    let file = try Age.seal(SecretBytes([7]), to: .recipients([mine.recipient, mine.recipient]))
    #expect(try header(file).summary == "encrypted to 1 recipient (X25519)")
    #expect(throws: DrydockError.self) { try AgeFileStart(to: .recipients([])) }
  }

  @Test func `Two files to the same recipient have nothing in common`() throws {
    let mine = try AgeIdentity.generate().recipient
    let first = try Age.seal(SecretBytes(SeededRandom.noise(1000)), to: .recipients([mine]))
    let second = try Age.seal(SecretBytes(SeededRandom.noise(1000)), to: .recipients([mine]))
    let start = try header(first).byteCount
    #expect(first.count == second.count)
    #expect(zip(first[start...], second[start...]).count { $0 == $1 } < 50)
  }
}
