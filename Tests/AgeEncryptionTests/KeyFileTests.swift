import AgeEncryption
import Cryptography
import DrydockErrors
import TestSupport
import Testing

/// Key files as people keep them.
@Suite struct KeyFileTests {
  @Test(arguments: ["\n", "\r\n"]) func `Comments, empty lines and both line ends`(end: String) throws {
    let second = try AgeIdentity.generate()
    let lines = [
      "# created: 2026-11-20T10:15:00Z", "# public key: x", KeyTests.secret, "", "#",
      KeyTests.text(second.secretText),
    ]
    for text in [lines.joined(separator: end), lines.joined(separator: end) + end] {
      let found = try KeyFile.identities(in: KeyTests.bytes(text), path: "key.txt")
      #expect(found.map(\.recipient) == [try AgeRecipient(KeyTests.recipient), second.recipient])
    }
  }

  @Test func `What it writes is what age-keygen writes`() throws {
    let identity = try AgeIdentity(KeyTests.bytes(KeyTests.secret))
    let text = KeyFile.text(of: identity, created: "2026-11-20T10:15:00Z")
    #expect(
      KeyTests.text(text) == """
        # created: 2026-11-20T10:15:00Z
        # public key: \(KeyTests.recipient)
        \(KeyTests.secret)

        """)
    #expect(try KeyFile.identities(in: text, path: nil).map(\.recipient) == [identity.recipient])
  }

  @Test func `A bad line is reported by its number and not shown`() throws {
    let bad = [
      "# fine\n\nGFPYY\n", "\n\n\(KeyTests.secret.lowercased())", "\n\n \(KeyTests.secret)",
      "\(KeyTests.secret)\n#\n\(KeyTests.secret)x", "\n\n\(KeyTests.recipient)", "\n\n\0",
      "\n\nAGE-PLUGIN-YUBIKEY-1GFPYY",
    ]
    for text in bad {
      let error = #expect(throws: DrydockError.self) {
        try KeyFile.identities(in: KeyTests.bytes(text), path: "key.txt")
      }
      #expect(error?.code == .badKey && error?.path == "key.txt")
      #expect(error?.message.hasPrefix("line 3: ") == true)
      #expect(error?.description.contains("GFPYY") == false)
    }
  }

  @Test func `A file without keys, and one that is encrypted itself`() throws {
    for text in ["", "\n", "# nothing\n", "\r\n"] {
      #expect(throws: DrydockError.self) { try KeyFile.identities(in: KeyTests.bytes(text), path: nil) }
      #expect(throws: DrydockError.self) { try KeyFile.recipients(in: Array(text.utf8), path: nil) }
    }
    let sealed = try Age.seal(
      KeyTests.bytes(KeyTests.secret), to: .passphrase(KeyTests.bytes("made up"), workFactor: 1))
    expectError(nil, "encrypted") { try KeyFile.identities(in: SecretBytes(sealed), path: nil) }
  }

  @Test func `Files of recipients`() throws {
    let text = "# people\r\n\(KeyTests.recipient)\r\n\n\(KeyTests.recipient)"
    let found = try KeyFile.recipients(in: Array(text.utf8), path: "people.txt")
    #expect(found.map(\.description) == [KeyTests.recipient, KeyTests.recipient])
    for bad in [KeyTests.secret, "GFPYY", "\u{FEFF}\(KeyTests.recipient)", "\(KeyTests.recipient) # me"] {
      let error = #expect(throws: DrydockError.self) {
        try KeyFile.recipients(in: Array("\n\(bad)\n".utf8), path: "people.txt")
      }
      #expect(error?.message.hasPrefix("line 2: ") == true)
      #expect(error?.description.contains("GFPYY") == false)
    }
  }
}
