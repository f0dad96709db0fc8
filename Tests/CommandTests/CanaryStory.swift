import Foundation

/// A long session with a container full of canaries: every command, in every mode that it has.
struct CanaryStory {
  /// One command line; `{plain}` and `{sealed}` are archives.
  struct Step {
    var words: [String]
    var input = ""
    /// Whether printing a secret is what the command is for.
    var prints = false
    var exits: Set<Int32> = [0]
    var before: (@Sendable (CanarySandbox) throws -> Void)?
  }

  static func step(
    _ line: String, input: String = "", prints: Bool = false, exits: Set<Int32> = [0],
    before: (@Sendable (CanarySandbox) throws -> Void)? = nil
  ) -> Step {
    Step(
      words: line.split(separator: " ").map(String.init), input: input, prints: prints, exits: exits,
      before: before)
  }

  /// In the order of a life: each step builds upon those before it.
  static let steps: [Step] = [
    step("inspect Notes --html Pages/inspect.html"),
    step("inspect Notes"), step("explain Notes Documents/secret.txt"),
    step("audit Notes"), step("audit --rules"),
    step(
      "audit Notes --info Keys/Info.plist --privacy-manifest Keys/Info.plist --entitlements Keys/Info.plist --fail-on error --sarif audit.sarif --html audit.html",
      exits: [4],
      before: { canaries in
        let secret = Canary.plain.value("info")
        let token = "gh" + "p_" + secret + secret
        try CanaryPlants(sandbox: canaries.sandbox, container: "Keys").change("Info.plist", .xml) {
          $0["NSCameraUsageDescription"] = ""
          $0["NS\(token)UsageDescription"] = secret
          $0["CFBundleIdentifier"] = token
          $0["NSAppTransportSecurity"] = [
            "NSExceptionDomains": [token: ["NSExceptionAllowsInsecureHTTPLoads": true]]
          ]
          $0["NSPrivacyAccessedAPITypes"] = [["NSPrivacyAccessedAPIType": token]]
          $0["NSPrivacyCollectedDataTypes"] = [["NSPrivacyCollectedDataType": token]]
          $0["com.apple.security.application-groups"] = [token]
        }
      }),
    step("vault set Notes com.example.notes/first --value-file Keys/first"),
    step(
      "vault set Notes com.example.notes/second --accessible afterFirstUnlock",
      input: Canary.sealed.value("stdin")),
    step("vault set Notes com.example.notes/third --dry-run --value-file Keys/third"),
    step("vault set Notes com.example.notes/third --value-file Keys/third --label hello --text"),
    step("vault set Notes com.example.notes/first --if-exists replace --dry-run --value-file Keys/second"),
    step("vault list Notes"), step("vault get Notes com.example.notes/first", prints: true),
    step("vault get Notes com.example.notes/first --output Keys/got"),
    step("vault rename Notes com.example.notes/first com.example.notes/one --dry-run"),
    step("vault rename Notes com.example.notes/first com.example.notes/one"),
    step("vault set-accessibility Notes com.example.notes/one afterFirstUnlock --dry-run"),
    step("vault set-accessibility Notes com.example.notes/one afterFirstUnlock"),
    step("vault set-access-control Notes com.example.notes/one --access-control userPresence --dry-run"),
    step("vault set-access-control Notes com.example.notes/one --access-control userPresence"),
    step("vault set-access-control Notes com.example.notes/one --none"),
    step("vault set-synchronizable Notes com.example.notes/one true --dry-run"),
    step("vault set-synchronizable Notes com.example.notes/one true"),
    step("vault set-synchronizable Notes com.example.notes/one false"),
    step("vault rekey Notes --new-device-key Keys/device.txt --new-device-key Keys/device2.txt --dry-run"),
    step("vault rekey Notes --new-device-key Keys/device.txt --new-device-key Keys/device2.txt"),
    step("vault remove Notes com.example.notes/third --dry-run"),
    step("vault remove Notes com.example.notes/third"), step("rollback Notes"), step("rollback Notes --redo"),
    step("defaults read Notes"), step("defaults read Notes password", exits: [1]),
    step("defaults read Notes credentials --path /inner/x/0", exits: [1]),
    step("defaults read Notes cookies --path /0/Value", exits: [1]),
    step("defaults read Notes --file Library/Preferences/com.example.other.plist"),
    step("defaults read Notes passwort", exits: [1]),
    step("defaults write Notes password --value-file - --dry-run", input: Canary.plain.value("written")),
    step("defaults write Notes password --value-file -", input: Canary.plain.value("written")),
    step(
      "defaults write Notes password --value-file - --type int", input: Canary.plain.value("written"),
      exits: [64]),
    step(
      "defaults write Notes credentials --value-file - --add",
      input: "{more: \(Canary.plain.value("written"))}"),
    step("defaults delete Notes credentials --path /inner --dry-run"),
    step("defaults delete Notes credentials --path /inner"),
    step("defaults import Notes - --dry-run", input: #"{"password": "\#(Canary.plain.value("imported"))"}"#),
    step("defaults import Notes -", input: #"{"password": "\#(Canary.plain.value("imported"))"}"#),
    step(
      "defaults import Notes -", input: #"{"password": "\#(Canary.plain.value("imported"))", "n": null}"#,
      exits: [1]),
    step("defaults export Notes Keys/settings.plist"),
    step("defaults export Notes Keys/settings.json --as json", exits: [1]),
    step("defaults convert Keys/settings.plist --as openstep --output Keys/settings.text", exits: [1]),
    step("defaults convert Keys/settings.plist --as binary --in-place"),
    step("log Notes"),
    step("snapshot Notes -o plain.tar.zst --no-encryption"),
    step("snapshot Notes -r Backups --no-encryption"),
    step("snapshot Notes -o sealed.tar.zst.age --recipients-file Keys/identity.pub"),
    step("snapshot Notes -r Sealed --recipients-file Keys/identity.pub --include-excluded"),
    step("snapshot Notes -o passphrase.tar.zst.age --passphrase-file Keys/passphrase.txt"),
    step("snapshot Notes -o signed.tar.zst --no-encryption --sign Keys/sign"),
    step("snapshot Notes -r Signed --recipients-file Keys/identity.pub --sign Keys/sign"),
    step("sign plain.tar.zst --sign Keys/sign"), step("sign -r Backups --sign Keys/sign"),
    step("sign signed.tar.zst --sign Keys/identity.txt", exits: [4]),
    step("verify signed.tar.zst --trusted Keys/sign.pub"), step("list -r Signed --trusted Keys/sign.pub"),
    step("list -r Backups"), step("list -r Sealed --identity Keys/identity.txt"),
    step("show plain.tar.zst"), step("show sealed.tar.zst.age --identity Keys/identity.txt"),
    step("show passphrase.tar.zst.age --passphrase-file Keys/passphrase.txt Documents"),
    step("verify plain.tar.zst --data"), step("verify plain.tar.zst --container Notes", exits: [0, 2]),
    step("verify sealed.tar.zst.age --data --identity Keys/identity.txt --container Notes", exits: [0, 2]),
    step("verify -r Backups"),
    step("tag latest -r Backups --add keep"), step("forget -r Backups --keep-tag keep --dry-run"),
    step("forget -r Backups --keep-last 1"),
    // Backups of devices, encrypted with a password, with secrets in files and in the keychain.
    step(
      "import Device --list --password-file Keys/password.txt",
      before: { canaries in
        let password = Canary.sealed.value("password")
        try canaries.sandbox.write("Keys/password.txt", password + "\n")
        try canaries.sandbox.write("Keys/item.txt", Canary.sealed.value("keychain"))
        try ImportTests.make(
          """
          import plistlib
          password, value = open("Keys/password.txt", "rb").read().strip(), open("Keys/item.txt", "rb").read()
          keybag = m.Keybag(password)
          phone = m.IPhoneBackup("Device", keybag)
          phone.add(m.APP, "Documents/secret.txt", b"\(Canary.plain.value("phone"))")
          phone.add(m.GROUP, "shared.txt", b"\(Canary.plain.value("shared"))")
          item = lambda account, **more: m.item(keybag, 6, {"agrp": "com.example.notes", "acct": account, "svce": "s", "pdmn": "ak", "v_Data": value, **more})
          keychain = {"genp": [item("a"), item("b", gena=value, icmt="c"), item("d", pdmn="dku")]}
          phone.add("KeychainDomain", "keychain-backup.plist", plistlib.dumps(keychain))
          phone.finish()
          stuff = dict(name="apps/com.example.notes/f/secret.txt", content=b"\(Canary.plain.value("robot"))")
          m.android("robot.ab", password=password, tar=m.android_tar([stuff], bare=True))
          """, in: canaries.sandbox)
      }),
    step("import Device --app com.example.notes Phone --password-file Keys/password.txt", exits: [3]),
    step("import Device --app com.example.notes Again2 --password-file Keys/garbage.txt", exits: [64]),
    step("import Device --app com.example.notes Again2 --password-file Keys/first", exits: [4]),
    step(
      "import Device --app com.example.notes -o phone.tar.zst.age --password-file Keys/password.txt --recipients-file Keys/identity.pub",
      exits: [3]),
    step("vault list Phone"), step("inspect Phone"), step("inspect Device"), step("inspect robot.ab"),
    step("import robot.ab --password-file Keys/password.txt"),
    step("import robot.ab --app com.example.notes Robot --password-file Keys/password.txt"),
    step("import robot.ab --app com.example.notes Again2 --password-file Keys/second", exits: [4]),
    // Fixtures, which are for everybody's eyes.
    step(
      "fixture capture Notes used --fixtures Fixtures --rows 3",
      before: { try $0.sandbox.write("Fixtures/README", "") }),
    step(
      "fixture capture sealed.tar.zst.age archived --fixtures Fixtures --identity Keys/identity.txt --replace-key email"
    ),
    // What differs, with other canaries on the other side.
    step(
      "diff Notes Changed --details",
      before: { canaries in
        try canaries.sandbox.copy("Notes", to: "Changed")
        try CanaryPlants(sandbox: canaries.sandbox, container: "Changed").plant("b")
      }), step("diff Notes Changed --html Pages/diff.html"),
    step("diff Changed Nothing --html Pages/failed.html", exits: [1]),
    step("diff Notes Changed --exit-code", exits: [2]),
    step("diff plain.tar.zst Changed --details"),
    step("diff Changed sealed.tar.zst.age --details --identity Keys/identity.txt"),
    step(
      "diff Changed Empty --details", before: { try $0.sandbox.create("Empty", version: 0, "--signed-out") }),
    step("verify plain.tar.zst --container Changed", exits: [2]),
    step("export plain.tar.zst -o copied.tar.zst", exits: [0]),
    step(
      "export sealed.tar.zst.age --identity Keys/identity.txt --into Sealed --recipients-file Keys/other.pub"),
    step("keygen -o Keys/new.txt"), step("keygen -y Keys/identity.txt"), step("keygen"),
    step(
      "rekey sealed.tar.zst.age -o rekeyed.tar.zst.age --identity Keys/identity.txt --recipients-file Keys/other.pub"
    ),
    step("rekey plain.tar.zst --recipients-file Keys/identity.pub --into Sealed"),
    step(
      "rekey -r Sealed --identity Keys/identity.txt --identity Keys/other.txt --recipients-file Keys/new.pub --replace",
      before: { try $0.sandbox.copy("Keys/device2.pub", to: "Keys/new.pub") }),
    // Coming back, and what the app changed on both sides.
    step("restore plain.tar.zst Changed --from-other --dry-run", exits: [0, 3]),
    step("restore plain.tar.zst Changed --from-other", exits: [0, 3]),
    step(
      "rollback Changed", exits: [6],
      before: {
        try CanaryPlants(sandbox: $0.sandbox, container: "Changed").change(Sandbox.settings) {
          $0["password"] = Canary.plain.value("c")
          $0["credentials"] = ["inner": Canary.plain.value("c")]
        }
      }), step("rollback Changed --discard-newer"),
    step("restore sealed.tar.zst.age Again --identity Keys/identity.txt", exits: [0, 3]),
    step(
      "restore sealed.tar.zst.age Changed --identity Keys/identity.txt --from-other --only defaults",
      exits: [0, 3]),
    step(
      "restore sealed.tar.zst.age Changed --identity Keys/identity.txt --from-other --only vault --dry-run",
      exits: [0, 3]),
    step(
      "restore sealed.tar.zst.age Changed --identity Keys/identity.txt --from-other --only vault",
      exits: [0, 3]),
    step("restore plain.tar.zst Fresh --migrate --dry-run", exits: [0, 3]),
    step("status Notes"), step("validate"), step("migrate Notes --dry-run --html Pages/migrate.html"),
    // A fixture with what belongs in none: what it is expected to be is wrong, and so is its golden.
    step(
      "test secret --details --junit report.xml --markdown report.md --sarif report.sarif --html Pages/test.html",
      exits: [1],
      before: { try $0.addFixture("secret") }),
    step("validate --sarif migrations.sarif"),
    step("test secret --record", exits: [1]),
    step(
      "test secret --save-failures Failed --junit report.xml --markdown report.md --sarif report.sarif",
      exits: [1],
      before: {
        try CanaryPlants(sandbox: $0.sandbox, container: "Fixtures/secret/container").change(Sandbox.settings)
        {
          $0["password"] = Canary.plain.value("golden")
          $0["credentials"] = ["inner": Canary.plain.value("golden")]
        }
      }),
    step("status --all .", exits: [0, 3]), step("migrate --all . --dry-run --json", exits: [0, 3]),
    step("status --all . --run story --result results.jsonl", exits: [0, 3]),
    step("verify --all . -r Backups --run story --result results.jsonl", exits: [0, 1, 3]),
    step("summary results.jsonl --markdown summary.md --html Pages/summary.html", exits: [0, 1, 3]),
    step("migrate Notes", before: { $0.moved.insert("Notes") }), step("status Notes"),
    step("vault list Notes"),
    step("log Notes"), step("inspect Notes"), step("diff Notes plain.tar.zst --details"),
    step("rollback Notes", before: { $0.moved.remove("Notes") }),
    step("rollback Notes --redo", before: { $0.moved.insert("Notes") }), step("migrate Notes"),
    step("rollback Notes --to 3 --dry-run"), step("rollback Notes --down --dry-run"),
    step("rollback Notes --down", before: { $0.moved.remove("Notes") }), step("log Notes"),
    step("migrate Notes --each", before: { $0.moved.insert("Notes") }), step("rollback Notes --to 5"),
    step("rollback Notes --redo"),
    step("snapshot Notes -o later.tar.zst --no-encryption"),
    step(
      "repair Notes --accept 6",
      before: {
        let file = "Migrations/0006_repair_theme.yaml"
        try $0.sandbox.write(file, String(decoding: $0.sandbox.read(file), as: UTF8.self) + "# edited\n")
      }), step("release 1.0"), step("new photos"),
    step("baseline Changed --to 6"), step("recover Notes"),
    step("forget -r Sealed --app com.example.notes --everything --dry-run"),
    step("forget -r Sealed --app com.example.notes --everything --yes"),
    step("init Notes", before: { try $0.sandbox.remove("drydock.yaml") }),
  ]
}
