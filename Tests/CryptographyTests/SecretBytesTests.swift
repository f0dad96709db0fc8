import Cryptography
import Testing

/// Secrets in memory.
@Suite("Secret bytes") struct SecretBytesTests {
  private static let canary = Array("made-up canary".utf8)

  @Test("Content and equality") func content() {
    let secret = SecretBytes(Self.canary)
    #expect(secret.count == Self.canary.count)
    #expect(secret.withBytes { Array($0) } == Self.canary)
    #expect(secret == SecretBytes(Self.canary))
    #expect(secret != SecretBytes(Self.canary + [0]))
    #expect(secret != SecretBytes([UInt8](repeating: 0, count: Self.canary.count)))
    #expect(SecretBytes([]) == SecretBytes([]) && SecretBytes([]).count == 0)
    #expect(SecretBytes(count: 3) { _ in }.withBytes { Array($0) } == [0, 0, 0])
    #expect(Self.canary.withUnsafeBytes { SecretBytes(copying: $0) } == secret)
  }

  @Test("The source is wiped where that was asked for") func wiping() {
    var source = Self.canary
    #expect(SecretBytes(wiping: &source) == SecretBytes(Self.canary))
    #expect(source == [UInt8](repeating: 0, count: Self.canary.count))
  }

  @Test("Nothing that prints or dumps shows them") func hidden() {
    struct Holder { var secret: SecretBytes? }
    let secret = SecretBytes(Self.canary)
    var dumped = ""
    dump(Holder(secret: secret), to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), "\(Holder(secret: secret))", "\([secret])", dumped]
    {
      #expect(!text.contains("canary") && !text.contains("\(Self.canary[0]), \(Self.canary[1])"))
      #expect(text.contains("(secret, 14 bytes)"))
    }
  }

  @Test("A filling that fails leaves nothing behind") func failing() {
    struct Refusal: Error {}
    #expect(throws: Refusal.self) { try SecretBytes(count: 8) { _ in throw Refusal() } }
  }

  @Test("Fingerprints are equal for equal bytes, of one value of their type") func fingerprints() throws {
    let fingerprint = try Fingerprint()
    let first = fingerprint.text(of: SecretBytes(Self.canary))
    #expect(first.count == 8 && first.allSatisfy { $0.isHexDigit && !$0.isUppercase })
    #expect(first == Self.canary.withUnsafeBytes { fingerprint.text(of: $0) })
    #expect(first != fingerprint.text(of: SecretBytes(Self.canary + [0])))
    #expect(fingerprint.text(of: SecretBytes([])).count == 8)
    #expect([UInt8]().withUnsafeBytes { fingerprint.text(of: $0) } == fingerprint.text(of: SecretBytes([])))
    #expect(try first != Fingerprint().text(of: SecretBytes(Self.canary)))
  }
}
