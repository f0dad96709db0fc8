import Foundation
import TestSupport
import Testing

/// `drydock vault`, as its user sees it.
@Suite struct VaultCommandTests {
  @Test func fromSetToRemove() throws {
    try VaultLab.with { lab in
      let before = try lab.lab.tree()
      try lab.set("com.example.notes/auth", "made-up", "--accessible", "afterFirstUnlock", "--label", "Notes")
      #expect(try lab.value("com.example.notes/auth") == Array("made-up".utf8))
      #expect(try lab.value("com.example.notes") == Array("made-up".utf8), "the service alone will do")
      try lab.succeed("vault", "rename", "Notes", "com.example.notes/auth", "com.example.notes/token")
      try lab.succeed("vault", "rename", "Notes", "com.example.notes/token", "--to-access-group", "group.x")
      try lab.succeed("vault", "set-accessibility", "Notes", "com.example.notes/token", "akpu")
      let list = try lab.json("vault", "list", "Notes", "--json")
      let item = try #require((list["items"] as? [[String: Any]])?.first)
      #expect(item["name"] as? String == "com.example.notes/token [group.x]")
      #expect(item["accessible"] as? String == "whenPasscodeSetThisDeviceOnly")
      #expect((item["attributes"] as? [String: String])?["label"] == "Notes")
      #expect(item["bytes"] as? Int == 7 && item["is_text"] as? Bool == true)
      try lab.succeed("vault", "remove", "Notes", "com.example.notes/token [group.x]")
      #expect(try lab.names() == [])
      // All of it can be undone, and no key is needed as long as nothing else wrote it.
      for _ in 0..<5 { try lab.succeed("rollback", "Notes", key: nil) }
      try lab.lab.tree().expectSame(as: before)
    }
  }

  @Test func valuesAreBytes() throws {
    try VaultLab.with { lab in
      let binary = (0...255).map { UInt8($0) } + [0x0A]
      try lab.lab.write("binary", bytes: binary)
      try lab.set("binary", "", "--value-file", "binary")
      #expect(try lab.value("binary") == binary)
      let kept = try lab.drydock("vault", "set", "Notes", "kept", input: Array("line\n".utf8))
      #expect(kept.succeeded && kept.errors.contains("--text drops it"), "\(kept)")
      #expect(try lab.value("kept") == Array("line\n".utf8))
      try lab.set("text", "line\r\n", "--text")
      #expect(try lab.value("text") == Array("line".utf8))
      try lab.set("two", "line\n\n", "--text")
      #expect(try lab.value("two") == Array("line\n".utf8))
      let refused = try lab.drydock("vault", "set", "Notes", "no-text", "--text", input: [0xFF])
      #expect(refused.exitCode == 64 && refused.errors.contains("not UTF-8 text"), "\(refused)")
      // The command in front of the pipe failed.
      try lab.expectRefusal("vault", "set", "Notes", "text", "--if-exists", "replace", exit: 64, ["--empty"])
      try lab.set("empty", "", "--empty")
      #expect(try lab.value("empty") == [])
      var random = SeededRandom(seed: 9)
      let large = random.bytes(1 << 20)
      try lab.lab.write("large", bytes: large)
      try lab.set("large", "", "--value-file", "large")
      #expect(try lab.value("large") == large)
      let argument = try lab.drydock("vault", "set", "Notes", "a", "a value")
      #expect(argument.exitCode == 64 && argument.output.isEmpty, "\(argument)")
    }
  }

  @Test func whatIsThereIsNotOverwritten() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "one", "--label", "Label", "--accessible", "ck")
      let refused = try lab.drydock("vault", "set", "Notes", "s/a", input: Array("two".utf8))
      #expect(refused.exitCode == 1 && refused.errors.contains("--if-exists replace"), "\(refused)")
      try lab.set("s/a", "two", "--if-exists", "keep")
      #expect(try lab.value("s/a") == Array("one".utf8))
      try lab.set("s/a", "two", "--if-exists", "replace", "--comment", "c")
      #expect(try lab.value("s/a") == Array("two".utf8))
      let list = try lab.json("vault", "list", "Notes", "--json")
      let item = try #require((list["items"] as? [[String: Any]])?.first)
      #expect(item["accessible"] as? String == "afterFirstUnlock", "what is not said stays")
      let attributes = try #require(item["attributes"] as? [String: String])
      #expect(attributes == ["service": "s", "account": "a", "label": "Label", "comment": "c"])
      try lab.set("s/b", "b")
      try lab.expectRefusal(
        "vault", "rename", "Notes", "s/a", "s/b", exit: 1, ["the vault already has s/b"])
      try lab.expectRefusal(
        "vault", "rename", "Notes", "s/c", "s/d", exit: 1, ["no item of the vault matches s/c"])
      try lab.expectRefusal("vault", "rename", "Notes", "s/a", exit: 64, ["no new name"])
      try lab.expectRefusal("vault", "remove", "Notes", exit: 64, ["no item is named"])
      #expect(try lab.succeed("vault", "rename", "Notes", "s/a", "s/a").contains("nothing to change"))
      let typo = try lab.expectRefusal("vault", "get", "Notes", "s/aa", exit: 1, ["did you mean s/a?"])
      #expect(typo.output.isEmpty)
    }
  }

  @Test func attributesAreTakenAndChecked() throws {
    try VaultLab.with { lab in
      try lab.set(
        "mail.example.com/ada", "x", "--class", "internetPassword", "--protocol", "imap", "--port", "993",
        "--synchronizable", "--access-control", "userPresence")
      #expect(try lab.names() == ["imap://ada@mail.example.com:993 [synchronizable]"])
      #expect(try lab.value("mail.example.com", "--class", "inet", "--synchronizable") == Array("x".utf8))
      try lab.succeed("vault", "rename", "Notes", "mail.example.com", "mail.example.org")
      #expect(try lab.names() == ["imap://ada@mail.example.org:993 [synchronizable]"])
      try lab.expectRefusal(
        "vault", "set-accessibility", "Notes", "mail.example.org", "whenUnlockedThisDeviceOnly", exit: 1,
        ["cannot be synchronizable and whenUnlockedThisDeviceOnly"])
      for wrong in [
        ["--port", "70000"], ["--accessible", "never"], ["--class", "x"], ["--access-control", "x"],
      ] {
        let result = try lab.lab.drydock(["vault", "set", "Notes", "a"] + wrong)
        #expect(result.exitCode == 64, "\(result)")
      }
      let nameless = try lab.drydock("vault", "set", "Notes", "/", input: [1])
      #expect(nameless.exitCode == 1 && nameless.errors.contains("needs a name"), "\(nameless)")
      // What a slash would cut is given in parts.
      try lab.set("--service", "x", "https://example.com/a", "--account", "b")
      #expect(try lab.names().first == "https://example.com/a/b")
    }
  }

  @Test func valuesLeaveOnlyWhereTheyAreWanted() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "made-up-canary\n")
      try lab.succeed("vault", "get", "Notes", "s/a", "--output", "value.txt")
      #expect(try lab.lab.read("value.txt") == Array("made-up-canary\n".utf8))
      #expect(try lab.lab.run(Tools.system("stat"), "-c", "%a", lab.lab("value.txt")) == "600\n")
      try lab.expectRefusal("vault", "get", "Notes", "s/a", "--output", "value.txt", exit: 1, ["value.txt"])
      let json = try lab.json("vault", "get", "Notes", "s/a", "--json")
      #expect(json["text"] as? String == "made-up-canary\n")
      #expect(json["base64"] as? String == Data("made-up-canary\n".utf8).base64EncodedString())
      let others = [
        ["vault", "list", "Notes"], ["vault", "list", "Notes", "--json"], ["inspect", "Notes"],
        ["vault", "set-accessibility", "Notes", "s/a", "aku", "--dry-run", "--json"],
        ["vault", "rename", "Notes", "s/a", "s/b"], ["rollback", "Notes", "--json"],
        ["log", "Notes", "--json"],
        ["vault", "remove", "Notes", "s/a", "--dry-run"], ["vault", "remove", "Notes", "s/a", "--json"],
        ["vault", "get", "Notes", "s/a", "--json"],
      ]
      for arguments in others {
        let result = try lab.lab.drydock(arguments, environment: ["DRYDOCK_DEVICE_KEY": "device.txt"])
        #expect(!"\(result)".contains("canary") && !"\(result)".contains("bWFkZS11cC1jYW5hcn"), "\(result)")
      }
      let found = try Command.run(
        Tools.system("grep"), ["-rlE", "made-up-canary|bWFkZS11cC1jYW5hcn", lab.lab.directory.path])
      #expect(found.output == lab.lab("value.txt") + "\n", "\(found)")
    }
  }

  @Test func aTerminalIsShownAValueOnRequestOnly() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "made-up\u{1b}[31m")
      try lab.set("binary", "", "--value-file", "device.txt")
      try lab.lab.write("bytes", bytes: [0xFF])
      try lab.set("bytes", "", "--value-file", "bytes")
      func terminal(_ arguments: String) throws -> CommandResult {
        try Command.run(
          Tools.system("script"), ["-qec", "'\(lab.lab.program)' \(arguments)", "/dev/null"],
          environment: lab.lab.environment.merging(["DRYDOCK_DEVICE_KEY": "device.txt"]) { $1 },
          directory: lab.lab.directory.path)
      }
      let refused = try terminal("vault get Notes s/a")
      #expect(refused.exitCode == 64 && refused.output.contains("--reveal"), "\(refused)")
      #expect(!refused.output.contains("made-up"))
      let shown = try terminal("vault get Notes s/a --reveal")
      #expect(shown.exitCode == 0 && shown.output == "made-up\\u{1b}[31m\r\n", "\(shown)")
      let bytes = try terminal("vault get Notes bytes --reveal")
      #expect(bytes.exitCode == 64 && bytes.output.contains("is not text"), "\(bytes)")
    }
  }

  @Test func keysThatAreMissingOrWrong() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "x")
      try lab.lab.run(Tools.system("age-keygen"), "-o", "other.txt")
      let commands = [
        ["list", "Notes"], ["get", "Notes", "s/a"], ["remove", "Notes", "s/a"],
        ["rename", "Notes", "s/a", "s/b"],
        ["set-accessibility", "Notes", "s/a", "aku"], ["rekey", "Notes", "--new-device-key", "other.txt"],
      ]
      for command in commands {
        for (key, words) in [(nil, ["--device-key"]), ("other.txt", ["no device key opens"])] {
          _ = try lab.lab.expectRefusal(
            ["vault"] + command, exit: 4, words + ["encrypted to 1 recipient (X25519)"],
            environment: ["DRYDOCK_DEVICE_KEY": key])
        }
      }
      try lab.expectRefusal("vault", "set", "Notes", "s/b", exit: 4, ["device key"], key: nil)
      try lab.expectRefusal(
        "vault", "list", "Notes", exit: 4, ["no device key", "absent.txt"], key: "absent.txt")
      try lab.expectRefusal("vault", "list", "Notes", exit: 4, ["no device key"], key: "drydock.yaml")
      // Earlier keys are at hand too, and a flag wins over the variable.
      #expect(try lab.names(key: "other.txt:device.txt") == ["s/a"])
      let flagged = try lab.drydock("vault", "list", "Notes", "--device-key", "device.txt", key: "other.txt")
      #expect(flagged.succeeded, "\(flagged)")
    }
  }

  @Test func otherKeys() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "x")
      let device = try lab.json("vault", "list", "Notes", "--json")["device"] as? String
      for name in ["new.txt", "second.txt"] { try lab.lab.run(Tools.system("age-keygen"), "-o", name) }
      let result = try lab.drydock(
        "vault", "rekey", "Notes", "--new-device-key", "new.txt", "--recipient",
        try lab.recipient(of: "second.txt"))
      #expect(result.succeeded && result.errors.contains("the old keys still open every copy"), "\(result)")
      try lab.expectRefusal("vault", "list", "Notes", exit: 4, ["encrypted to 2 recipients"])
      for key in ["new.txt", "second.txt"] {
        let list = try lab.json("vault", "list", "Notes", "--json", key: key)
        #expect(list["device"] as? String == device, "a rotated key is still the same device")
        #expect((list["recipients"] as? [String])?.count == 2)
      }
      // A rewrite with one of them keeps both.
      try lab.succeed("vault", "rename", "Notes", "s/a", "s/b", key: "second.txt")
      #expect(try lab.names(key: "new.txt") == ["s/b"])
      try lab.expectRefusal("vault", "rekey", "Notes", exit: 64, ["--new-device-key"], key: "new.txt")
      let secret = try lab.drydock(
        "vault", "rekey", "Notes", "--recipient", "AGE-SECRET-KEY-1MADEUP", key: "new.txt")
      #expect(secret.exitCode == 64 && !"\(secret)".contains("MADEUP"), "\(secret)")
      let twice = try lab.drydock(
        "vault", "rekey", "Notes", "--new-device-key", "new.txt", "--new-device-key", "second.txt",
        key: "new.txt")
      #expect(twice.succeeded && twice.output.contains("nothing to change"), "\(twice)")
    }
  }

  @Test func aRollbackKeepsWhatTheAppWroteSince() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "one")
      try lab.set("s/a", "two", "--if-exists", "replace")
      // The app's own write: any program that knows the format.
      let opened = try lab.lab.run(
        Tools.system("age"), "-d", "-i", lab.lab("device.txt"), lab.lab(VaultLab.path))
      try lab.write(
        opened.replacing(
          "\"items\": [",
          with:
            #""items": [{"class": "genericPassword", "service": "app", "accessible": "always", "value": ""},"#
        ))
      try lab.expectRefusal(
        "rollback", "Notes", exit: 4, ["the vault has changed since", "--device-key"], key: nil)
      try lab.succeed("rollback", "Notes")
      #expect(try lab.names() == ["app", "s/a"])
      #expect(try lab.value("s/a") == Array("one".utf8))
      try lab.set("s/a", "three", "--if-exists", "replace")
      let three = try lab.lab.run(
        Tools.system("age"), "-d", "-i", lab.lab("device.txt"), lab.lab(VaultLab.path))
      try lab.write(three.replacing("dGhyZWU=", with: "Zm91cg=="))
      let conflict = try lab.expectRefusal(
        "rollback", "Notes", exit: 6, ["s/a in", "(secret, 5 characters, #"])
      #expect(!conflict.errors.contains("three") && !conflict.errors.contains("four"))
    }
  }

  @Test func differencesAreToldByItem() throws {
    try VaultLab.with { lab in
      try lab.set("s/a", "one")
      try lab.succeed("snapshot", "Notes", "-o", "A.tar.zst")
      try lab.set("s/a", "two", "--if-exists", "replace")
      try lab.set("s/b", "two")
      let told = try lab.drydock("diff", "A.tar.zst", "Notes", "--exit-code")
      #expect(told.exitCode == 2, "\(told)")
      let line = try #require(told.output.split(separator: "\n").first { $0.contains("+ s/b") })
      let mark = try #require(line.firstMatch(of: /#[0-9a-f]{8}/)?.output)
      let changed = #/~ s/a  value: \(secret, 3 characters, #[0-9a-f]{8}\) → \(secret, 3 characters/#
      #expect(told.output.contains(changed), "\(told)")
      #expect(
        told.output.split(separator: String(mark)).count == 3, "equal values can be seen to be equal: \(told)"
      )
      let closed = try lab.drydock("diff", "A.tar.zst", "Notes", key: nil)
      #expect(
        closed.output.contains("changed; it is encrypted to 1 recipient (X25519), and no device key"),
        "\(closed)")
      let verified = try lab.drydock("verify", "A.tar.zst", "--container", "Notes")
      #expect(verified.exitCode == 2 && verified.output.contains("+ s/b"), "\(verified)")
      let json = try lab.json("diff", "A.tar.zst", "Notes", "--json")
      let vault = try #require(((json["difference"] as? [String: Any])?["vault"] as? [[String: Any]])?.first)
      let names = (vault["items"] as? [[String: Any]])?.compactMap { $0["name"] as? String }
      #expect(names == ["s/a", "s/b"])
      // Back to the archive's: the items are the same then, whatever the file's bytes.
      try lab.succeed("restore", "A.tar.zst", "Notes", "--only", "vault", "--yes")
      #expect(try lab.value("s/a") == Array("one".utf8))
      #expect(try lab.succeed("diff", "A.tar.zst", "Notes").contains("no difference"))
    }
  }
}
