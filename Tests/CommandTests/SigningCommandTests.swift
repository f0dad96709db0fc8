import Foundation
import TestSupport
import Testing

/// `--sign`, `--trusted` and `trusted:` with the real programs.
@Suite struct SigningCommandTests {
  private let sandbox: Sandbox

  /// A sandbox with a container, a repository, and keys of minisign and OpenSSH.
  init() throws {
    sandbox = try Sandbox(creating: "Notes", version: 4)
    try sandbox.shell(
      """
      mkdir Backups keys; cd keys
      minisign -G -W -p key.pub -s key.sec > /dev/null; minisign -G -W -p other.pub -s other.sec > /dev/null
      ssh-keygen -q -t ed25519 -N '' -C builder@example.com -f ssh
      """)
  }

  private static let badPolicies = [
    ("trusted: []", "`trusted` has no key"), ("trusted:", "trusted"),
    ("trusted: [ssh-ed25519 AAAA]", "drydock.yaml:"), ("trused: [x]", "did you mean `trusted`"),
    ("trusted: [a cert-authority ssh-ed25519 AAAA]", "the SSH key is malformed"),
    ("trusted: [keys/none.pub]", "keys/none.pub"), ("trusted: [keys/key.sec]", "this is a secret key"),
  ]

  @Test func `Keys in drydock.yaml, and what is wrong with them`() throws {
    let archive = try sandbox.snapshot("Notes")
    let yaml = try sandbox.text("drydock.yaml")
    for (line, message) in Self.badPolicies {
      try sandbox.write("drydock.yaml", yaml + line + "\n")
      let result = try sandbox.drydock("verify", archive)
      #expect(!result.succeeded && (result.output + result.errors).contains(message), "\(result)")
    }
    try sandbox.write("drydock.yaml", yaml)
    for value in [":", "::"] {
      try sandbox.drydock("verify -r Backups", environment: ["DRYDOCK_TRUSTED": value]).expect(
        exit: 64, errors: "DRYDOCK_TRUSTED has no file")
    }
  }

  @Test func `A key of ssh-keygen, in drydock.yaml as text`() throws {
    let key = try sandbox.shell("cat keys/ssh.pub").trimmingCharacters(in: .newlines)
    try sandbox.shell("printf 'trusted:\\n  - %s\\n' '\(key)' >> drydock.yaml")
    try sandbox.succeed("snapshot Notes -r Backups --sign keys/ssh")
    let verified = try sandbox.succeed("verify -r Backups --data")
    #expect(
      verified.contains("every byte, signed by builder@example.com (ssh-ed25519 SHA256:"), "\(verified)")
  }

  @Test func `Secret keys and passphrases are in no output, file or process argument`() throws {
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

  /// Each rename that publishes a file is a moment at which the program may be killed.
  @Test func `Killed at each step, a snapshot leaves no archive without its signature`() throws {
    let kills = try killAtEachStep(
      ["snapshot", "Notes", "-r", "Backups", "--full", "--sign", "keys/key.sec"]
    ) { step in
      try sandbox.succeed("verify -r Backups --data --trusted keys/key.pub")
    }
    #expect(kills >= 3)
    // What they left goes with the next forget.
    try sandbox.succeed("snapshot Notes -r Backups --full --sign keys/key.sec")
    try sandbox.succeed("forget -r Backups --keep-last 1")
    #expect(try sandbox.names("Backups").filter { !$0.hasPrefix(".drydock") }.count == 3)
  }

  @Test func `Killed at each step, rekey leaves the archive with its signature`() throws {
    let recipient = try sandbox.key("identity")
    try sandbox.succeed(
      "snapshot", "Notes", "-r", "Backups", "--sign", "keys/key.sec", "--recipient", recipient)
    try sandbox.shell("cp -a Backups Template")
    try killAtEachStep(
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

  @Test func `A key that cannot sign changes nothing: rekey, sign and snapshot`() throws {
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

  @Test func `Signing again, killed at each step, leaves a signature`() throws {
    try sandbox.succeed("snapshot Notes -r Backups --sign keys/key.sec")
    try killAtEachStep(["sign", "-r", "Backups", "latest", "--sign", "keys/key.sec"]) { step in
      try sandbox.succeed("verify -r Backups --data --trusted keys/key.pub")
    }
  }

  @Test func `Of two signed exports to one name, one is there, signed; a removal waits for both`() throws {
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
    _ arguments: [String], check: (_ step: Int) throws -> Void
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
