import Foundation
import TestSupport
import Testing

/// `drydock vault`, as its user sees it.
@Suite struct VaultCommandTests {
  @Test func fromSetToRemove() throws {
    try VaultSandbox.with { sandbox in
      let before = try sandbox.sandbox.tree()
      try sandbox.set(
        "com.example.notes/auth", "made-up", "--accessible", "afterFirstUnlock", "--label", "Notes")
      #expect(try sandbox.value("com.example.notes/auth") == Array("made-up".utf8))
      #expect(try sandbox.value("com.example.notes") == Array("made-up".utf8), "the service alone will do")
      try sandbox.succeed("vault", "rename", "Notes", "com.example.notes/auth", "com.example.notes/token")
      try sandbox.succeed(
        "vault", "rename", "Notes", "com.example.notes/token", "--to-access-group", "group.x")
      try sandbox.succeed("vault", "set-accessibility", "Notes", "com.example.notes/token", "akpu")
      let list = try sandbox.json("vault", "list", "Notes", "--json")
      let item = try #require((list["items"] as? [[String: Any]])?.first)
      #expect(item["name"] as? String == "com.example.notes/token [group.x]")
      #expect(item["accessible"] as? String == "whenPasscodeSetThisDeviceOnly")
      #expect((item["attributes"] as? [String: String])?["label"] == "Notes")
      #expect(item["bytes"] as? Int == 7 && item["is_text"] as? Bool == true)
      try sandbox.succeed("vault", "remove", "Notes", "com.example.notes/token [group.x]")
      #expect(try sandbox.names() == [])
      // All of it can be undone, and no key is needed as long as nothing else wrote it.
      for _ in 0..<5 { try sandbox.succeed("rollback", "Notes", key: nil) }
      try sandbox.sandbox.tree().expectSame(as: before)
    }
  }

  @Test func valuesAreBytes() throws {
    try VaultSandbox.with { sandbox in
      let binary = (0...255).map { UInt8($0) } + [0x0A]
      try sandbox.sandbox.write("binary", bytes: binary)
      try sandbox.set("binary", "", "--value-file", "binary")
      #expect(try sandbox.value("binary") == binary)
      let kept = try sandbox.drydock("vault", "set", "Notes", "kept", input: Array("line\n".utf8))
      #expect(kept.succeeded && kept.errors.contains("--text drops it"), "\(kept)")
      #expect(try sandbox.value("kept") == Array("line\n".utf8))
      try sandbox.set("text", "line\r\n", "--text")
      #expect(try sandbox.value("text") == Array("line".utf8))
      try sandbox.set("two", "line\n\n", "--text")
      #expect(try sandbox.value("two") == Array("line\n".utf8))
      let refused = try sandbox.drydock("vault", "set", "Notes", "no-text", "--text", input: [0xFF])
      #expect(refused.exitCode == 64 && refused.errors.contains("not UTF-8 text"), "\(refused)")
      // The command in front of the pipe failed.
      try sandbox.expectRefusal(
        "vault", "set", "Notes", "text", "--if-exists", "replace", exit: 64, ["--empty"])
      try sandbox.set("empty", "", "--empty")
      #expect(try sandbox.value("empty") == [])
      var random = SeededRandom(seed: 9)
      let large = random.bytes(1 << 20)
      try sandbox.sandbox.write("large", bytes: large)
      try sandbox.set("large", "", "--value-file", "large")
      #expect(try sandbox.value("large") == large)
      let argument = try sandbox.drydock("vault", "set", "Notes", "a", "a value")
      #expect(argument.exitCode == 64 && argument.output.isEmpty, "\(argument)")
    }
  }

  @Test func whatIsThereIsNotOverwritten() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "one", "--label", "Label", "--accessible", "ck")
      let refused = try sandbox.drydock("vault", "set", "Notes", "s/a", input: Array("two".utf8))
      #expect(refused.exitCode == 1 && refused.errors.contains("--if-exists replace"), "\(refused)")
      try sandbox.set("s/a", "two", "--if-exists", "keep")
      #expect(try sandbox.value("s/a") == Array("one".utf8))
      try sandbox.set("s/a", "two", "--if-exists", "replace", "--comment", "c")
      #expect(try sandbox.value("s/a") == Array("two".utf8))
      let list = try sandbox.json("vault", "list", "Notes", "--json")
      let item = try #require((list["items"] as? [[String: Any]])?.first)
      #expect(item["accessible"] as? String == "afterFirstUnlock", "what is not said stays")
      let attributes = try #require(item["attributes"] as? [String: String])
      #expect(attributes == ["service": "s", "account": "a", "label": "Label", "comment": "c"])
      try sandbox.set("s/b", "b")
      try sandbox.expectRefusal(
        "vault", "rename", "Notes", "s/a", "s/b", exit: 1, ["the vault already has s/b"])
      try sandbox.expectRefusal(
        "vault", "rename", "Notes", "s/c", "s/d", exit: 1, ["no item of the vault matches s/c"])
      try sandbox.expectRefusal("vault", "rename", "Notes", "s/a", exit: 64, ["no new name"])
      try sandbox.expectRefusal("vault", "remove", "Notes", exit: 64, ["no item is named"])
      #expect(try sandbox.succeed("vault", "rename", "Notes", "s/a", "s/a").contains("nothing to change"))
      let typo = try sandbox.expectRefusal("vault", "get", "Notes", "s/aa", exit: 1, ["did you mean s/a?"])
      #expect(typo.output.isEmpty)
    }
  }

  @Test func attributesAreTakenAndChecked() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set(
        "mail.example.com/ada", "x", "--class", "internetPassword", "--protocol", "imap", "--port", "993",
        "--synchronizable")
      #expect(try sandbox.names() == ["imap://ada@mail.example.com:993 [synchronizable]"])
      #expect(try sandbox.value("mail.example.com", "--class", "inet", "--synchronizable") == Array("x".utf8))
      try sandbox.succeed("vault", "rename", "Notes", "mail.example.com", "mail.example.org")
      #expect(try sandbox.names() == ["imap://ada@mail.example.org:993 [synchronizable]"])
      try sandbox.expectRefusal(
        "vault", "set-accessibility", "Notes", "mail.example.org", "whenUnlockedThisDeviceOnly", exit: 1,
        ["cannot be synchronizable and whenUnlockedThisDeviceOnly"])
      try sandbox.expectRefusal(
        "vault", "set-access-control", "Notes", "mail.example.org", "--access-control", "userPresence",
        exit: 1,
        ["cannot be synchronizable and under access control"])
      try sandbox.succeed("vault", "set-synchronizable", "Notes", "mail.example.org", "false")
      try sandbox.succeed(
        "vault", "set-access-control", "Notes", "mail.example.org", "--access-control", "userPresence")
      try sandbox.expectRefusal(
        "vault", "set-synchronizable", "Notes", "mail.example.org", "true", exit: 1,
        ["cannot be synchronizable and under access control"])
      try sandbox.succeed("vault", "set-access-control", "Notes", "mail.example.org", "--none")
      try sandbox.succeed("vault", "set-synchronizable", "Notes", "mail.example.org", "true")
      #expect(try sandbox.names() == ["imap://ada@mail.example.org:993 [synchronizable]"])
      for wrong in [
        ["--port", "70000"], ["--accessible", "never"], ["--class", "x"], ["--access-control", "x"],
      ] {
        let result = try sandbox.sandbox.drydock(["vault", "set", "Notes", "a"] + wrong)
        #expect(result.exitCode == 64, "\(result)")
      }
      let nameless = try sandbox.drydock("vault", "set", "Notes", "/", input: [1])
      #expect(nameless.exitCode == 1 && nameless.errors.contains("needs a name"), "\(nameless)")
      // What a slash would cut is given in parts.
      try sandbox.set("--service", "x", "https://example.com/a", "--account", "b")
      #expect(try sandbox.names().first == "https://example.com/a/b")
    }
  }

  @Test func valuesLeaveOnlyWhereTheyAreWanted() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "made-up-canary\n")
      try sandbox.succeed("vault", "get", "Notes", "s/a", "--output", "value.txt")
      #expect(try sandbox.sandbox.read("value.txt") == Array("made-up-canary\n".utf8))
      #expect(
        try sandbox.sandbox.run(Tools.system("stat"), "-c", "%a", sandbox.sandbox("value.txt")) == "600\n")
      try sandbox.expectRefusal(
        "vault", "get", "Notes", "s/a", "--output", "value.txt", exit: 1, ["value.txt"])
      let json = try sandbox.json("vault", "get", "Notes", "s/a", "--json")
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
        let result = try sandbox.sandbox.drydock(arguments, environment: ["DRYDOCK_DEVICE_KEY": "device.txt"])
        #expect(!"\(result)".contains("canary") && !"\(result)".contains("bWFkZS11cC1jYW5hcn"), "\(result)")
      }
      let found = try Command.run(
        Tools.system("grep"), ["-rlE", "made-up-canary|bWFkZS11cC1jYW5hcn", sandbox.sandbox.directory.path])
      #expect(found.output == sandbox.sandbox("value.txt") + "\n", "\(found)")
    }
  }

  @Test func aTerminalIsShownAValueOnRequestOnly() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "made-up\u{1b}[31m")
      try sandbox.set("binary", "", "--value-file", "device.txt")
      try sandbox.sandbox.write("bytes", bytes: [0xFF])
      try sandbox.set("bytes", "", "--value-file", "bytes")
      func terminal(_ arguments: String) throws -> CommandResult {
        try Command.run(
          Tools.system("script"), ["-qec", "'\(sandbox.sandbox.program)' \(arguments)", "/dev/null"],
          environment: sandbox.sandbox.environment.merging(["DRYDOCK_DEVICE_KEY": "device.txt"]) { $1 },
          directory: sandbox.sandbox.directory.path)
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
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "x")
      try sandbox.sandbox.run(Tools.system("age-keygen"), "-o", "other.txt")
      let commands = [
        ["list", "Notes"], ["get", "Notes", "s/a"], ["remove", "Notes", "s/a"],
        ["rename", "Notes", "s/a", "s/b"],
        ["set-accessibility", "Notes", "s/a", "aku"], ["set-synchronizable", "Notes", "s/a", "true"],
        ["set-access-control", "Notes", "s/a", "--none"],
        ["rekey", "Notes", "--new-device-key", "other.txt"],
      ]
      for command in commands {
        for (key, words) in [(nil, ["--device-key"]), ("other.txt", ["no device key opens"])] {
          _ = try sandbox.sandbox.expectRefusal(
            ["vault"] + command, exit: 4, words + ["encrypted to 1 recipient (X25519)"],
            environment: ["DRYDOCK_DEVICE_KEY": key])
        }
      }
      try sandbox.expectRefusal("vault", "set", "Notes", "s/b", exit: 4, ["device key"], key: nil)
      try sandbox.expectRefusal(
        "vault", "list", "Notes", exit: 4, ["no device key", "absent.txt"], key: "absent.txt")
      try sandbox.expectRefusal("vault", "list", "Notes", exit: 4, ["no device key"], key: "drydock.yaml")
      // Earlier keys are at hand too, and a flag wins over the variable.
      #expect(try sandbox.names(key: "other.txt:device.txt") == ["s/a"])
      let flagged = try sandbox.drydock(
        "vault", "list", "Notes", "--device-key", "device.txt", key: "other.txt")
      #expect(flagged.succeeded, "\(flagged)")
    }
  }

  @Test func otherKeys() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "x")
      let device = try sandbox.json("vault", "list", "Notes", "--json")["device"] as? String
      for name in ["new.txt", "second.txt"] {
        try sandbox.sandbox.run(Tools.system("age-keygen"), "-o", name)
      }
      let result = try sandbox.drydock(
        "vault", "rekey", "Notes", "--new-device-key", "new.txt", "--recipient",
        try sandbox.recipient(of: "second.txt"))
      #expect(result.succeeded && result.errors.contains("the old keys still open every copy"), "\(result)")
      try sandbox.expectRefusal("vault", "list", "Notes", exit: 4, ["encrypted to 2 recipients"])
      for key in ["new.txt", "second.txt"] {
        let list = try sandbox.json("vault", "list", "Notes", "--json", key: key)
        #expect(list["device"] as? String == device, "a rotated key is still the same device")
        #expect((list["recipients"] as? [String])?.count == 2)
      }
      // A rewrite with one of them keeps both.
      try sandbox.succeed("vault", "rename", "Notes", "s/a", "s/b", key: "second.txt")
      #expect(try sandbox.names(key: "new.txt") == ["s/b"])
      try sandbox.expectRefusal("vault", "rekey", "Notes", exit: 64, ["--new-device-key"], key: "new.txt")
      let secret = try sandbox.drydock(
        "vault", "rekey", "Notes", "--recipient", "AGE-SECRET-KEY-1MADEUP", key: "new.txt")
      #expect(secret.exitCode == 64 && !"\(secret)".contains("MADEUP"), "\(secret)")
      let twice = try sandbox.drydock(
        "vault", "rekey", "Notes", "--new-device-key", "new.txt", "--new-device-key", "second.txt",
        key: "new.txt")
      #expect(twice.succeeded && twice.output.contains("nothing to change"), "\(twice)")
    }
  }

  @Test func aRollbackKeepsWhatTheAppWroteSince() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "one")
      try sandbox.set("s/a", "two", "--if-exists", "replace")
      // The app's own write: any program that knows the format.
      let opened = try sandbox.sandbox.run(
        Tools.system("age"), "-d", "-i", sandbox.sandbox("device.txt"), sandbox.sandbox(VaultSandbox.path))
      try sandbox.write(
        opened.replacing(
          "\"items\": [",
          with:
            #""items": [{"class": "genericPassword", "service": "app", "accessible": "always", "value": ""},"#
        ))
      try sandbox.expectRefusal(
        "rollback", "Notes", exit: 4, ["the vault has changed since", "--device-key"], key: nil)
      try sandbox.succeed("rollback", "Notes")
      #expect(try sandbox.names() == ["app", "s/a"])
      #expect(try sandbox.value("s/a") == Array("one".utf8))
      try sandbox.set("s/a", "three", "--if-exists", "replace")
      let three = try sandbox.sandbox.run(
        Tools.system("age"), "-d", "-i", sandbox.sandbox("device.txt"), sandbox.sandbox(VaultSandbox.path))
      try sandbox.write(three.replacing("dGhyZWU=", with: "Zm91cg=="))
      let conflict = try sandbox.expectRefusal("rollback", "Notes", exit: 6, ["nothing was changed"])
      let lines = conflict.errors.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
      #expect(lines.contains("s/a in \(VaultSandbox.path.replacing("Notes/", with: ""))"), "\(conflict)")
      for side in ["before  ", "transaction  ", "app  "] {
        #expect(lines.contains { $0.hasPrefix(side) && $0.contains("(secret, ") }, "\(side) \(conflict)")
      }
      #expect(!conflict.errors.contains("three") && !conflict.errors.contains("four"))
    }
  }

  @Test func differencesAreToldByItem() throws {
    try VaultSandbox.with { sandbox in
      try sandbox.set("s/a", "one")
      try sandbox.succeed("snapshot", "Notes", "-o", "A.tar.zst")
      try sandbox.set("s/a", "two", "--if-exists", "replace")
      try sandbox.set("s/b", "two")
      let told = try sandbox.drydock("diff", "A.tar.zst", "Notes", "--exit-code")
      #expect(told.exitCode == 2, "\(told)")
      let line = try #require(told.output.split(separator: "\n").first { $0.contains("+ s/b") })
      let mark = try #require(line.firstMatch(of: /#[0-9a-f]{8}/)?.output)
      let changed = #/~ s/a  value: \(secret, 3 characters, #[0-9a-f]{8}\) → \(secret, 3 characters/#
      #expect(told.output.contains(changed), "\(told)")
      #expect(
        told.output.split(separator: String(mark)).count == 3, "equal values can be seen to be equal: \(told)"
      )
      let closed = try sandbox.drydock("diff", "A.tar.zst", "Notes", key: nil)
      #expect(
        closed.output.contains("changed; it is encrypted to 1 recipient (X25519), and no device key"),
        "\(closed)")
      let verified = try sandbox.drydock("verify", "A.tar.zst", "--container", "Notes")
      #expect(verified.exitCode == 2 && verified.output.contains("+ s/b"), "\(verified)")
      let json = try sandbox.json("diff", "A.tar.zst", "Notes", "--json")
      let vault = try #require(((json["difference"] as? [String: Any])?["vault"] as? [[String: Any]])?.first)
      let names = (vault["items"] as? [[String: Any]])?.compactMap { $0["name"] as? String }
      #expect(names == ["s/a", "s/b"])
      // Back to the archive's: the items are the same then, whatever the file's bytes.
      try sandbox.succeed("restore", "A.tar.zst", "Notes", "--only", "vault", "--yes")
      #expect(try sandbox.value("s/a") == Array("one".utf8))
      #expect(try sandbox.succeed("diff", "A.tar.zst", "Notes").contains("no difference"))
    }
  }
}
