import AgeEncryption
import Cryptography
import TestSupport
import Testing

/// What one side seals, the other opens: this module and the `age` program.
@Suite struct InteropTests {
  private let directory: TemporaryDirectory, program: AgeProgram

  init() throws {
    directory = try TemporaryDirectory()
    program = try AgeProgram(in: directory)
  }

  static let sizes = [0, 65_536, 400_000]

  @Test(arguments: sizes)
  func `age opens what is sealed here, for each of three recipients`(size: Int) throws {
    let identities = try (0..<3).map { _ in try AgeIdentity.generate() }
    let plain = SeededRandom.noise(size)
    var random = SeededRandom(seed: UInt64(size))
    var sealed: [UInt8] = []
    let writer = try AgeWriter(to: .recipients(identities.map(\.recipient))) { sealed.append(contentsOf: $0) }
    var rest = plain[...]
    while !rest.isEmpty {
      let piece = rest.prefix(Int.random(in: 0...50_000, using: &random))
      try piece.withUnsafeBytes { try writer.write($0) }
      rest = rest.dropFirst(piece.count)
    }
    try writer.finish()
    for identity in identities {
      #expect(try program.run(["-d", "-i", program.keyFile(identity)], input: sealed) == plain)
    }
    let other = try AgeIdentity.generate()
    let result = try program.result(["-d", "-i", program.keyFile(other)], input: sealed)
    #expect(!result.succeeded && result.errors.contains("no identity matched"))
  }

  @Test("What age seals to three recipients is opened here, armored or not", arguments: sizes, [[], ["-a"]])
  func weOpen(size: Int, options: [String]) throws {
    let identities = try (0..<3).map { _ in try AgeIdentity.generate() }
    let plain = SeededRandom.noise(size)
    let recipients = identities.flatMap { ["-r", "\($0.recipient)"] }
    let sealed = try program.run(options + recipients, input: plain)
    for identity in identities {
      let keys = AgeKeys(identities: [try .generate(), identity])
      #expect(try Age.open(sealed, with: keys) == SecretBytes(plain))
    }
    expectError(.noIdentity) { try Age.open(sealed, with: AgeKeys(identities: [.generate()])) }
  }

  @Test func `What age seals is read at random here`() throws {
    let identity = try AgeIdentity.generate()
    let plain = SeededRandom.noise(1_000_000)
    let sealed = try program.run(["-r", "\(identity.recipient)"], input: plain)
    let reader = try AgeReader(size: UInt64(sealed.count), keys: AgeKeys(identities: [identity])) {
      $0.copyBytes(from: sealed[Int($1)..<(Int($1) + $0.count)])
    }
    #expect(reader.plainSize == 1_000_000)
    var part = [UInt8](repeating: 0, count: 70_000)
    try part.withUnsafeMutableBytes { try reader.read(into: $0, at: 600_000) }
    #expect(part == Array(plain[600_000..<670_000]))
  }

  @Test func `More chunks than one byte counts, both ways`() throws {
    let identity = try AgeIdentity.generate()
    let plain = SeededRandom.noise(258 * PayloadCipher.chunkLength + 1)
    let ours = try plain.withUnsafeBytes { try Age.seal($0, to: .recipients([identity.recipient])) }
    #expect(try program.run(["-d", "-i", program.keyFile(identity)], input: ours) == plain)
    let theirs = try program.run(["-r", "\(identity.recipient)"], input: plain)
    #expect(try Age.open(theirs, with: AgeKeys(identities: [identity])) == SecretBytes(plain))
  }

  @Test func `Keys that age-keygen makes are read here`() throws {
    let made = try program.keygen([])
    let identities = try KeyFile.identities(in: SecretBytes(made.outputBytes), path: nil)
    #expect(identities.count == 1)
    #expect(made.output.contains("# public key: \(identities[0].recipient)\n"))
    let sealed = try program.run(["-r", "\(identities[0].recipient)"], input: [7])
    #expect(try Age.open(sealed, with: AgeKeys(identities: identities)) == SecretBytes([7]))
  }

  @Test(arguments: ["\n", "\r\n"])
  func `Keys made here are read by age-keygen and age, with comments and CRLF`(end: String) throws {
    let identities = [try AgeIdentity.generate(), try AgeIdentity.generate()]
    let texts = identities.map { KeyTests.text(KeyFile.text(of: $0, created: "2026-11-20T10:15:00Z")) }
    let file = "# mine\n\n" + texts.joined(separator: "\n")
    let bytes = Array(file.replacing("\n", with: end).utf8)
    let recipients = try program.keygen(["-y"], input: bytes)
    #expect(recipients.output == identities.map { "\($0.recipient)\n" }.joined())
    for identity in identities {
      let sealed = try Age.seal(SecretBytes([1, 2]), to: .recipients([identity.recipient]))
      #expect(try program.run(["-d", "-i", program.file("keys", bytes)], input: sealed) == [1, 2])
    }
    #expect(try KeyFile.identities(in: SecretBytes(bytes), path: nil).count == 2)
    // The same lines as a file of recipients, for both.
    let people = Array(recipients.output.replacing("\n", with: end).utf8)
    #expect(try KeyFile.recipients(in: people, path: nil) == identities.map(\.recipient))
    let sealed = try program.run(["-R", program.file("people", people)], input: [3])
    #expect(try Age.open(sealed, with: AgeKeys(identities: [identities[1]])) == SecretBytes([3]))
  }
}
