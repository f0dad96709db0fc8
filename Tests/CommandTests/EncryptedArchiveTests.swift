import Foundation
import TestSupport
import Testing

/// Encrypted archives by the program, and by the programs of others.
@Suite("Encrypted archives")
struct EncryptedArchiveTests {
  /// How an archive is encrypted, and what opens it.
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

  private func prepare(_ lab: Lab) throws -> [String: String] {
    try lab.create(version: 4)
    let keys = try [1, 2, 3].map { try lab.key("k\($0)") }
    try lab.write("others", "# colleagues\n\(keys[1])\n\(keys[2])\n")
    try lab.write("words", "correct horse battery staple\n")
    return ["{R1}": keys[0], "{R2}": keys[1], "{R3}": keys[2]]
  }

  @Test("Written here, opened by age and tar, and by every command", arguments: ways)
  func written(_ way: Way) throws {
    try Lab.with { lab in
      let names = try prepare(lab)
      try lab.succeed(["snapshot", "Notes", "-o", "A"] + way.writing.map { names[$0] ?? $0 })
      try lab.succeed("snapshot", "Notes", "-o", "Plain", "--no-encryption")
      if let age = way.age {
        try lab.shell(
          "mkdir Tar Bsd; age -d \(age.joined(separator: " ")) A | tar --zstd -x -C Tar 2>/dev/null")
        try lab.shell("age -d \(age.joined(separator: " ")) A | bsdtar -xf - -C Bsd")
      } else {
        let script = Lab.repository + "/Tests/AgeEncryptionTests/at_terminal.py"
        try lab.shell(
          "python3 \(script) 'correct horse battery staple' age -d -o Opened A; mkdir Tar Bsd; tar --zstd -xf Opened -C Tar 2>/dev/null; "
            + "bsdtar -xf Opened -C Bsd")
      }
      try lab.tree("Tar/container").expectSame(as: lab.tree("Bsd/container"), comparing: [.content, .type])
      try lab.succeed(["restore", "A", "New"] + way.reading)
      try lab.succeed("restore", "Plain", "FromPlain")
      try lab.tree("New").expectSame(as: lab.tree("FromPlain"))
      try lab.tree("Tar/container").expectSame(as: lab.tree("New"), comparing: [.content, .type])
      // A passphrase takes most of a second for each.
      _ = try lab.key("device")
      let commands = [
        ["verify", "A", "--data"], ["diff", "Notes", "A", "--exit-code"], ["show", "A"],
        ["verify", "A", "--container", "Notes"], ["diff", "A", "Notes", "--exit-code"],
        ["restore", "A", "New", "--dry-run", "--from-other"],
        ["restore", "A", "Part", "--migrate", "-m", "Migrations", "--device-key", "device"],
      ]
      for command in commands.prefix(way.age == nil ? 2 : 7) { try lab.succeed(command + way.reading) }
      // The independent reader knows nothing of encryption, and need not.
      if let age = way.age {
        let reader = Lab.repository + "/Tests/Interop/read_archive.py"
        try lab.shell("age -d \(age.joined(separator: " ")) A > Opened; python3 \(reader) Opened Read")
        try lab.tree("Read").expectSame(as: lab.tree("New"), comparing: [.content, .type, .mode])
      }
    }
  }

  @Test("Decrypted and encrypted again by age, it is read; what only looks like one is refused")
  func foreign() throws {
    try Lab.with { lab in
      let names = try prepare(lab)
      let (one, two) = (names["{R1}"] ?? "", names["{R2}"] ?? "")
      try lab.sealed("A", to: one)
      try lab.shell(
        "age -d -i k1 A | age -r \(two) -r \(one) > B; age -d -i k1 A | age -a -r \(one) > Armored")
      for key in ["k1", "k2"] { try lab.succeed("verify", "B", "--data", "--identity", key) }
      let script = Lab.repository + "/Tests/AgeEncryptionTests/at_terminal.py"
      try lab.shell(
        "age -d -i k1 A > Plain; python3 \(script) 'correct horse battery staple' age -p -o C Plain")
      try lab.succeed("verify", "C", "--data", "--passphrase-file", "words")
      let armored = ["encrypted as armored text", "age -d"]
      try lab.expectRefusal(["show", "Armored", "--identity", "k1"], exit: 4, armored)
      // What tar, zstd and age make is no archive of Drydock's.
      try lab.shell(
        "tar -c Notes | zstd -q | age -r \(one) > D; echo hello | age -r \(one) > E; age -r \(one) < /dev/null > F"
      )
      try lab.expectRefusal(
        ["show", "D", "--identity", "k1"], exit: 4, ["not an archive"])
      try lab.expectRefusal(["restore", "E", "New", "--identity", "k1"], exit: 4, ["not an archive"])
      try lab.expectRefusal(["show", "F", "--identity", "k1"], exit: 4, ["the file is empty"])
    }
  }

  @Test("A wrong key, or none, is exit code 4 from the header alone, and says how the archive is encrypted")
  func wrongKey() throws {
    try Lab.with { lab in
      let names = try prepare(lab)
      try lab.sealed("A", to: names["{R1}"] ?? "", names["{R2}"] ?? "")
      try lab.succeed("snapshot", "Notes", "-o", "P", "--passphrase-file", "words")
      try lab.write("wrong", "incorrect horse\n")
      for command in [
        ["show", "A"], ["restore", "A", "Notes"], ["diff", "A", "Notes"],
        ["export", "A", "-o", "B", "--no-encryption"],
      ] {
        for keys in [[], ["--identity", "k3"]] {
          try lab.expectRefusal(
            command + keys, exit: 4,
            [
              "encrypted to 2 recipients (X25519)",
              keys.isEmpty ? "no identity was given" : "the identity does not match", "--identity FILE",
            ])
        }
      }
      // Nothing but the header is read: the rest of the archive may be missing.
      try lab.write("Start", bytes: Array(lab.read("A").prefix(600)))
      for archive in ["A", "Start"] {
        let verified = try lab.drydock("verify", archive, "--data", "--identity", "k3")
        #expect(verified.exitCode == 4)
        #expect(verified.output.hasPrefix("BAD \(archive)  the archive is encrypted to 2 recipients"))
      }
      try lab.expectRefusal(
        ["show", "P"], exit: 4, ["with a passphrase (scrypt)", "no passphrase was given"])
      try lab.expectRefusal(
        ["show", "P", "--passphrase-file", "wrong"], exit: 4, ["the passphrase is wrong"])
      // Damage is told apart.
      var bytes = try lab.read("A")
      bytes[bytes.count / 2] ^= 1
      try lab.write("Damaged", bytes: bytes)
      try lab.expectRefusal(
        ["restore", "Damaged", "New", "--identity", "k1"], exit: 4,
        ["the key fits, but the encrypted content is damaged"])
      try lab.write("Cut", bytes: bytes.dropLast(100))
      try lab.expectRefusal(["show", "Cut", "--identity", "k1"], exit: 4, ["the key fits, but"])
    }
  }

  @Test("Who has only recipients writes archives, and cannot read them back")
  func writeOnly() throws {
    try Lab.with { lab in
      let names = try prepare(lab)
      try lab.write(
        "drydock.yaml",
        String(decoding: try lab.read("drydock.yaml"), as: UTF8.self)
          + "\nrecipients: [\(names["{R1}"] ?? "")]\n")
      // A key that must not be needed: reading it would fail.
      try lab.write("unreadable", "AGE-SECRET-KEY-1 is not one\n")
      let result = try lab.drydock(
        ["snapshot", "Notes", "-r", "Backups"], environment: ["DRYDOCK_IDENTITY": "unreadable"])
      #expect(result.succeeded && result.errors.contains(", encrypted; "), "\(result)")
      let path = result.output.trimmingCharacters(in: .newlines)
      #expect(path.hasSuffix(".tar.zst.age"))
      try lab.expectRefusal(["show", path], exit: 4, ["no identity was given"])
      try lab.succeed("show", path, "--identity", "k1")
      #expect(try lab.drydock(["show", path], environment: ["DRYDOCK_IDENTITY": "k2:k1"]).succeeded)
      // What drydock.yaml says gives way to the variable, that to the flag.
      let other = try lab.drydock(
        ["snapshot", "Notes", "-o", "Two"],
        environment: ["DRYDOCK_RECIPIENTS": names["{R2}"], "DRYDOCK_IDENTITY": nil])
      #expect(other.succeeded)
      try lab.expectRefusal(["show", "Two", "--identity", "k1"], exit: 4, ["the identity does not match"])
      try lab.succeed("show", "Two", "--identity", "k2")
      let flag = try lab.drydock(
        ["snapshot", "Notes", "-o", "Three", "--recipient", names["{R3}"] ?? ""],
        environment: ["DRYDOCK_RECIPIENTS": names["{R2}"]])
      #expect(flag.succeeded)
      try lab.succeed("show", "Three", "--identity", "k3")
      try lab.succeed("snapshot", "Notes", "-o", "Open", "--no-encryption")
      try lab.succeed("show", "Open")
    }
  }

  @Test("Command lines that make no sense")
  func usage() throws {
    try Lab.with { lab in
      let names = try prepare(lab)
      let one = names["{R1}"] ?? ""
      for (arguments, words) in [
        (["--recipient", "age1nonsense"], ["--recipient", "not a recipient"]),
        (["--recipient", one, "--passphrase-file", "words"], ["only one of them"]),
        (["--recipient", one, "--no-encryption"], ["--no-encryption"]),
        (["--passphrase"], ["terminal", "--passphrase-file"]),
        (["--passphrase-file", "others"], ["is not a passphrase file"]),
        (["--passphrase-file", "/dev/null"], ["is not a passphrase file"]),
      ] { try lab.expectRefusal(["snapshot", "Notes", "-o", "A"] + arguments, exit: 64, words) }
      let secret =
        String(decoding: try lab.read("k1"), as: UTF8.self).split(separator: "\n").last.map(String.init) ?? ""
      #expect(secret.hasPrefix("AGE-SECRET-KEY-1"))
      let refused = try lab.expectRefusal(
        ["snapshot", "Notes", "-o", "A", "--recipient", secret], exit: 64, ["secret key"])
      #expect(!refused.errors.contains(secret.dropFirst(20)))
      let inFile = try lab.expectRefusal(
        ["snapshot", "Notes", "-o", "A", "--recipients-file", "k1"], exit: 4, ["line 3"])
      #expect(!inFile.errors.contains(secret.dropFirst(20)))
      try lab.expectRefusal(["snapshot", "Notes", "-o", "A", "--recipients-file", "none"], exit: 1, ["none"])
      try lab.expectRefusal(["list", "-r", ".", "--identity", "none"], exit: 1, ["none"])
      try lab.expectRefusal(["list", "-r", ".", "--identity", "words"], exit: 4, ["words", "line 1"])
      try lab.sealed("A", to: one)
      try lab.expectRefusal(["export", "A", "-o", "B", "--identity", "k1"], exit: 64, ["--no-encryption"])
      try lab.write("drydock.yaml", "recipients: [age1nonsense]\n")
      try lab.expectRefusal(
        ["snapshot", "Notes", "-o", "B"], exit: 4, ["drydock.yaml:1:14", "not a recipient"], container: nil)
      try lab.write("drydock.yaml", "recipients: \(one)\n")
      try lab.expectRefusal(
        ["snapshot", "Notes", "-o", "B"], exit: 4, ["drydock.yaml:1:13", "is a list"], container: nil)
    }
  }

  @Test("A person at a terminal is asked for the passphrase, and sees nothing of it; nobody else is")
  func asked() throws {
    try Lab.with { lab in
      _ = try prepare(lab)
      let words = "correct horse battery staple"
      let written = try lab.atTerminal(words, ["snapshot", "Notes", "-o", "A", "--passphrase"])
      #expect(written.succeeded, "\(written)")
      let shown = try lab.atTerminal(words, ["show", "A"])
      #expect(shown.succeeded && !shown.errors.contains("horse"), "\(shown)")
      try lab.succeed("show", "A", "--passphrase-file", "words")
      let wrong = try lab.atTerminal("no horse", ["show", "A"])
      #expect(wrong.exitCode == 4 && !wrong.errors.contains("horse"), "\(wrong)")
      // Control and C at the question, and control and U, and a letter of two bytes taken back.
      let given = try lab.atTerminal("secret\u{3}", ["show", "A"])
      #expect(given.exitCode == 64, "\(given)")
      let corrected = try lab.atTerminal("nonsense\u{15}é\u{7F}" + words, ["show", "A"])
      #expect(corrected.succeeded, "\(corrected)")
    }
  }

  @Test("A list tells of archives that it cannot open what their names say, and they are found by that")
  func sealedListing() throws {
    try Lab.with { lab in
      let names = try prepare(lab)
      for recipient in ["{R1}", "{R2}"] {
        try lab.succeed("snapshot", "Notes", "-r", "Backups", "--recipient", names[recipient] ?? "")
      }
      try lab.sealed("Backups/by-hand.tar.zst.age", to: names["{R2}"] ?? "")
      let plain = try lab.drydock("list", "-r", "Backups")
      #expect(plain.succeeded && plain.errors.isEmpty, "\(plain)")
      #expect(plain.output.components(separatedBy: "encrypted to 1 recipient (X25519), not read").count == 4)
      #expect(plain.output.contains("by-hand.tar.zst.age") && plain.output.contains("com.example.notes"))
      let document = try lab.document("list", "-r", "Backups", "--identity", "k1")
      #expect(
        (document["archives"] as? [Any])?.count == 1 && (document["unreadable"] as? [Any])?.isEmpty == true)
      let sealed = try #require(document["encrypted"] as? [[String: Any]])
      #expect(sealed.count == 2 && sealed.contains { $0["app"] as? String == "com.example.notes" })
      #expect(
        sealed.contains {
          $0["app"] == nil && ($0["path"] as? String)?.hasSuffix("by-hand.tar.zst.age") == true
        })
      // The newest is the second one's, by its name alone: not quietly an older one that can be opened.
      try lab.expectRefusal(
        ["show", "latest", "-r", "Backups", "--identity", "k1"], exit: 4, ["the identity does not match"])
      try lab.succeed(
        "show", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90@latest", "-r", "Backups", "--identity", "k2")
      let filtered = try lab.succeed("list", "-r", "Backups", "--app", "com.example.other")
      #expect(
        filtered.split(separator: "\n").count == 2,
        "the one without a name that tells may be of any app: \(filtered)")
      let verified = try lab.drydock("verify", "-r", "Backups", "--identity", "k2")
      #expect(
        verified.exitCode == 4 && verified.output.components(separatedBy: "ok ").count == 3, "\(verified)")
    }
  }
}
