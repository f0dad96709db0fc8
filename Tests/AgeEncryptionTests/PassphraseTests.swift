import AgeEncryption
import Cryptography
import Foundation
import TestSupport
import Testing

/// Files that a passphrase opens. The age program asks for it, so it runs at a terminal.
@Suite(.serialized) struct PassphraseTests {
  private static let passphrase = "a made-up pässphrase"
  private static let keys = AgeKeys(passphrases: [KeyTests.bytes(passphrase)])

  @Test(arguments: [1, 65_537]) func `age opens what is sealed here`(size: Int) throws {
    let directory = try TemporaryDirectory()
    let target = AgeTarget.passphrase(KeyTests.bytes(Self.passphrase), workFactor: 12)
    let sealed = try Age.seal(SecretBytes(SeededRandom.noise(size)), to: target)
    let program = try AgeProgram(in: directory)
    let input = try program.file("in.age", sealed)
    try program.run(["-d", "-o", directory("out"), input], answering: Self.passphrase)
    #expect(Array(try RawFiles.read(Array(directory("out").utf8))) == SeededRandom.noise(size))
  }

  @Test func `What age seals is opened here, and armored`() throws {
    let directory = try TemporaryDirectory()
    let program = try AgeProgram(in: directory)
    let input = try program.file("in", SeededRandom.noise(100_000))
    try program.run(["-p", "-a", "-o", directory("out"), input], answering: Self.passphrase)
    let sealed = Array(try RawFiles.read(Array(directory("out").utf8)))
    #expect(try Age.open(sealed, with: Self.keys) == SecretBytes(SeededRandom.noise(100_000)))
  }

  @Test func `Several passphrases are tried in order`() throws {
    let sealed = try Age.seal(
      SecretBytes([1]), to: .passphrase(KeyTests.bytes(Self.passphrase), workFactor: 3))
    let keys = AgeKeys(passphrases: [KeyTests.bytes("another"), KeyTests.bytes(Self.passphrase)])
    #expect(try Age.open(sealed, with: keys) == SecretBytes([1]))
    let wrong = AgeKeys(passphrases: [
      KeyTests.bytes("another"), KeyTests.bytes(Self.passphrase.uppercased()),
    ])
    expectError(.noIdentity, "none of the 2 passphrases") { try Age.open(sealed, with: wrong) }
  }

  @Test func `The work factor is 18 where none is asked for, and costs what it says`() throws {
    guard case .passphrase(_, let standard) = AgeTarget.passphrase(SecretBytes([1])) else { return }
    #expect(standard == 18)
    let sealed = try Age.seal(
      SecretBytes([1]), to: .passphrase(KeyTests.bytes(Self.passphrase), workFactor: 3))
    #expect(String(decoding: sealed.prefix(80), as: UTF8.self).contains(#/-> scrypt [A-Za-z0-9+/]{22} 3\n/#))
  }

  @Test(arguments: [19, 22, 40])
  func `A factor that takes more than 256 MiB is refused before the memory is taken`(factor: Int) throws {
    let sealed = try Age.seal(
      SecretBytes([1]), to: .passphrase(KeyTests.bytes(Self.passphrase), workFactor: 3))
    let text = String(decoding: sealed, as: Unicode.ASCII.self)
    let end = try #require(text.firstRange(of: " 3\n")?.upperBound)
    let head = text.distance(from: text.startIndex, to: end) - 2
    let hostile = sealed[..<head] + Array("\(factor)\n".utf8) + sealed[(head + 2)...]
    expectError(.header, "256 MiB") {
      try Age.open(Array(hostile), with: AgeKeys(passphrases: [KeyTests.bytes(Self.passphrase)]))
    }
  }

  @Test(arguments: [-1, 0, 19, 64]) func `An empty passphrase and a factor out of range are refused`(
    factor: Int
  ) {
    for target in [
      AgeTarget.passphrase(KeyTests.bytes(Self.passphrase), workFactor: factor), .passphrase(SecretBytes([])),
    ] {
      expectError(.badKey) { try AgeFileStart(to: target) }
    }
  }
}
