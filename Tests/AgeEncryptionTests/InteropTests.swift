import AgeEncryption
import TestSupport
import Testing

/// What one side seals, the other opens: this module and the `age` program.
@Suite("Interoperation with age") struct InteropTests {
  static let sizes = [0, 1, 65_535, 65_536, 65_537, 131_072, 400_000]

  @Test("age opens what is sealed here", arguments: sizes)
  func theyOpen(size: Int) throws {
    try TemporaryDirectory.with { directory in
      let program = try AgeProgram(in: directory)
      let identity = try AgeIdentity.generate()
      let plain = Samples.bytes(size)
      let sealed = try plain.withUnsafeBytes { try Age.seal($0, to: .recipients([identity.recipient])) }
      #expect(try program.run(["-d", "-i", program.keyFile(identity)], input: sealed) == plain)
    }
  }

  @Test("What age seals is opened here", arguments: sizes)
  func weOpen(size: Int) throws {
    try TemporaryDirectory.with { directory in
      let program = try AgeProgram(in: directory)
      let identity = try AgeIdentity.generate()
      let plain = Samples.bytes(size)
      let sealed = try program.run(["-r", "\(identity.recipient)"], input: plain)
      #expect(try Age.open(sealed, with: AgeKeys(identities: [identity])) == SecretBytes(plain))
    }
  }
}
