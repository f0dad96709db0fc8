import ArchiveSigning
import Cryptography
import DrydockErrors
import Foundation
import TestSupport
import Testing

@Suite("Signatures: stock programs and Drydock accept each other's")
struct InteropTests {
  private let programs: SigningPrograms

  init() throws { programs = try SigningPrograms() }

  private static let text = "# a statement\nof two lines\n"
  private let time = Date(timeIntervalSince1970: 1_795_000_000)

  @Test(
    "minisign, signify and ssh-keygen accept what is signed here", arguments: SigningPrograms.Kind.allCases)
  func signedHere(_ kind: SigningPrograms.Kind) throws {
    let (secret, open) = try programs.makeKey(kind, "one")
    // Drydock itself signs with Ed25519 only; ssh-agent with the others.
    guard !kind.isSSH || kind == .ed25519 else {
      expectError(nil, "ssh-agent") { try SigningKey(file: secret) }
      return
    }
    let key = try SigningKey(file: secret)
    let file = try programs.write("statement", Self.text)
    let signature = try programs.write("own.sig", key.sign(Array(Self.text.utf8), comment: "an archive"))
    let result = try programs.accepts(kind, file, signature, by: open)
    #expect(result.succeeded, "\(result)")
    if kind == .minisign { #expect(result.output.contains("an archive")) }
    try programs.write("statement", Self.text + " ")
    #expect(try !programs.accepts(kind, file, signature, by: open).succeeded)
  }

  @Test("What they sign is accepted here, and nothing else", arguments: SigningPrograms.Kind.allCases)
  func signedThere(_ kind: SigningPrograms.Kind) throws {
    let (secret, open) = try programs.makeKey(kind, "one")
    let file = try programs.write("statement", Self.text)
    let signature = try programs.sign(kind, file, with: secret)
    let trusted = try TrustedKeys(files: [open])
    let signer = try trusted.signer(of: Array(Self.text.utf8), at: time, [signature])
    #expect(signer.key.hasPrefix(kind.isSSH ? (kind == .rsa ? "ssh-rsa SHA256:" : "") : "minisign "))
    if kind.isSSH { #expect(signer.name == "one@example.com") }

    expectError(.badSignature) {
      try trusted.signer(of: Array((Self.text + " ").utf8), at: time, [signature])
    }
    let (_, other) = try programs.makeKey(kind, "two")
    let strangers = try TrustedKeys(files: [other])
    expectError(.untrusted) { try strangers.signer(of: Array(Self.text.utf8), at: time, [signature]) }
    // One valid signature of several is enough, wherever it is.
    let broken = Array("untrusted comment: x\nRWQ=\n".utf8)
    #expect(throws: Never.self) {
      try trusted.signer(of: Array(Self.text.utf8), at: time, [broken, signature])
    }
  }

  @Test("minisign's older form, of the file and not of its hash, is accepted")
  func legacyMinisign() throws {
    let (secret, open) = try programs.makeKey(.minisign, "one")
    let file = try programs.write("statement", Self.text)
    try programs.must(
      "minisign", ["-S", "-l", "-s", secret, "-m", file, "-x", programs.directory("old.sig")])
    let signature = try programs.read(programs.directory("old.sig"))
    #expect(throws: Never.self) {
      try TrustedKeys(files: [open]).signer(of: Array(Self.text.utf8), at: time, [signature])
    }
  }

  @Test("A key of minisign with a passphrase")
  func encryptedMinisign() throws {
    let (secret, open) = (programs.directory("sealed.key"), programs.directory("sealed.pub"))
    // With less memory minisign derives the key at less cost; by default each derivation takes 1 GiB and three seconds.
    let limit = TestExtent.isFull ? "" : "ulimit -v 60000; "
    try programs.must(
      "sh", ["-c", limit + "exec minisign -G -p '\(open)' -s '\(secret)'"], input: "made up\nmade up\n")
    let key = try SigningKey(file: secret) { SecretBytes(Array("made up".utf8)) }
    let file = try programs.write("statement", Self.text)
    let signature = try programs.write("own.sig", key.sign(Array(Self.text.utf8), comment: "an archive"))
    #expect(try programs.accepts(.minisign, file, signature, by: open).succeeded)

    let none = #expect(throws: DrydockError.self) { try SigningKey(file: secret) }
    #expect(none?.message == "the signing key is encrypted; give its passphrase")
  }

  @Test("Keys in ssh-agent sign, also those of encrypted files", arguments: SigningPrograms.Kind.ssh)
  func agent(_ kind: SigningPrograms.Kind) throws {
    let (secret, open) = try programs.makeKey(kind, "one")
    let socket = programs.directory("agent")
    let agent = try Command.spawn(Tools.system("ssh-agent"), ["-D", "-a", socket], input: [])
    defer { agent.kill() }
    // 2: nobody listens there yet.
    while try programs.run("ssh-add", ["-l"], environment: ["SSH_AUTH_SOCK": socket]).exitCode == 2 {
      usleep(1000)
    }
    let file = try programs.write("statement", Self.text)
    func sign(_ keyFile: String) throws -> String {
      let key = try SigningKey(file: keyFile, agent: socket)
      return try programs.write("own.sig", key.sign(Array(Self.text.utf8), comment: ""))
    }
    expectError(nil, "add the key with `ssh-add`") { try sign(open) }
    try programs.must("ssh-add", ["-q", secret], environment: ["SSH_AUTH_SOCK": socket])
    try programs.must("ssh-keygen", ["-q", "-p", "-P", "", "-N", "made up", "-f", secret])
    for keyFile in [open, secret] {
      let result = try programs.accepts(kind, file, sign(keyFile), by: open)
      #expect(result.succeeded, "\(result)")
    }
    expectError(nil, "SSH_AUTH_SOCK") { try SigningKey(file: secret) }
  }

  @Test("signify's encrypted keys are refused with a reason")
  func encryptedSignify() throws {
    let text = "untrusted comment: signify secret key\n" + Self.encryptedSignifyKey + "\n"
    let programs = try SigningPrograms()
    expectError(nil, "signify's encrypted keys are not supported") {
      try SigningKey(file: programs.write("sealed.key", text))
    }
  }

  /// The form of one: 42 rounds, and zeros.
  private static let encryptedSignifyKey = Data(
    Array("EdBK".utf8) + [0, 0, 0, 42] + [UInt8](repeating: 0, count: 96)
  ).base64EncodedString()
}

/// The code of the error that a body throws; nil if it throws none.
func code(_ body: () throws -> some Any) -> DrydockError.Code? {
  do {
    _ = try body()
    return nil
  } catch { return (error as? DrydockError)?.code }
}
