import Foundation
import TestSupport
import Testing

/// What a killed command leaves holds no secret in the clear but in its stage, and that is gone with the next command.
@Suite("Canaries, after a kill")
struct CanaryKillTests {
  private static let files = ["migrate", "Trial"]

  @Test("At every step of a commit that moves a secret to the vault", arguments: ["exchange", "in-place"])
  func everyStep(_ way: String) throws {
    try Sandbox.with { sandbox in
      let canaries = try scene(sandbox, way)
      try reset(canaries)
      let known = try canaries.run(Self.files, environment: ["DRYDOCK_KILL_AT": "?"])
      let steps =
        known.errors.trimmingCharacters(in: .newlines).split(separator: "one of ").last?
        .split(separator: ", ").map(String.init) ?? []
      #expect(steps.count > 8, "\(known)")
      var killed = 0
      for step in steps {
        try reset(canaries)
        let result = try canaries.run(Self.files, environment: ["DRYDOCK_KILL_AT": step])
        // Some steps are those of the other way.
        if result.signal == SIGKILL { killed += 1 }
        try check(canaries, "\(way), \(step)")
      }
      #expect(killed > 8, "\(killed) of \(steps)")
    }
  }

  @Test("At random moments, whatever the command")
  func randomMoments() throws {
    try Sandbox.with { sandbox in
      let canaries = try scene(sandbox, "exchange")
      try reset(canaries)
      try canaries.run(["snapshot", "Trial", "-o", "plain.tar.zst", "--no-encryption"])
      try canaries.run([
        "snapshot", "Trial", "-o", "sealed.tar.zst.age", "--recipients-file", "Keys/identity.pub",
      ])
      let identity = ["--identity", sandbox(CanarySandbox.identity)]
      let commands: [[String]] = [
        Self.files, ["migrate", "Trial", "--dry-run"], ["inspect", "Trial"],
        ["snapshot", "Trial", "-o", "Sealed/new.tar.zst.age", "--recipients-file", "Keys/identity.pub"],
        ["restore", "sealed.tar.zst.age", "Trial"] + identity,
        ["restore", "sealed.tar.zst.age", "Fresh"] + identity,
        ["diff", "sealed.tar.zst.age", "Trial", "--details"] + identity,
        ["verify", "sealed.tar.zst.age", "--container", "Trial"] + identity,
        [
          "rekey", "sealed.tar.zst.age", "-o", "Sealed/new.tar.zst.age", "--recipients-file",
          "Keys/other.pub",
        ] + identity,
        ["vault", "set", "Trial", "a/b", "--value-file", "Keys/first"],
      ]
      try sandbox.run(Tools.system("mkdir"), sandbox("Sealed"))
      var random = SeededRandom(seed: 5)
      for command in commands {
        try reset(canaries)
        let start = Date()
        try canaries.run(command)
        let duration = Date().timeIntervalSince(start)
        for _ in 1...2 {
          var moment = Double.random(in: 0.1...0.95, using: &random) * duration
          // One that has ended before is started again, and killed earlier.
          while try !kill(command, after: moment, canaries) { moment /= 2 }
        }
      }
    }
  }

  /// Starts a command, kills it after some seconds, and searches what it left. Returns false when it had ended before.
  private func kill(_ command: [String], after moment: Double, _ canaries: CanarySandbox) throws -> Bool {
    try reset(canaries)
    let running = try canaries.sandbox.start(command, environment: canaries.environment)
    usleep(UInt32(moment * 1e6))
    running.kill()
    let result = try running.wait()
    for bytes in [result.outputBytes, result.errorBytes] {
      for kind in Canary.allCases {
        #expect(Canary.needles(kind).found(in: Data(bytes)).isEmpty, "\(command)")
      }
    }
    try check(canaries, "\(command)", isFresh: command.contains("Fresh"))
    return result.signal != nil
  }

  private func scene(_ sandbox: Sandbox, _ way: String) throws -> CanarySandbox {
    let canaries = try CanarySandbox(sandbox, container: "Template", version: 4)
    canaries.environment = ["DRYDOCK_DEVICE_KEY": sandbox(CanarySandbox.device), "DRYDOCK_COMMIT": way]
    try canaries.run(["vault", "set", "Template", "com.example.notes/first", "--value-file", "Keys/first"])
    return canaries
  }

  private func reset(_ canaries: CanarySandbox) throws {
    canaries.moved = []
    try canaries.sandbox.shell(
      """
      rm -rf Trial Fresh .drydock-*; if test -d Sealed; then rm -rf Sealed; mkdir Sealed; fi
      cp -a Template Trial; rm -rf Trial/.drydock-state
      """)
  }

  /// Right after the kill, after the next command, and once the token is in the vault.
  private func check(_ canaries: CanarySandbox, _ context: String, isFresh: Bool = false) throws {
    try canaries.searchDisk("\(context), killed", isKilled: true)
    #expect(try canaries.run(["recover", "Trial"]).succeeded, "\(context)")
    // A restore that was to make it may have left its stage, and no container yet.
    if isFresh { try canaries.run(["recover", "Fresh"]) }
    try canaries.searchDisk("\(context), recovered")
    try canaries.run(Self.files).expect()
    canaries.moved = ["Trial"]
    try canaries.searchDisk("\(context), migrated")
  }
}
