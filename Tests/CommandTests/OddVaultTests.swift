import Foundation
import TestSupport
import Testing

/// Vaults as they are in the field, and what the program does with them.
@Suite struct OddVaultTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox(creating: "Notes") }

  /// On a device the keychain outlives the app: the container is new, its vault is not.
  @Test func aVaultFromBeforeInANewContainer() throws {
    for layout in ["ios", "android", "generic"] {
      try Sandbox.with { sandbox in
        try sandbox.create()
        try sandbox.setItem("s/a", "kept")
        let sealed = try sandbox.read(Sandbox.vault)
        try sandbox.remove("Notes")
        let place = ["ios": "Library/Vault/vault.age", "android": "files/vault.age"][layout] ?? "vault.age"
        let yaml = try sandbox.text("drydock.yaml")
        try sandbox.write("drydock.yaml", yaml.replacing("layout: ios", with: "layout: \(layout)"))
        try sandbox.write("Notes/\(place)", bytes: sealed)
        try sandbox.drydock("status Notes").expect(output: "version 0 of")
        try sandbox.succeed("migrate Notes --to 4")
        #expect(try sandbox.read("Notes/\(place)") == sealed)
        #expect(try sandbox.item("s/a") == Array("kept".utf8))
        try sandbox.drydock("status Notes").expect(output: "version 4 of")
      }
    }
  }

  @Test func anythingElseInItIsNoNewContainer() throws {
    try sandbox.setItem("s/a", "x")
    let sealed = try sandbox.read(Sandbox.vault)
    try sandbox.remove("Notes")
    try sandbox.write(Sandbox.vault, bytes: sealed)
    try sandbox.write("Notes/Library/Vault/notes.txt", "mine")
    try sandbox.drydock("status Notes").expect(exit: 4, errors: "version is unknown")
  }

  /// Vault commands say what is wrong, and everything else goes on. `VaultTests` and `VaultDocumentTests` have all that can be
  /// wrong with one.
  @Test func aVaultThatCannotBeOpened() throws {
    try sandbox.setItem("s/a", "x")
    var damaged = try sandbox.read(Sandbox.vault)
    damaged[damaged.count - 30] ^= 1
    try sandbox.write(Sandbox.vault, bytes: damaged)
    let words = ["Library/Vault/vault.age", "the vault's file is corrupt"]
    for command in [["list", "Notes"], ["get", "Notes", "s/a"], ["remove", "Notes", "s/a"]] {
      try sandbox.expectRefusal(["vault"] + command, exit: 4, words)
    }
    let set = try sandbox.drydock("vault set Notes s/b", input: [1]).expect(exit: 4)
    #expect(set.errors.contains(words[1]), "\(set)")
    let inspected = try sandbox.succeed("inspect Notes")
    #expect(inspected.contains("cannot be opened: "), "\(inspected)")
    try sandbox.succeed("snapshot Notes -o A.tar.zst")
    try sandbox.succeed("migrate Notes --to 4")
    #expect(try sandbox.read(Sandbox.vault) == damaged)
    let difference = try sandbox.succeed("diff A.tar.zst Notes")
    #expect(!difference.contains("vault "), "its bytes are the same: \(difference)")
    try sandbox.succeed("rollback Notes")
    try sandbox.write("Notes/Documents/new.txt", "x")
    try sandbox.succeed("restore A.tar.zst Notes --yes")
    try sandbox.remove(Sandbox.vault)
    try sandbox.succeed("restore A.tar.zst Notes --only defaults --only files")
    #expect(!sandbox.exists(Sandbox.vault))
    // An item that nobody can look into does not come back; the rest does.
    let restored = try sandbox.drydock("restore A.tar.zst Notes")
    #expect([0, 3].contains(restored.exitCode), "\(restored)")
    #expect(!sandbox.exists("Notes/Documents/new.txt"))
  }

  @Test func armoredIsReadAndRewrittenBinary() throws {
    try sandbox.writeVault(sandbox.vaultDocument([#", "service": "s""#]), armored: true)
    #expect(try sandbox.read(Sandbox.vault).starts(with: "-----BEGIN AGE".utf8))
    #expect(try sandbox.item("s") == Array("made-up".utf8))
    try sandbox.drydock("inspect Notes").expect(output: "1 item, encrypted to 1 recipient (X25519)")
    try sandbox.setItem("t", "x")
    #expect(try sandbox.read(Sandbox.vault).starts(with: "age-encryption.org/v1\n".utf8))
    #expect(try sandbox.itemNames() == ["s", "t"])
  }

  @Test func itemsThatLackWhatOthersHave() throws {
    try sandbox.writeVault(
      sandbox.vaultDocument([
        "", #", "account": "a""#, #", "service": "s""#, #", "service": "s", "account": "a""#,
        #", "service": "s", "account": "a", "access_group": "g1""#,
        #", "service": "s", "account": "a", "access_group": "g2""#,
        #", "service": "s", "account": "a", "synchronizable": true"#,
      ]))
    #expect(
      try sandbox.itemNames() == [
        "(no name)", "/a", "s", "s/a", "s/a [synchronizable]", "s/a [g1]", "s/a [g2]",
      ])
    // An address that fits several lists them, and changes nothing.
    let several = ["4 items match s/a: s/a, s/a [synchronizable], s/a [g1], s/a [g2]"]
    try sandbox.expectRefusal("vault get Notes s/a", exit: 4, several)
    try sandbox.expectRefusal("vault remove Notes s/a", exit: 4, several)
    try sandbox.expectRefusal(
      ["vault", "remove", "Notes", "s/a", "--access-group", ""], exit: 4,
      ["2 items match s/a, no access group"])
    for arguments in [
      ["s/a [g2]"], ["s/a", "--access-group", "g1"], ["s/a [synchronizable]"],
      ["s/a", "--access-group", "", "--no-synchronizable"], ["s"], ["/a"],
      ["--service", "", "--account", ""],
    ] {
      try sandbox.drydock(["vault", "remove", "Notes"] + arguments).expect()
    }
    #expect(try sandbox.itemNames() == [])
    // An empty vault is a vault.
    try sandbox.drydock("vault list Notes").expect(output: "0 items, sealed to 1 key")
    try sandbox.setItem("again", "x")
  }

  @Test func namesOfAllKinds() throws {
    try sandbox.writeVault(
      sandbox.vaultDocument([
        #", "service": "Zoë 😀", "account": "日本""#, #", "service": "a\nb\u001b[2J", "account": "\u202eevil""#,
        #", "service": "é""#, #", "service": "e\u0301""#,
      ]))
    let list = try sandbox.succeed("vault list Notes")
    #expect(list.split(separator: "\n").count == 5, "one line each: \(list)")
    #expect(list.contains("Zoë 😀/日本") && list.contains("a\\x0ab\\x1b[2J/\\xe2\\x80\\xaeevil"))
    #expect(!list.unicodeScalars.contains("\u{1b}") && !list.unicodeScalars.contains("\u{202e}"))
    #expect(try sandbox.item("Zoë 😀/日本") == Array("made-up".utf8))
    #expect(try sandbox.item("a\nb\u{1b}[2J/\u{202e}evil") == Array("made-up".utf8))
    #expect(
      try sandbox.item("a\\x0ab\\x1b[2J/\\xe2\\x80\\xaeevil") == Array("made-up".utf8), "as it is printed")
    let removed = try sandbox.succeed("vault", "remove", "Notes", "a\nb\u{1b}[2J/\u{202e}evil")
    #expect(removed.hasPrefix("removed a\\x0ab\\x1b[2J/"))
    #expect(!(try sandbox.succeed("log Notes")).unicodeScalars.contains("\u{1b}"))
    // Texts that Unicode takes for equal are two names.
    #expect(try sandbox.itemNames().count == 3)
  }

  @Test func attributesOfAllKindsAreOneLine() throws {
    try sandbox.setItem("s/a", "one")
    try sandbox.succeed("snapshot Notes -o A.tar.zst")
    try sandbox.setItem("s/b", "two", "--label", "one\ntwo", "--comment", "\u{202e}evil")
    let told = try sandbox.drydock("diff A.tar.zst Notes --exit-code").expect(exit: 2)
    let line = try #require(told.output.split(separator: "\n").first { $0.contains("+ s/b") })
    #expect(line.contains(#"one\ntwo"#) && line.contains(#"\u{202e}evil"#), "one line: \(told)")
  }

  @Test func aVaultThatNoBackupTakesIsWarnedAbout() throws {
    let yaml = try sandbox.text("drydock.yaml")
    try sandbox.write("drydock.yaml", yaml + "vault: Library/Caches/vault.age\n")
    try sandbox.setItem("s", "x")
    for command in ["inspect Notes", "snapshot Notes -o A.tar.zst"] {
      try sandbox.drydock(command).expect(
        errors: "Library/Caches/vault.age: the vault is excluded from backups")
    }
  }
}
