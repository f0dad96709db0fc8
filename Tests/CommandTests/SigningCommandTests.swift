import Foundation
import TestSupport
import Testing

/// `--sign`, `--trusted` and `trusted:` with the real programs.
@Suite("Signed archives on the command line")
struct SigningCommandTests {
  private let sandbox: Sandbox

  /// A sandbox with a container, a repository, and keys of minisign and OpenSSH.
  init() throws {
    sandbox = try Sandbox()
    try sandbox.create("Notes", version: 4)
    try sandbox.shell(
      """
      mkdir Backups keys; cd keys
      minisign -G -W -p key.pub -s key.sec > /dev/null; minisign -G -W -p other.pub -s other.sec > /dev/null
      ssh-keygen -q -t ed25519 -N '' -C builder@example.com -f ssh
      """)
  }

  @Test("With a policy in drydock.yaml only signed archives are restored")
  func policy() throws {
    try sandbox.succeed("snapshot Notes -r Backups --full")
    try sandbox.shell("printf 'trusted: [keys/key.pub]\\n' >> drydock.yaml")
    for arguments in ["restore latest New -r Backups", "verify -r Backups"] {
      let refused = try sandbox.drydock(arguments).expect(exit: 4)
      #expect((refused.output + refused.errors).contains("not signed"), "\(refused)")
    }
    #expect(try !sandbox.names(".").contains("New"))
    try sandbox.drydock("snapshot Notes -r Backups").expect(errors: "the archive is not signed")
    // Its parent is not signed, so it is full.
    try sandbox.drydock("snapshot Notes -r Backups --sign keys/key.sec").expect(errors: "is a full one")
    let next = try sandbox.drydock(
      "snapshot Notes -r Backups --json", environment: ["DRYDOCK_SIGN": "keys/key.sec"])
    #expect(
      next.output.contains("\"kind\" : \"incremental\"") && next.output.contains("\"minisign "), "\(next)")
    try sandbox.drydock("restore latest New -r Backups").expect(errors: "signed by minisign ")

    // Another key, on the command line and in a newer archive.
    try sandbox.drydock("verify -r Backups --trusted keys/other.pub").expect(exit: 4)
    try sandbox.succeed("snapshot Notes -r Backups --full --sign keys/other.sec")
    try sandbox.drydock("restore latest New -r Backups --yes").expect(exit: 4, errors: "not a trusted key")
    let list = try sandbox.succeed("list -r Backups")
    #expect(list.contains("signed by minisign ") && list.contains("not trusted: "), "\(list)")
  }

  @Test(
    "Keys in drydock.yaml, and what is wrong with them",
    arguments: [
      ("trusted: []", "`trusted` has no key"), ("trusted:", "trusted"),
      ("trusted: [ssh-ed25519 AAAA]", "drydock.yaml:"), ("trused: [x]", "did you mean `trusted`"),
      ("trusted: [a cert-authority ssh-ed25519 AAAA]", "the SSH key is malformed"),
      ("trusted: [keys/none.pub]", "keys/none.pub"), ("trusted: [keys/key.sec]", "this is a secret key"),
    ])
  func badPolicy(_ line: String, message: String) throws {
    let archive = try sandbox.snapshot("Notes")
    try sandbox.shell("printf '%s\\n' '\(line)' >> drydock.yaml")
    let result = try sandbox.drydock("verify", archive)
    #expect(!result.succeeded && (result.output + result.errors).contains(message), "\(result)")
  }

  @Test("A key of ssh-keygen, in drydock.yaml as text")
  func sshKey() throws {
    let key = try sandbox.shell("cat keys/ssh.pub").trimmingCharacters(in: .newlines)
    try sandbox.shell("printf 'trusted:\\n  - %s\\n' '\(key)' >> drydock.yaml")
    try sandbox.succeed("snapshot Notes -r Backups --sign keys/ssh")
    let verified = try sandbox.succeed("verify -r Backups --data")
    #expect(
      verified.contains("every byte, signed by builder@example.com (ssh-ed25519 SHA256:"), "\(verified)")
  }

  @Test("Secret keys and passphrases are in no output, file or process argument")
  func canary() throws {
    let passphrase = Canary.sealed.value("signing")
    try sandbox.shell(
      """
      printf '\(passphrase)\\n\(passphrase)\\n' | (ulimit -v 60000; minisign -G -p keys/sealed.pub -s keys/sealed.sec > tmp/made 2>&1)
      printf '\(passphrase)\\n' > keys/passphrase; printf 'wrong\\n' > keys/wrong; rm tmp/made
      ssh-keygen -q -t ed25519 -N '\(passphrase)' -f keys/encrypted
      """)
    let secrets = try ["key.sec", "sealed.sec", "ssh", "encrypted"].map { name in
      // The second line of each file has nothing but the key; of minisign's, the number of the key is not secret.
      let line = try sandbox.shell("sed -n 2p keys/\(name)").trimmingCharacters(in: .newlines)
      return String(line.suffix(40).prefix(24))
    }.filter { !$0.contains("AAAAAAAAAAAA") }
    let needles = Canary.needles(.sealed, keys: secrets)
    let runs: [(arguments: [String], exit: Int32)] = [
      (["--sign", "keys/sealed.sec", "--sign-passphrase-file", "keys/passphrase"], 0),
      (["--sign", "keys/sealed.sec", "--sign-passphrase-file", "keys/wrong"], 4),
      (["--sign", "keys/sealed.sec"], 4), (["--sign", "keys/encrypted"], 4), (["--sign", "keys/key.pub"], 4),
      (["--sign", "keys/passphrase"], 4), (["--sign", "keys/key.sec", "--sign", "keys/ssh"], 0),
      (["--sign", "keys/key.sec", "--sign", "keys/other.sec"], 64), (["--sign", "keys/none"], 1),
    ]
    for (arguments, exit) in runs {
      let result = try sandbox.drydock(
        ["snapshot", "Notes", "-r", "Backups", "--full"] + arguments, environment: ["SSH_AUTH_SOCK": nil]
      ).expect(exit: exit)
      #expect(needles.found(in: result.output + result.allErrors) == [])
    }
    for name in ["key.sec", "sealed.sec", "ssh", "encrypted", "passphrase"] {
      let result = try sandbox.drydock("verify", "-r", "Backups", "--trusted", "keys/\(name)").expect(exit: 4)
      #expect(needles.found(in: result.output + result.allErrors) == [], "\(name)")
    }
    let files = try sandbox.shell("cat Backups/*.statement*; find tmp -type f -exec cat {} +")
    #expect(needles.found(in: files) == [])
  }

  @Test("A variable for trusted keys that names no file is refused", arguments: [":", "::"])
  func emptyVariable(_ value: String) throws {
    try sandbox.drydock("verify -r Backups", environment: ["DRYDOCK_TRUSTED": value]).expect(
      exit: 64, errors: "DRYDOCK_TRUSTED has no file")
  }

  @Test("At remote places, too", arguments: ["s3", "sftp"])
  func remote(_ kind: String) throws {
    let place = kind == "s3" ? try RemoteServers.s3() : try RemoteServers.sftp()
    func drydock(_ arguments: String...) throws -> CommandResult {
      try sandbox.drydock(arguments, environment: place.environment.mapValues { $0 })
    }
    for _ in 0..<2 {
      try drydock("snapshot", "Notes", "-r", place.url, "--sign", "keys/key.sec").expect()
    }
    try drydock("verify", "-r", place.url, "--data", "--trusted", "keys/key.pub").expect(
      output: "signed by minisign ")
    try drydock("restore", "latest", "New", "-r", place.url, "--trusted", "keys/key.pub").expect(
      errors: "signed by minisign ")
    try drydock("restore", "latest", "Other", "-r", place.url, "--trusted", "keys/other.pub").expect(
      exit: 4, errors: "not a trusted key")
    let list = try drydock("list", "-r", place.url, "--trusted", "keys/key.pub")
    #expect(list.output.split(separator: "\n").dropFirst().allSatisfy { $0.contains("signed by minisign ") })
    try drydock("forget", "-r", place.url, "--app", "com.example.notes", "--everything", "--yes").expect()
    if let directory = place.directory {
      let left = try sandbox.shell("find '\(directory)' -type f -name '*.statement*'")
      #expect(left.isEmpty)
    }
  }

  /// Each rename that publishes a file is a moment at which the program may be killed.
  @Test("Killed at each step of publishing, a snapshot leaves no archive without its signature")
  func killedSnapshots() throws {
    let kills = try killAtEachStep(
      sandbox, ["snapshot", "Notes", "-r", "Backups", "--full", "--sign", "keys/key.sec"]
    ) { step in
      try sandbox.succeed("verify -r Backups --data --trusted keys/key.pub")
    }
    #expect(kills >= 3)
    // What they left goes with the next forget.
    try sandbox.succeed("snapshot Notes -r Backups --full --sign keys/key.sec")
    try sandbox.succeed("forget -r Backups --keep-last 1")
    #expect(try sandbox.names("Backups").filter { !$0.hasPrefix(".drydock") }.count == 3)
  }

  @Test("Killed at each step, rekey leaves the archive with its signature")
  func killedRekey() throws {
    let recipient = try sandbox.key("identity")
    try sandbox.succeed(
      "snapshot", "Notes", "-r", "Backups", "--sign", "keys/key.sec", "--recipient", recipient)
    try sandbox.shell("cp -a Backups Template")
    try killAtEachStep(
      sandbox,
      [
        "rekey", "-r", "Backups", "--replace", "--identity", "identity", "--recipient", recipient,
        "--sign", "keys/key.sec",
      ]
    ) { step in
      let whole = try sandbox.drydock("verify -r Backups --data --identity identity").expect()
      #expect(whole.output.hasPrefix("ok"), "step \(step): \(whole)")
      try sandbox.succeed("verify -r Backups --data --identity identity --trusted keys/key.pub")
      try sandbox.shell("rm -rf Backups; cp -a Template Backups")
    }
  }

  @Test("A key that cannot sign changes nothing: rekey, sign and snapshot")
  func refusingKey() throws {
    let recipient = try sandbox.key("identity")
    try sandbox.succeed(
      "snapshot", "Notes", "-r", "Backups", "--sign", "keys/key.sec", "--recipient", recipient)
    let before = try sandbox.tree("Backups")
    // Its public half alone: an agent has to sign, and does not have it.
    let agent = try Command.spawn(Tools.system("ssh-agent"), ["-D", "-a", sandbox("agent")])
    while !sandbox.exists("agent"), agent.isRunning { usleep(10_000) }
    try sandbox.shell("printf 'trusted: [keys/key.pub]\\n' >> drydock.yaml")
    for arguments in [
      ["rekey", "-r", "Backups", "--replace", "--identity", "identity", "--recipient", recipient],
      ["sign", "-r", "Backups", "latest", "--identity", "identity"],
      ["snapshot", "Notes", "-r", "Backups", "--recipient", recipient],
    ] {
      let refused = try sandbox.drydock(
        arguments + ["--sign", "keys/ssh.pub"], environment: ["SSH_AUTH_SOCK": sandbox("agent")])
      #expect(!refused.succeeded && refused.errors.contains("agent"), "\(refused)")
      try sandbox.tree("Backups").expectSame(as: before, ignoringTimesOf: [""])
    }
    agent.kill()
    _ = try agent.wait()
  }

  @Test("Signing again, killed at each step, leaves a signature")
  func killedSigning() throws {
    try sandbox.succeed("snapshot Notes -r Backups --sign keys/key.sec")
    try killAtEachStep(sandbox, ["sign", "-r", "Backups", "latest", "--sign", "keys/key.sec"]) { step in
      try sandbox.succeed("verify -r Backups --data --trusted keys/key.pub")
    }
  }

  @Test("Of two signed exports to one name, one is there, signed; a removal waits for both")
  func sameName() throws {
    let archive = try sandbox.succeed("snapshot Notes -r Backups --sign keys/key.sec")
      .trimmingCharacters(in: .newlines)
    for round in 1...4 {
      let name = "Backups/both\(round).tar.zst"
      let running = try (1...2).map { _ in
        try sandbox.start(["export", archive, "-o", name, "--sign", "keys/key.sec"])
      }
      let ends = try running.map { try $0.wait() }
      #expect(ends.contains { $0.succeeded }, "\(ends)")
      try sandbox.succeed("verify", name, "--data", "--trusted", "keys/key.pub")
    }
    let holder = try sandbox.lock("Backups")
    try sandbox.expectRefusal(["export", archive, "-o", "Backups/third.tar.zst"], exit: 5, ["locked by"])
    try holder.finish()
  }

  /// Runs the program again and again, killed when it renames, removes or links its first file, its second, and so on, until one run
  /// ends by itself. Gives the number of kills.
  ///
  /// - Parameter check: looks at what each run has left.
  @discardableResult
  private func killAtEachStep(
    _ sandbox: Sandbox, _ arguments: [String], check: (_ step: Int) throws -> Void
  ) throws -> Int {
    for step in 1...40 {
      let result = try sandbox.traced(
        "rename,renameat,renameat2,unlink,unlinkat,link,linkat", "signal=KILL:when=\(step)", arguments)
      try check(step)
      if result.succeeded { return step - 1 }
    }
    throw SystemFailure("no run ended by itself: \(arguments)")
  }
}
