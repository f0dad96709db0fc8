import Foundation
import TestSupport
import Testing

/// Encrypted archives by the program, and by the programs of others.
@Suite struct EncryptedArchiveTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  struct Way: CustomTestStringConvertible {
    var testDescription: String
    var writing: [String]
    var reading: [String]
    /// For the age program; nil where it asks at a terminal.
    var age: [String]?
  }

  static let ways = [
    Way(
      testDescription: "one recipient", writing: ["--recipient", "{R1}"], reading: ["--identity", "k1"],
      age: ["-i", "k1"]),
    Way(
      testDescription: "several recipients", writing: ["--recipient", "{R1}", "--recipients-file", "others"],
      reading: ["--identity", "k3"], age: ["-i", "k2"]),
    Way(
      testDescription: "a passphrase", writing: ["--passphrase-file", "words"],
      reading: ["--passphrase-file", "words"],
      age: nil),
  ]

  private func prepare() throws -> [String: String] {
    try sandbox.create(version: 4)
    let keys = try [1, 2, 3].map { try sandbox.key("k\($0)") }
    try sandbox.write("others", "# colleagues\n\(keys[1])\n\(keys[2])\n")
    try sandbox.write("words", "correct horse battery staple\n")
    return ["{R1}": keys[0], "{R2}": keys[1], "{R3}": keys[2]]
  }

  @Test(arguments: ways) func `Written here, opened by age and tar, and by every command`(_ way: Way) throws {
    let names = try prepare()
    try sandbox.succeed(["snapshot", "Notes", "-o", "A"] + way.writing.map { names[$0] ?? $0 })
    try sandbox.succeed("snapshot Notes -o Plain --no-encryption")
    if let age = way.age {
      try sandbox.shell(
        "mkdir Tar Bsd; age -d \(age.joined(separator: " ")) A | tar --zstd -x -C Tar 2>/dev/null")
      try sandbox.shell("age -d \(age.joined(separator: " ")) A | bsdtar -xf - -C Bsd")
    } else {
      let script = Sandbox.repository + "/Tests/AgeEncryptionTests/at_terminal.py"
      try sandbox.shell(
        "python3 \(script) 'correct horse battery staple' age -d -o Opened A; mkdir Tar Bsd; tar --zstd -xf Opened -C Tar 2>/dev/null; "
          + "bsdtar -xf Opened -C Bsd")
    }
    try sandbox.tree("Tar/container").expectSame(
      as: sandbox.tree("Bsd/container"), comparing: [.content, .type])
    try sandbox.succeed(["restore", "A", "New"] + way.reading)
    try sandbox.succeed("restore Plain FromPlain")
    try sandbox.tree("New").expectSame(as: sandbox.tree("FromPlain"))
    try sandbox.tree("Tar/container").expectSame(as: sandbox.tree("New"), comparing: [.content, .type])
    // A passphrase takes most of a second for each; other commands are in the session `encrypted.txt`.
    _ = try sandbox.key("device")
    let part = ["restore", "A", "Part", "--migrate", "-m", "Migrations", "--device-key", "device"]
    if way.age != nil { try sandbox.succeed(part + way.reading) }
  }

  @Test func `Encrypted again by age, it is read; what only looks like one is refused`() throws {
    let names = try prepare()
    let (one, two) = (names["{R1}"] ?? "", names["{R2}"] ?? "")
    try sandbox.encrypted("A", to: one)
    try sandbox.shell("age -d -i k1 A | age -r \(two) -r \(one) > B")
    for key in ["k1", "k2"] { try sandbox.succeed("verify", "B", "--data", "--identity", key) }
    // What tar, zstd and age make is no archive of Drydock's.
    try sandbox.shell(
      "tar -c Notes | zstd -q | age -r \(one) > D; echo hello | age -r \(one) > E; age -r \(one) < /dev/null > F"
    )
    try sandbox.expectRefusal("show D --identity k1", exit: 4, ["not an archive"])
    try sandbox.expectRefusal("restore E New --identity k1", exit: 4, ["not an archive"])
    try sandbox.expectRefusal("show F --identity k1", exit: 4, ["the file is empty"])
  }

  /// What is said of wrong keys, passphrases and damage is in the session `encrypted.txt`.
  @Test func `A wrong key, or none, is exit code 4 from the header alone, and nothing changes`() throws {
    let names = try prepare()
    try sandbox.encrypted("A", to: names["{R1}"] ?? "", names["{R2}"] ?? "")
    try sandbox.expectUnchanged {
      for command in [
        ["restore", "A", "Notes"], ["diff", "A", "Notes"], ["export", "A", "-o", "B", "--no-encryption"],
      ] {
        for keys in [[], ["--identity", "k3"]] {
          try sandbox.expectError(
            command + keys, exit: 4, ["encrypted to 2 recipients (X25519)", "--identity FILE"])
        }
      }
    }
    // Nothing but the header is read: the rest of the archive may be missing.
    try sandbox.write("Start", bytes: Array(sandbox.read("A").prefix(600)))
    let verified = try sandbox.drydock("verify Start --data --identity k3").expect(exit: 4)
    #expect(verified.output.hasPrefix("BAD Start  the archive is encrypted to 2 recipients"))
    var bytes = try sandbox.read("A")
    bytes[bytes.count / 2] ^= 1
    try sandbox.write("Damaged", bytes: bytes)
    try sandbox.expectRefusal(
      "restore Damaged New --identity k1", exit: 4,
      ["the key fits, but the encrypted content is damaged"])
  }

  @Test func `Who has only recipients writes archives, and cannot read them back`() throws {
    let names = try prepare()
    try sandbox.write(
      "drydock.yaml",
      sandbox.text("drydock.yaml")
        + "\nrecipients: [\(names["{R1}"] ?? "")]\n")
    // A key that must not be needed: reading it would fail.
    try sandbox.write("unreadable", "AGE-SECRET-KEY-1 is not one\n")
    let result = try sandbox.drydock(
      "snapshot Notes -r Backups", environment: ["DRYDOCK_IDENTITY": "unreadable"]
    ).expect(errors: ", encrypted; ")
    let path = result.output.trimmingCharacters(in: .newlines)
    #expect(path.hasSuffix(".tar.zst.age"))
    try sandbox.expectRefusal(["show", path], exit: 4, ["no identity was given"])
    try sandbox.succeed("show", path, "--identity", "k1")
    try sandbox.succeed(["show", path], environment: ["DRYDOCK_IDENTITY": "k2:k1"])
    // What drydock.yaml says gives way to the variable, that to the flag.
    try sandbox.succeed(
      "snapshot Notes -o Two",
      environment: ["DRYDOCK_RECIPIENTS": names["{R2}"], "DRYDOCK_IDENTITY": nil])
    try sandbox.expectRefusal("show Two --identity k1", exit: 4, ["the identity does not match"])
    try sandbox.succeed("show Two --identity k2")
    try sandbox.succeed(
      ["snapshot", "Notes", "-o", "Three", "--recipient", names["{R3}"] ?? ""],
      environment: ["DRYDOCK_RECIPIENTS": names["{R2}"]])
    try sandbox.succeed("show Three --identity k3")
    try sandbox.succeed("snapshot Notes -o Open --no-encryption")
    try sandbox.succeed("show Open")
  }

  /// What else is refused is in the session `encrypted.txt`; `CanaryTests` looks for secret keys that are given by mistake.
  @Test func `Files that are no keys or passphrases, and recipients in drydock.yaml that are none`() throws {
    _ = try prepare()
    for (options, exit, words) in [
      ("--passphrase-file others", 64, ["is not a passphrase file"]),
      ("--passphrase-file /dev/null", 64, ["is not a passphrase file"]),
      ("--recipients-file k1", 4, ["line 3"]), ("--recipients-file none", 1, ["none"]),
    ] as [(String, Int32, [String])] {
      try sandbox.expectRefusal("snapshot Notes -o A " + options, exit: exit, words)
    }
    for (recipients, words) in [
      ("[age1nonsense]", ["drydock.yaml:1:14", "not a recipient"]),
      ("age1nonsense", ["drydock.yaml:1:13", "is a list"]),
    ] {
      try sandbox.write("drydock.yaml", "recipients: \(recipients)\n")
      try sandbox.expectRefusal("snapshot Notes -o B", exit: 4, words, container: nil)
    }
  }

  @Test func `A person at a terminal is asked for the passphrase, and sees nothing of it`() throws {
    _ = try prepare()
    let words = "correct horse battery staple"
    try sandbox.atTerminal(words, ["snapshot", "Notes", "-o", "A", "--passphrase"]).expect()
    try sandbox.succeed("show A --passphrase-file words")
    try sandbox.succeed("snapshot Notes -o B --no-encryption")
    try sandbox.seal(sandbox("B"), passphrase: words)
    let shown = try sandbox.atTerminal(words, ["show", "B.age"]).expect()
    #expect(!shown.errors.contains("horse"), "\(shown)")
    let wrong = try sandbox.atTerminal("no horse", ["show", "B.age"]).expect(exit: 4)
    #expect(!wrong.errors.contains("horse"), "\(wrong)")
    // Control and C at the question, and control and U, and a letter of two bytes taken back.
    try sandbox.atTerminal("secret\u{3}", ["show", "B.age"]).expect(exit: 64)
    try sandbox.atTerminal("nonsense\u{15}é\u{7F}" + words, ["show", "B.age"]).expect()
  }
}
