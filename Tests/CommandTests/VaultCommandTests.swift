import Foundation
import TestSupport
import Testing

/// `drydock vault`, as its user sees it.
@Suite struct VaultCommandTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox(creating: "Notes") }

  @Test func fromSetToRemove() throws {
    let before = try sandbox.tree()
    try sandbox.setItem(
      "com.example.notes/auth", "made-up", "--accessible", "afterFirstUnlock", "--label", "Notes")
    #expect(try sandbox.item("com.example.notes/auth") == Array("made-up".utf8))
    #expect(try sandbox.item("com.example.notes") == Array("made-up".utf8), "the service alone will do")
    try sandbox.succeed("vault rename Notes com.example.notes/auth com.example.notes/token")
    try sandbox.succeed("vault rename Notes com.example.notes/token --to-access-group group.x")
    try sandbox.succeed("vault set-accessibility Notes com.example.notes/token akpu")
    let item = try sandbox.document("vault list Notes")["items"][0]
    #expect(item["name"].text == "com.example.notes/token [group.x]")
    #expect(item["accessible"].text == "whenPasscodeSetThisDeviceOnly")
    #expect(item["attributes"]["label"].text == "Notes")
    #expect(item["bytes"].number == 7 && item["is_text"].flag == true)
    try sandbox.succeed("vault", "remove", "Notes", "com.example.notes/token [group.x]")
    #expect(try sandbox.itemNames() == [])
    // All of it can be undone, and no key is needed as long as nothing else wrote it.
    for _ in 0..<5 { try sandbox.with(key: nil).succeed("rollback Notes") }
    try sandbox.tree().expectSame(as: before)
  }

  @Test func valuesAreBytes() throws {
    let binary = (0...255).map { UInt8($0) } + [0x0A]
    try sandbox.write("binary", bytes: binary)
    try sandbox.setItem("binary", "", "--value-file", "binary")
    #expect(try sandbox.item("binary") == binary)
    try sandbox.drydock("vault set Notes kept", input: Array("line\n".utf8)).expect(errors: "--text drops it")
    #expect(try sandbox.item("kept") == Array("line\n".utf8))
    try sandbox.setItem("text", "line\r\n", "--text")
    #expect(try sandbox.item("text") == Array("line".utf8))
    try sandbox.setItem("two", "line\n\n", "--text")
    #expect(try sandbox.item("two") == Array("line\n".utf8))
    try sandbox.drydock("vault set Notes no-text --text", input: [0xFF]).expect(
      exit: 64, errors: "not UTF-8 text")
    // The command in front of the pipe failed.
    try sandbox.expectRefusal("vault set Notes text --if-exists replace", exit: 64, ["--empty"])
    try sandbox.setItem("empty", "", "--empty")
    #expect(try sandbox.item("empty") == [])
    var random = SeededRandom(seed: 9)
    let large = random.bytes(1 << 20)
    try sandbox.write("large", bytes: large)
    try sandbox.setItem("large", "", "--value-file", "large")
    #expect(try sandbox.item("large") == large)
    let argument = try sandbox.drydock("vault", "set", "Notes", "a", "a value").expect(exit: 64)
    #expect(argument.output.isEmpty, "\(argument)")
  }

  @Test func whatIsThereIsNotOverwritten() throws {
    try sandbox.setItem("s/a", "one", "--label", "Label", "--accessible", "ck")
    // A field that another program has written, beside the value.
    let (value, later) = (#""b25l""#, #""later":{"a":[1,"x"]}"#)
    try sandbox.writeVault(sandbox.openedVault().replacing(value, with: "\(value),\(later)"))
    func keepsLater() throws -> Bool {
      try sandbox.openedVault().filter { !$0.isWhitespace }.contains(later)
    }
    #expect(try keepsLater())
    try sandbox.drydock("vault set Notes s/a", input: Array("two".utf8)).expect(
      exit: 1, errors: "--if-exists replace")
    try sandbox.setItem("s/a", "two", "--if-exists", "keep")
    #expect(try sandbox.item("s/a") == Array("one".utf8))
    try sandbox.setItem("s/a", "two", "--if-exists", "replace", "--comment", "c")
    #expect(try sandbox.item("s/a") == Array("two".utf8) && keepsLater())
    let item = try sandbox.document("vault list Notes")["items"][0]
    #expect(item["accessible"].text == "afterFirstUnlock", "what is not said stays")
    #expect(item["attributes"].canonical == #"[{"account":"a","comment":"c","label":"Label","service":"s"}]"#)
    try sandbox.setItem("s/b", "b")
    try sandbox.expectRefusal("vault rename Notes s/a s/b", exit: 1, ["the vault already has s/b"])
    try sandbox.expectRefusal("vault rename Notes s/a", exit: 64, ["no new name"])
    for line in ["vault get Notes", "vault remove Notes", "vault rename Notes --to-account b"] {
      try sandbox.expectRefusal(line, exit: 64, ["no item is named"])
    }
    try sandbox.drydock("vault rename Notes s/a s/a").expect(output: "nothing to change")
    try sandbox.succeed("vault rename Notes s/a s/c")
    #expect(try keepsLater())
  }

  @Test func attributesAreTakenAndChecked() throws {
    try sandbox.setItem(
      "mail.example.com/ada", "x", "--class", "internetPassword", "--protocol", "imap", "--port", "993",
      "--synchronizable")
    #expect(try sandbox.itemNames() == ["imap://ada@mail.example.com:993 [synchronizable]"])
    #expect(try sandbox.item("mail.example.com", "--class", "inet", "--synchronizable") == Array("x".utf8))
    try sandbox.succeed("vault rename Notes mail.example.com mail.example.org")
    #expect(try sandbox.itemNames() == ["imap://ada@mail.example.org:993 [synchronizable]"])
    try sandbox.expectRefusal(
      "vault set-accessibility Notes mail.example.org whenUnlockedThisDeviceOnly", exit: 1,
      ["cannot be synchronizable and whenUnlockedThisDeviceOnly"])
    try sandbox.succeed("vault set-synchronizable Notes mail.example.org false")
    try sandbox.succeed("vault set-access-control Notes mail.example.org --access-control userPresence")
    try sandbox.succeed("vault set-access-control Notes mail.example.org --none")
    try sandbox.succeed("vault set-synchronizable Notes mail.example.org true")
    #expect(try sandbox.itemNames() == ["imap://ada@mail.example.org:993 [synchronizable]"])
    for wrong in [
      ["--port", "70000"], ["--accessible", "never"], ["--class", "x"], ["--access-control", "x"],
    ] {
      try sandbox.drydock(["vault", "set", "Notes", "a"] + wrong).expect(exit: 64)
    }
    try sandbox.drydock("vault set Notes /", input: [1]).expect(exit: 1, errors: "needs a name")
    // What a slash would cut is given in parts.
    try sandbox.setItem("--service", "x", "https://example.com/a", "--account", "b")
    #expect(try sandbox.itemNames().first == "https://example.com/a/b")
  }

  /// That values are nowhere else is checked by `CanaryTests`.
  @Test func aValueIsWrittenToANewFile() throws {
    try sandbox.setItem("s/a", "made-up\n")
    try sandbox.succeed("vault get Notes s/a --output value.txt")
    #expect(try sandbox.read("value.txt") == Array("made-up\n".utf8))
    try sandbox.expectRefusal("vault get Notes s/a --output value.txt", exit: 1, ["value.txt"])
    let json = try sandbox.document("vault get Notes s/a")
    #expect(json["text"].text == "made-up\n")
    #expect(json["base64"].text == Data("made-up\n".utf8).base64EncodedString())
  }

  @Test func aTerminalIsShownAValueOnRequestOnly() throws {
    try sandbox.setItem("s/a", "made-up\u{1b}[31m")
    try sandbox.setItem("binary", "", "--value-file", "device.key")
    try sandbox.write("bytes", bytes: [0xFF])
    try sandbox.setItem("bytes", "", "--value-file", "bytes")
    func terminal(_ arguments: String) throws -> CommandResult {
      try sandbox.execute(Tools.system("script"), ["-qec", "'\(sandbox.program)' \(arguments)", "/dev/null"])
    }
    let refused = try terminal("vault get Notes s/a").expect(exit: 64, output: "--reveal")
    #expect(!refused.output.contains("made-up"))
    let shown = try terminal("vault get Notes s/a --reveal").expect()
    #expect(shown.output == "made-up\\u{1b}[31m\r\n", "\(shown)")
    try terminal("vault get Notes bytes --reveal").expect(exit: 64, output: "is not text")
  }

  @Test func keysThatAreMissingOrWrong() throws {
    try sandbox.setItem("s/a", "x")
    try sandbox.run(Tools.system("age-keygen"), "-o", "other.txt")
    let commands = [
      ["list", "Notes"], ["get", "Notes", "s/a"], ["remove", "Notes", "s/a"],
      ["rename", "Notes", "s/a", "s/b"], ["set-synchronizable", "Notes", "s/a", "true"],
      ["rekey", "Notes", "--new-device-key", "other.txt"],
    ]
    try sandbox.expectUnchanged {
      for command in commands {
        for (key, words) in [(nil, ["--device-key"]), ("other.txt", ["no device key opens"])] {
          try sandbox.with(key: key).expectError(
            ["vault"] + command, exit: 4, words + ["encrypted to 1 recipient (X25519)"])
        }
      }
    }
    try sandbox.with(key: nil).expectRefusal("vault set Notes s/b", exit: 4, ["device key"])
    try sandbox.with(key: "absent.txt").expectRefusal(
      "vault list Notes", exit: 4, ["no device key", "absent.txt"])
    try sandbox.with(key: "drydock.yaml").expectRefusal("vault list Notes", exit: 4, ["no device key"])
    // Earlier keys are at hand too, and a flag wins over the variable.
    #expect(try sandbox.with(key: "other.txt:device.key").itemNames() == ["s/a"])
    try sandbox.with(key: "other.txt").succeed("vault list Notes --device-key device.key")
  }
}
