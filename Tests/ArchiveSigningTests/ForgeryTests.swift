import ArchiveSigning
import DrydockErrors
import Foundation
import TestSupport
import Testing

@Suite("Signatures: forged and malformed ones, and files of keys")
struct ForgeryTests {
  private let programs: SigningPrograms

  init() throws { programs = try SigningPrograms() }

  private static let message = Array("# a statement\n".utf8)
  private let time = Date(timeIntervalSince1970: 1_795_000_000)

  @Test("Keys are read from regular files: a pipe would wait for who writes into it", .timeLimit(.minutes(1)))
  func pipes() throws {
    let directory = try TemporaryDirectory()
    #expect(mkfifo(directory("pipe"), 0o600) == 0)
    for file in [directory("pipe"), "/dev/zero", directory.path] {
      expectError(.badKey, "not a regular file") { try TrustedKeys(files: [file]) }
    }
  }

  @Test(
    "No byte of a signature can be changed",
    arguments: [SigningPrograms.Kind.minisign, .signify, .ed25519, .p256])
  func changedBytes(_ kind: SigningPrograms.Kind) throws {
    let (secret, open) = try programs.makeKey(kind, "one")
    let file = try programs.write("statement", Self.message)
    let signature = try programs.sign(kind, file, with: secret)
    let trusted = try TrustedKeys(files: [open])
    #expect(throws: Never.self) { try trusted.signer(of: Self.message, at: time, [signature]) }
    let lines = signature.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    // The first line of minisign and signify is a comment that nothing authenticates.
    let start = kind.isSSH ? 0 : lines[0].count
    for index in start..<signature.count {
      var forged = signature
      forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      let found = code { try trusted.signer(of: Self.message, at: time, [forged]) }
      #expect(found == .badSignature || found == .untrusted, "byte \(index)")
    }
    for count in 0..<signature.count - 2 {
      let found = code { try trusted.signer(of: Self.message, at: time, [Array(signature.prefix(count))]) }
      // Without its last two lines, a minisign signature has the form of signify's; and one without comment is refused.
      #expect(found == .badSignature || found == .untrusted, "\(count) bytes")
    }
  }

  @Test("Hostile files of signatures are refused, and none stops the program")
  func hostile() throws {
    let (secret, open) = try programs.makeKey(.ed25519, "one")
    let trusted = try TrustedKeys(files: [open])
    let file = try programs.write("statement", Self.message)
    let foreign = try programs.sign(.ed25519, file, with: secret, namespace: "git")
    let good = try programs.sign(.ed25519, file, with: secret)
    let text = String(decoding: good, as: UTF8.self)
    expectError(.badSignature) { try trusted.signer(of: Self.message, at: time, [foreign]) }
    let blob = try #require(Data(base64Encoded: text.split(separator: "\n").dropFirst().dropLast().joined()))
    func armored(_ blob: [UInt8]) -> [UInt8] {
      Array(
        "-----BEGIN SSH SIGNATURE-----\n\(Data(blob).base64EncodedString())\n-----END SSH SIGNATURE-----\n"
          .utf8)
    }
    #expect(throws: Never.self) { try trusted.signer(of: Self.message, at: time, [armored([UInt8](blob))]) }
    var cases: [[UInt8]] = [
      [], [0], Array("untrusted comment: ".utf8), Array("untrusted comment: \n".utf8),
      Array("-----BEGIN SSH SIGNATURE-----".utf8), Array(repeating: UInt8(ascii: "A"), count: 1 << 20),
      Array(text.replacing("SSH SIGNATURE", with: "PGP SIGNATURE").utf8), Array((text + "x\n").utf8),
      Array(text.replacing("-----END", with: "=\n-----END").utf8), [0xFF, 0xFE],
      armored([UInt8](blob) + [0]),
    ]
    // Every length that is read could be too large: each group of four bytes becomes one.
    for start in 0..<blob.count - 4 {
      var changed = [UInt8](blob)
      changed.replaceSubrange(start..<start + 4, with: [0xFF, 0xFF, 0xFF, 0xFF])
      cases.append(armored(changed))
    }
    for bytes in cases {
      let found = code { try trusted.signer(of: Self.message, at: time, [bytes]) }
      #expect(found == .badSignature || found == .untrusted)
    }
    expectError(.untrusted) { try trusted.signer(of: Self.message, at: time, []) }
  }

  @Test("Lines of allowed signers")
  func allowedSigners() throws {
    let (secret, open) = try programs.makeKey(.ed25519, "one")
    let file = try programs.write("statement", Self.message)
    let signature = try programs.sign(.ed25519, file, with: secret)
    let key = String(decoding: try programs.read(open), as: UTF8.self)
      .split(separator: " ").prefix(2).joined(separator: " ")
    func signer(_ lines: String) throws -> Signer {
      let trusted = try TrustedKeys(files: [programs.write("allowed", lines)])
      return try trusted.signer(of: Self.message, at: time, [signature])
    }
    // 1,795,000,000 is in November 2026.
    for line in [
      key, "\(key) a comment", "a@example.com,b@example.com \(key)", "* \(key)", "# a comment\n\n\(key)",
      "a namespaces=\"git,archive@drydock\" \(key)", "a namespaces=\"*\" \(key)",
      "a valid-after=\"20260101\" \(key)",
      "a valid-after=\"20260101Z\",valid-before=\"202701010000Z\" \(key)",
      "a valid-before=\"20260101Z\" \(key)\na valid-after=\"20260101Z\" \(key)", "\"a b\" \(key)\r",
      "a valid-before=\"20270101000000\" \(key)",
    ] { #expect(throws: Never.self, "\(line)") { try signer(line) } }
    #expect(try signer("a@example.com,b \(key) c").name == "a@example.com,b")
    for (line, expected) in [
      ("a valid-after=\"20270101Z\" \(key)", DrydockError.Code.untrusted),
      ("a valid-before=\"20260101Z\" \(key)", .untrusted), ("a namespaces=\"git\" \(key)", .badKey),
      ("a cert-authority \(key)", .badKey), ("a namespaces=\"arch*\" \(key)", .badKey),
      ("a valid-after=\"2026\" \(key)", .badKey), ("a valid-after=\"20261301\" \(key)", .badKey),
      ("a valid-after=20260101 \(key)", .badKey), ("a no-touch-required \(key)", .badKey),
      ("a \"b \(key)", .badKey),
      ("a", .badKey), ("", .badKey), ("ssh-ed25519 AAAA", .badKey), ("ssh-ed25519", .badKey),
      (key.replacing("ssh-ed25519 ", with: "ssh-rsa "), .badKey),
      ("sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t", .badKey),
    ] { #expect(code { try signer(line) } == expected, "\(line)") }
    let error = #expect(throws: DrydockError.self) { try signer("\(key)\na cert-authority \(key)") }
    #expect(error?.line == 2)
  }

  @Test(
    "A secret key in the wrong place is refused, and its text is in no message",
    arguments: SigningPrograms.Kind.allCases)
  func secretInPlaceOfPublic(_ kind: SigningPrograms.Kind) throws {
    let (secret, open) = try programs.makeKey(kind, "one")
    let error = expectError(.badKey) { try TrustedKeys(files: [secret]) }
    #expect(error?.message == "this is a secret key; give the public one")
    // The public key in place of the secret one.
    expectError(.badKey) { try SigningKey(file: open) }
    // A damaged key is not shown.
    let text = String(decoding: try programs.read(secret), as: UTF8.self)
    let body = String(text.split(separator: "\n")[1])
    var changed = Array(text.utf8)
    for index in stride(from: text.split(separator: "\n")[0].utf8.count + 8, to: changed.count - 40, by: 7) {
      let original = changed[index]
      guard original != UInt8(ascii: "\n") else { continue }
      changed[index] = UInt8(ascii: "!")
      let damaged = expectError(.badKey) { try SigningKey(file: programs.write("bad.key", changed)) }
      #expect(damaged.map { !"\($0)".contains(body.prefix(12)) } == true)
      changed[index] = original
    }
  }

  @Test("A key shows its public half alone")
  func description() throws {
    let (secret, _) = try programs.makeKey(.minisign, "one")
    let key = try SigningKey(file: secret)
    var text = ""
    dump(key, to: &text)
    #expect(key.description.hasPrefix("minisign "))
    #expect(text.contains(key.description))
    #expect(text.split(separator: "\n").count == 2)
  }
}
