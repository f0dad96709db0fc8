import AgeEncryption
import Cryptography
import DrydockErrors
import TestSupport
import Testing

/// Every vector comes to what the specification says, through each way of opening a file.
@Suite struct VectorTests {
  @Test func `There are vectors of every outcome`() throws {
    let outcomes = try Vector.names().map { try Vector($0).expected }
    #expect(outcomes.count > 150)
    for (outcome, count) in [
      (Vector.Outcome.success, 10), (.noMatch, 5), (.macFailure, 3), (.headerFailure, 80),
      (.payloadFailure, 10), (.armorFailure, 25),
    ] {
      #expect(outcomes.count { $0 == outcome } >= count)
    }
  }

  @Test(arguments: try Vector.names()) func `In memory, and at random where it is not armored`(
    name: String
  ) throws {
    let vector = try Vector(name)
    try check(vector) { Array(try Age.open(vector.file, with: vector.keys()).withBytes { Array($0) }) }
    if name.hasPrefix("armor_") { return }
    try check(vector) {
      let reader = try AgeReader(size: UInt64(vector.file.count), keys: vector.keys()) { target, offset in
        target.copyBytes(from: vector.file[Int(offset)..<(Int(offset) + target.count)])
      }
      var plain = [UInt8](repeating: 0, count: Int(reader.plainSize))
      try plain.withUnsafeMutableBytes { try reader.read(into: $0, at: 0) }
      return plain
    }
  }

  /// Nothing of ours runs here: it shows that the vectors are right.
  @Test("The age program agrees", .enabled(if: TestExtent.isFull))
  func program() throws {
    let directory = try TemporaryDirectory()
    let program = try AgeProgram(in: directory)
    let complaints: [Vector.Outcome: String] = [
      .noMatch: "no identity matched", .macFailure: "bad header MAC", .armorFailure: "invalid armor",
    ]
    for name in try Vector.names() {
      let vector = try Vector(name)
      // With a passphrase it wants a terminal: `PassphraseTests` has one.
      guard !vector.identities.isEmpty else { continue }
      let text = vector.identities.joined(separator: "\n") + "\n"
      let result = try program.result(
        ["-d", "-i", program.file("key", Array(text.utf8))], input: vector.file)
      #expect(result.succeeded == (vector.expectedOfAge == .success), "\(name) \(result)")
      if let complaint = complaints[vector.expectedOfAge] { #expect(result.errors.contains(complaint)) }
    }
  }

  private func check(_ vector: Vector, _ open: () throws -> [UInt8]) throws {
    let outcome: Vector.Outcome
    do {
      let plain = try open()
      #expect(try SHA256.hash(plain).hex == vector.payload)
      outcome = .success
    } catch let error as DrydockError {
      outcome = try Vector.Outcome(error.code)
      for secret in vector.identities + vector.passphrases { #expect(!error.message.contains(secret)) }
    }
    #expect(outcome == vector.expected)
  }
}
