import Foundation
import TestSupport
import Testing

/// Vaults as they are in the field, and what the program does with them.
@Suite struct OddVaultTests {
  /// On a device the keychain outlives the app: the container is new, its vault is not.
  @Test func aVaultFromBeforeInANewContainer() throws {
    for layout in ["ios", "android", "generic"] {
      try VaultLab.with { lab in
        try lab.set("s/a", "kept")
        let sealed = try lab.lab.read(VaultLab.path)
        try lab.lab.remove("Notes")
        let place = ["ios": "Library/Vault/vault.age", "android": "files/vault.age"][layout] ?? "vault.age"
        let yaml = try String(decoding: lab.lab.read("drydock.yaml"), as: UTF8.self)
        try lab.lab.write("drydock.yaml", yaml.replacing("layout: ios", with: "layout: \(layout)"))
        try lab.lab.write("Notes/\(place)", bytes: sealed)
        #expect(try lab.succeed("status", "Notes").contains("version 0 of"), "\(layout)")
        try lab.succeed("migrate", "Notes", "--to", "4")
        #expect(try lab.lab.read("Notes/\(place)") == sealed)
        #expect(try lab.value("s/a") == Array("kept".utf8))
        #expect(try lab.succeed("status", "Notes").contains("version 4 of"))
      }
    }
  }

  @Test func anythingElseInItIsNoNewContainer() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "x")
      let sealed = try lab.lab.read(VaultLab.path)
      try lab.lab.remove("Notes")
      try lab.lab.write(VaultLab.path, bytes: sealed)
      try lab.lab.write("Notes/Library/Vault/notes.txt", "mine")
      let result = try lab.drydock("status", "Notes")
      #expect(result.exitCode == 4 && result.errors.contains("version is unknown"), "\(result)")
    }
  }

  /// Vault commands say what is wrong, and everything else goes on.
  @Test(arguments: ["damaged", "cut", "text", "empty", "passphrase", "json", "newer", "twice"])
  func aVaultThatCannotBeOpened(kind: String) throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "x")
      let words = try spoil(kind, lab)
      let damaged = try lab.lab.read(VaultLab.path)
      for command in [["list", "Notes"], ["get", "Notes", "s/a"], ["remove", "Notes", "s/a"]] {
        try lab.lab.expectRefusal(
          ["vault"] + command, exit: 4, ["Library/Vault/vault.age"] + words,
          environment: ["DRYDOCK_DEVICE_KEY": "device.txt"])
      }
      let set = try lab.drydock("vault", "set", "Notes", "s/b", input: [1])
      #expect(set.exitCode == 4 && words.allSatisfy(set.errors.contains), "\(set)")
      // All else is as ever.
      let inspected = try lab.succeed("inspect", "Notes")
      #expect(inspected.contains("cannot be opened: "), "\(inspected)")
      try lab.succeed("snapshot", "Notes", "-o", "A.tar.zst")
      try lab.succeed("migrate", "Notes", "--to", "4")
      #expect(try lab.lab.read(VaultLab.path) == damaged)
      let difference = try lab.succeed("diff", "A.tar.zst", "Notes")
      #expect(!difference.contains("vault "), "its bytes are the same: \(difference)")
      try lab.succeed("rollback", "Notes")
      try lab.lab.write("Notes/Documents/new.txt", "x")
      try lab.succeed("restore", "A.tar.zst", "Notes", "--yes")
      try lab.lab.remove(VaultLab.path)
      try lab.succeed("restore", "A.tar.zst", "Notes", "--only", "defaults", "--only", "files")
      #expect(!lab.lab.exists(VaultLab.path))
      // An item that nobody can look into does not come back; the rest does.
      let restored = try lab.drydock("restore", "A.tar.zst", "Notes")
      #expect([0, 3].contains(restored.exitCode), "\(restored)")
      #expect(!lab.lab.exists("Notes/Documents/new.txt"))
    }
  }

  /// Made by `age -p -a`; the passphrase and the content are made up.
  private static let sealedWithAPassphrase = """
    -----BEGIN AGE ENCRYPTED FILE-----
    YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCByY0lERG0zYzRTUnhQdFkw
    T3BjaWxnIDE4CnhMTEFFYktVUStJZUtwOFZpenNvUkJtOTRpS1BHcC9ZWE1jTGpj
    WUhSMlkKLS0tIGxvbE5RNVdEcHo5dDZjbVptWjl5dXhuQkR5eEpaSzFwK01zMVFr
    UWNaQUEKvdeHAiUCQtryeIOPhZH42+eMa17dbzkjT0ulCt2s9/iNNf70spJuDUpY
    rGaGcA==
    -----END AGE ENCRYPTED FILE-----

    """

  /// Makes the vault one that cannot be opened; gives words of the message.
  private func spoil(_ kind: String, _ lab: VaultLab) throws -> [String] {
    var bytes = try lab.lab.read(VaultLab.path)
    switch kind {
    case "damaged":
      bytes[bytes.count - 30] ^= 1
      try lab.lab.write(VaultLab.path, bytes: bytes)
      return ["the vault's file is corrupt"]
    case "cut":
      try lab.lab.write(VaultLab.path, bytes: Array(bytes.prefix(120)))
      return ["the vault's file is corrupt"]
    case "text":
      try lab.lab.write(VaultLab.path, "password: made-up\n")
      return ["not an age file"]
    case "empty":
      try lab.lab.write(VaultLab.path, "")
      return ["empty"]
    case "passphrase":
      try lab.lab.write(VaultLab.path, Self.sealedWithAPassphrase)
      return ["encrypted with a passphrase (scrypt)", "age -r"]
    case "json":
      try lab.write("{\"format\": 1, ")
      return ["the vault document is not valid JSON", "line 1, column"]
    case "newer":
      try lab.write(lab.document([]).replacing("\"format\": 1", with: "\"format\": 7"))
      return ["format 7", "use a newer Drydock"]
    default:
      try lab.write(lab.document([#", "account": "a""#, #", "account": "a", "label": "x""#]))
      return ["two items /a"]
    }
  }

  @Test func armoredIsReadAndRewrittenBinary() throws {
    try VaultLab.with { lab in
      try lab.write(
        lab.document([#", "service": "s""#]), ["-a", "-r", lab.recipient(of: "device.txt")])
      #expect(try lab.lab.read(VaultLab.path).starts(with: "-----BEGIN AGE".utf8))
      #expect(try lab.value("s") == Array("made-up".utf8))
      #expect(try lab.succeed("inspect", "Notes").contains("1 item, encrypted to 1 recipient (X25519)"))
      try lab.set("t", "x")
      #expect(try lab.lab.read(VaultLab.path).starts(with: "age-encryption.org/v1\n".utf8))
      #expect(try lab.names() == ["s", "t"])
    }
  }

  @Test func itemsThatLackWhatOthersHave() throws {
    try VaultLab.with { lab in
      try lab.write(
        lab.document([
          "", #", "account": "a""#, #", "service": "s""#, #", "service": "s", "account": "a""#,
          #", "service": "s", "account": "a", "access_group": "g1""#,
          #", "service": "s", "account": "a", "access_group": "g2""#,
          #", "service": "s", "account": "a", "synchronizable": true"#,
        ]))
      #expect(
        try lab.names() == [
          "(no name)", "/a", "s", "s/a", "s/a [synchronizable]", "s/a [g1]", "s/a [g2]",
        ])
      // An address that fits several lists them, and changes nothing.
      let several = ["4 items match s/a: s/a, s/a [synchronizable], s/a [g1], s/a [g2]"]
      try lab.expectRefusal("vault", "get", "Notes", "s/a", exit: 4, several)
      try lab.expectRefusal("vault", "remove", "Notes", "s/a", exit: 4, several)
      try lab.expectRefusal(
        "vault", "remove", "Notes", "s/a", "--access-group", "", exit: 4,
        ["2 items match s/a, no access group"]
      )
      for arguments in [
        ["s/a [g2]"], ["s/a", "--access-group", "g1"], ["s/a [synchronizable]"],
        ["s/a", "--access-group", "", "--no-synchronizable"], ["s"], ["/a"],
        ["--service", "", "--account", ""],
      ] {
        let removed = try lab.lab.drydock(
          ["vault", "remove", "Notes"] + arguments, environment: ["DRYDOCK_DEVICE_KEY": "device.txt"])
        #expect(removed.succeeded, "\(arguments): \(removed)")
      }
      #expect(try lab.names() == [])
      // An empty vault is a vault.
      #expect(try lab.succeed("vault", "list", "Notes").contains("0 items, sealed to 1 key"))
      try lab.set("again", "x")
    }
  }

  @Test func anEmptyFileInsideIsNoDocument() throws {
    try VaultLab.with { lab in
      try lab.write("")
      try lab.expectRefusal("vault", "list", "Notes", exit: 4, ["unexpected end of input"])
      try lab.write("{}")
      try lab.expectRefusal("vault", "list", "Notes", exit: 4, ["has no format"])
    }
  }

  @Test func namesOfAllKinds() throws {
    try VaultLab.with { lab in
      try lab.write(
        lab.document([
          #", "service": "Zoë 😀", "account": "日本""#,
          #", "service": "a\nb\u001b[2J", "account": "\u202eevil""#,
          #", "service": "é""#, #", "service": "e\u0301""#,
        ]))
      let list = try lab.succeed("vault", "list", "Notes")
      #expect(list.split(separator: "\n").count == 5, "one line each: \(list)")
      #expect(list.contains("Zoë 😀/日本") && list.contains("a\\x0ab\\x1b[2J/\\xe2\\x80\\xaeevil"))
      #expect(!list.unicodeScalars.contains("\u{1b}") && !list.unicodeScalars.contains("\u{202e}"))
      #expect(try lab.value("Zoë 😀/日本") == Array("made-up".utf8))
      #expect(try lab.value("a\nb\u{1b}[2J/\u{202e}evil") == Array("made-up".utf8))
      #expect(
        try lab.value("a\\x0ab\\x1b[2J/\\xe2\\x80\\xaeevil") == Array("made-up".utf8), "as it is printed")
      let removed = try lab.succeed("vault", "remove", "Notes", "a\nb\u{1b}[2J/\u{202e}evil")
      #expect(removed.hasPrefix("removed a\\x0ab\\x1b[2J/"))
      #expect(!(try lab.succeed("log", "Notes")).unicodeScalars.contains("\u{1b}"))
      // Texts that Unicode takes for equal are two names.
      #expect(try lab.names().count == 3)
    }
  }

  @Test func whatIsUnknownStays() throws {
    try VaultLab.with { lab in
      let document = try lab.document([#", "service": "s", "later": {"a": [1, "x"]}"#])
      try lab.write(document.replacing("\"format\": 1,", with: #""format": 1, "app": {"v": 2},"#))
      try lab.set("s", "new", "--if-exists", "replace")
      let opened = try lab.lab.run(
        Tools.system("age"), "-d", "-i", lab.lab("device.txt"), lab.lab(VaultLab.path))
      #expect(opened.contains(#""app": {"v": 2}"#) && opened.contains(#""later": {"a": [1, "x"]}"#))
    }
  }

  @Test func tenThousandItems() throws {
    try VaultLab.with { lab in
      try lab.write(lab.document((0..<10_000).map { #", "service": "s\#($0 % 9)", "account": "\#($0)""# }))
      #expect(try lab.names().count == 10_000)
      try lab.expectRefusal(
        "vault", "get", "Notes", "s3", exit: 4, ["items match s3", "more; name more attributes"])
      try lab.set("s3/4711", "x")
      #expect(try lab.value("s3/4711") == Array("x".utf8))
      let inspected = try lab.succeed("inspect", "Notes")
      #expect(inspected.contains("10001 items") && inspected.contains("… and 9981 more"), "\(inspected)")
    }
  }

  @Test func aVaultThatNoBackupTakesIsWarnedAbout() throws {
    try VaultLab.with { lab in
      let yaml = try String(decoding: lab.lab.read("drydock.yaml"), as: UTF8.self)
      try lab.lab.write("drydock.yaml", yaml + "vault: Library/Caches/vault.age\n")
      try lab.set("s", "x")
      for command in [["inspect", "Notes"], ["snapshot", "Notes", "-o", "A.tar.zst"]] {
        let result = try lab.lab.drydock(command)
        #expect(
          result.succeeded
            && result.errors.contains("Library/Caches/vault.age: the vault is excluded from backups"),
          "\(result)")
      }
    }
  }

  /// What the app had before may open something still.
  @Test func anEarlierValueOfAMovedSetting() throws {
    try VaultLab.with { vault in
      let lab = vault.lab
      try lab.succeed("migrate", "Notes", "--to", "2")
      try lab.run(lab.app, "touch-settings", lab("Notes"), "auth_token", "second-made-up-token")
      try lab.succeed("migrate", "Notes", "--to", "5")
      for token in [Lab.token, "second-made-up-token"] {
        let found = try lab.run("/bin/sh", "-c", "grep -rl \(token) Notes/Library .drydock-* || true")
        #expect(found.isEmpty, "\(found)")
      }
      for _ in 0..<2 { try lab.succeed("rollback", "Notes") }
      let settings = try lab.read("Notes/" + Lab.settings)
      #expect(String(decoding: settings, as: UTF8.self).contains("second-made-up-token"))
    }
  }
}
