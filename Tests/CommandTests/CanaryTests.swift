import Foundation
import TestSupport
import Testing

/// Secrets are planted in every store; then every command runs in every mode, and whatever it prints or leaves on disk
/// is searched for them.
@Suite struct CanaryTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  @Test func `The search finds a canary in every form, and at every place`() throws {
    let needles = Canary.needles(.plain)
    let text = "before \(Canary.plain.value("x")) after"
    let forms: [[UInt8]] = [
      Array(text.utf8), Array(text.utf16).flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] },
      Array(text.utf16).flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] },
      text.utf8.flatMap { Array(String(format: "%02x", $0).utf8) },
      text.utf8.flatMap { Array(String(format: "%02X", $0).utf8) },
      text.utf8.flatMap { Array(String(format: "%%%02x", $0).utf8) },
    ]
    for bytes in forms { #expect(!needles.found(in: Data(bytes)).isEmpty) }
    for shift in 0..<6 {
      let encoded = Data((String(repeating: "z", count: shift) + text).utf8).base64EncodedString()
      #expect(!needles.found(in: encoded).isEmpty, "\(shift)")
    }
    #expect(needles.found(in: "pin = \(Canary.pin)") != [] && needles.found(in: "nothing") == [])
    try Sandbox.with { sandbox in
      let canaries = try CanarySandbox(sandbox)
      try canaries.searchDisk("before")
      for (kind, path) in [
        (Canary.plain, "tmp/x"), (.plain, "drydock.yaml"), (.plain, ".drydock-0123456789abcdef/journal"),
        (.plain, ".drydock-0123456789abcdef/undo/x/record.json"),
        (.plain, ".drydock-0123456789abcdef/stage/x/1"), (.sealed, "Notes/x"), (.plain, "a.tar.zst.age"),
        (.plain, "Migrations/x"), (.plain, "\(Canary.plain.rawValue).age"),
      ] as [(Canary, String)] {
        try sandbox.write(path, kind.value("x"))
        #expect(try !canaries.foundOnDisk().isEmpty, "\(path)")
        if path != "drydock.yaml" { try sandbox.remove(path) } else { try sandbox.write(path, "") }
      }
      try canaries.searchDisk("after")
    }
  }

  @Test func `Every command has its part in the story, each dry run too`() throws {
    for (words, command) in try ProgramCommand.all() where command.subcommands == nil {
      let own = CanaryStory.steps.filter { $0.words.starts(with: words) }
      #expect(!own.isEmpty, "\(words) has no step in CanaryStory: give it one for each mode that it has")
      if command.has("dry-run") { #expect(own.contains { $0.words.contains("--dry-run") }, "\(words)") }
    }
  }

  @Test(arguments: ["text", "json"])
  func `No command sings, in words or JSON, by flags or variables`(_ mode: String) throws {
    let canaries = try CanarySandbox(sandbox)
    let isJSON = mode == "json"
    canaries.environment = [
      "DRYDOCK_DEVICE_KEY": sandbox(CanarySandbox.device), "DRYDOCK_CACHE": sandbox("Cache"),
      "DRYDOCK_COMMIT": isJSON ? "in-place" : "exchange",
    ]
    if isJSON { canaries.environment.merge(try Self.variables(canaries)) { $1 } }
    // A passphrase costs a second each time, by design.
    let steps = CanaryStory.steps.filter { !isJSON || !$0.words.contains("--passphrase-file") }
    var wasCached = false
    for (number, step) in steps.enumerated() {
      try step.before?(canaries)
      let words = step.words + (isJSON ? ["--json"] : [])
      let result = try canaries.run(words, input: Array(step.input.utf8), prints: step.prints)
      #expect(step.exits.contains(result.exitCode), "\(step.words.joined(separator: " "))\n\(result)")
      if step.prints { #expect(!Canary.needles(.sealed).found(in: Data(result.outputBytes)).isEmpty) }
      let isCached = (try? sandbox.names("Cache/manifests").isEmpty) == false
      if isCached && !wasCached {
        try canaries.searchDisk("the cache after \(step.words.joined(separator: " "))")
      }
      wasCached = wasCached || isCached
      if number.isMultiple(of: 8) { try canaries.searchDisk("after \(step.words.joined(separator: " "))") }
    }
    try canaries.searchDisk("at the end")
    #expect(wasCached, "manifests were cached, and searched")
    try canaries.searchArchives([.sealed])
    for archive in ["plain.tar.zst", "signed.tar.zst", "copied.tar.zst"] { try sandbox.remove(archive) }
    try sandbox.remove("Backups")
    try canaries.searchArchives([.moved])
  }

  @Test func `What is plain, or a key, can be read by its owner only`() throws {
    let canaries = try CanarySandbox(sandbox)
    canaries.environment = ["DRYDOCK_DEVICE_KEY": sandbox(CanarySandbox.device)]
    for line in [
      "snapshot Notes -o plain.tar.zst", "export plain.tar.zst -o copy.tar.zst", "snapshot Notes -r Backups",
      "keygen -o new.txt", "vault set Notes a/b --value-file Keys/first", "vault get Notes a/b --output got",
      "inspect Notes --html page.html",
    ] { #expect(try canaries.run(line.split(separator: " ").map(String.init)).succeeded, "\(line)") }
    let state = try sandbox.state()
    let wanted: [(String, mode_t)] = [
      ("plain.tar.zst", 0o600), ("copy.tar.zst", 0o600), ("new.txt", 0o600), ("got", 0o600),
      ("page.html", 0o600), ("Backups", 0o700), (state, 0o700), ("Notes/Library/Vault/vault.age", 0o600),
    ]
    for (path, mode) in wanted {
      #expect(try RawFiles.status(Array(sandbox(path).utf8)).st_mode & 0o777 == mode, "\(path)")
    }
  }

  /// Every variable that the program knows, by its source; a new one must be tried here.
  private static func variables(_ canaries: CanarySandbox) throws -> [String: String?] {
    let sandbox = canaries.sandbox
    let values: [String: String?] = [
      "CONFIG": sandbox("drydock.yaml"), "LOCK_TIMEOUT": "1", "BUSY_TIMEOUT": "1", "COMMIT": "in-place",
      "MIGRATIONS": sandbox("Migrations"), "FIXTURES": sandbox("Fixtures"), "MAX_SIZE": "1GB",
      "REPOSITORY": sandbox("Backups"), "CACHE": sandbox("Cache"),
      "IDENTITY": "\(sandbox("Keys/other.txt")):\(sandbox(CanarySandbox.identity))", "PROGRESS": "json",
      "DEVICE_KEY": "\(sandbox(CanarySandbox.device)):\(sandbox("Keys/device2.txt"))",
      "RECIPIENTS": try canaries.recipient("identity"), "KILL_AT": nil,
      "PASSWORD_FILE": sandbox("Keys/password.txt"), "SIGN": sandbox("Keys/sign"),
      "TRUSTED": sandbox("Keys/sign.pub"), "LIMIT_RATE": "1GB",
    ]
    let folder = Sandbox.repository + "/Sources/DrydockCommand"
    var known: Set<String> = []
    for file in FileManager.default.enumerator(atPath: folder)?.compactMap({ $0 as? String }) ?? []
    where file.hasSuffix(".swift") {
      let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
      known.formUnion(
        text.matches(of: #/(?:Environment\[|seconds\(|, or: )"([A-Z_]+)"/#).map { String($0.1) })
    }
    #expect(known == Set(values.keys), "variables of the program that are not tried, or are no more")
    return Dictionary(uniqueKeysWithValues: values.map { ("DRYDOCK_" + $0.key, $0.value) })
  }

  @Test("Command lines that make no sense do not repeat what is secret in them")
  func nonsense() throws {
    let canaries = try CanarySandbox(sandbox)
    let key = try sandbox.text(CanarySandbox.identity).split(separator: "\n").last ?? ""
    let token = "gh" + "p_" + Canary.sealed.value("argument") + Canary.sealed.value("argument")
    let address = "https://ada:\(Canary.sealed.value("url"))@example.com/x"
    var tried: Set<String> = []
    for (words, command) in try ProgramCommand.all() where command.subcommands == nil {
      // One of those that the parser treats alike.
      guard tried.insert(command.values).inserted || TestExtent.isFull else { continue }
      try canaries.run(words + ["--help"])
      try canaries.run(words + [String(key)])
      try canaries.run(words + ["Notes", token, address, token, "--json"])
      try canaries.run(words + ["Notes", "--nonsense", String(key)])
      if words[0] == "vault" {
        try canaries.run(words + ["Notes", "a", "whenUnlocked", "c", Canary.sealed.value("argument")])
      }
    }
    for option in [
      "--identity", "--passphrase-file", "--recipient", "--recipients-file", "--device-key", "--config", "-r",
    ] {
      try canaries.run(["snapshot", "Notes", "-o", "x.tar.zst", option, String(key)])
      try canaries.run(["show", address, option, String(key), "--json"])
    }
    for variable in [
      "IDENTITY", "RECIPIENTS", "DEVICE_KEY", "CONFIG", "REPOSITORY", "MAX_SIZE", "COMMIT", "KILL_AT",
    ] {
      let extra = ["DRYDOCK_" + variable: String(key)]
      for line in ["snapshot Notes -r Backups", "vault list Notes --json"] {
        let words = line.split(separator: " ").map(String.init)
        try canaries.run(words, environment: extra)
      }
    }
    try canaries.searchDisk("at the end")
  }
}
