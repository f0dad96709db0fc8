import AgeEncryption
import Cryptography
import DrydockErrors
import TestSupport
import Testing

/// Keys as text, one by one and in files.
@Suite struct KeyTests {
  /// The pair that the specification prints.
  static let secret = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
  static let recipient = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

  static func bytes(_ text: String) -> SecretBytes { SecretBytes(Array(text.utf8)) }

  static func text(_ secret: SecretBytes) -> String {
    secret.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  @Test func `The specification's pair`() throws {
    let identity = try AgeIdentity(Self.bytes(Self.secret))
    #expect(identity.recipient.description == Self.recipient)
    #expect(Self.text(identity.secretText) == Self.secret)
    #expect(try AgeRecipient(Self.recipient) == identity.recipient)
  }

  @Test func `New keys differ, and survive their text`() throws {
    let first = try AgeIdentity.generate()
    let second = try AgeIdentity.generate()
    #expect(first.recipient != second.recipient)
    #expect(try AgeIdentity(first.secretText).recipient == first.recipient)
    #expect(try AgeRecipient("\(first.recipient)") == first.recipient)
  }

  @Test func `Any modified recipient is rejected`() throws {
    for text in Self.damaged(Self.recipient) + [
      Self.recipient.uppercased(), Self.secret, "", "age1", "age1qqqqqq",
    ] {
      #expect(throws: DrydockError.self) { try AgeRecipient(text) }
    }
  }

  @Test func `Any modified identity is rejected and not shown`() throws {
    for text in Self.damaged(Self.secret) + [
      Self.secret.lowercased(), Self.recipient, "", "AGE-SECRET-KEY-1",
    ] {
      let error = expectError(.badKey) { try AgeIdentity(Self.bytes(text)) }
      #expect(error?.message.contains("GFPYY") == false)
    }
  }

  /// With one character changed to another of the same case, left out, doubled, or in the other case; and with ends.
  private static func damaged(_ text: String) -> [String] {
    let characters = Array(text)
    let changes = characters.indices.flatMap { index -> [String] in
      let one = characters[index]
      let other: Character = one == "q" ? "p" : one == "Q" ? "P" : one.isUppercase ? "Q" : "q"
      let turned = Character(one.isUppercase ? one.lowercased() : one.uppercased())
      return [[other], [], [one, one], [turned], ["\0"], ["\u{e9}"]].map {
        String(characters[..<index] + $0 + characters[(index + 1)...])
      }
    }
    return changes.filter { $0 != text } + [text + "\n", " " + text, text + " ", text + text]
  }

  @Test func `Unused bits must be zero`() throws {
    // The same key with one of the last four bits set, and a checksum that fits.
    for end in ["pp9g8nq", "gz8c7s0"] {
      let loose = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73e" + end
      #expect(throws: DrydockError.self) { try AgeRecipient(loose) }
    }
  }

  @Test func `Errors explain likely mistakes`() {
    func complaint(_ text: String) -> String {
      #expect(throws: DrydockError.self) { try AgeRecipient(text) }?.message ?? ""
    }
    #expect(complaint(Self.secret).contains("secret key"))
    #expect(complaint("ssh-ed25519 AAAA").contains("not supported"))
    #expect(complaint("age1yubikey1qqq").contains("not supported"))
    #expect(complaint("something").contains("not a recipient"))
    #expect(!complaint("something").contains("something"))
  }

  @Test func `A weak recipient is refused when something is sealed to it`() throws {
    // The point 0, with which everybody shares the same secret.
    let weak = try AgeRecipient("age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z")
    expectError(.badKey) { try AgeFileStart(to: .recipients([weak])) }
  }

  @Test func `Identities hide their secret from everything that prints`() throws {
    let identity = try AgeIdentity(Self.bytes(Self.secret))
    var dumped = ""
    dump(identity, to: &dumped)
    dump(AgeKeys(identities: [identity], passphrases: [Self.bytes("GFPYY")]), to: &dumped)
    for text in ["\(identity)", String(reflecting: identity), dumped] {
      #expect(!text.contains("GFPYY") && text.contains(Self.recipient))
    }
  }
}
