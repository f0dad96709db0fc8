import Foundation
import TestSupport
import Testing

/// What a killed command leaves holds no secret in the clear but in its stage, and that is gone with the next command. Commands
/// on archives, and dry runs, are killed by `EncryptedKillTests`.
@Suite struct CanaryKillTests {
  private static let files = ["migrate", "Trial"]

  @Test(arguments: ["exchange", "in-place"])
  func `At every step of a commit that moves a secret to the vault`(_ way: String) throws {
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

  @Test func `At steps of a commit that sets a value of the vault`() throws {
    try Sandbox.with { sandbox in
      let canaries = try scene(sandbox, "exchange")
      let set = ["vault", "set", "Trial", "a/b", "--value-file", "Keys/first"]
      for step in ["staged", "committed", "exchanged"] {
        try reset(canaries)
        let result = try canaries.run(set, environment: ["DRYDOCK_KILL_AT": step])
        #expect(result.signal == SIGKILL, "\(step): \(result)")
        try check(canaries, "vault set, \(step)")
      }
    }
  }

  private func scene(_ sandbox: Sandbox, _ way: String) throws -> CanarySandbox {
    let canaries = try CanarySandbox(sandbox, container: "Template", version: 4)
    canaries.environment = ["DRYDOCK_DEVICE_KEY": sandbox(CanarySandbox.device), "DRYDOCK_COMMIT": way]
    try canaries.run(["vault", "set", "Template", "com.example.notes/first", "--value-file", "Keys/first"])
    return canaries
  }

  private func reset(_ canaries: CanarySandbox) throws {
    canaries.moved = []
    try canaries.sandbox.shell("rm -rf Trial .drydock-*; cp -a Template Trial; rm -rf Trial/.drydock-state")
  }

  /// Right after the kill, after the next command, and once the token is in the vault.
  private func check(_ canaries: CanarySandbox, _ context: String) throws {
    try canaries.searchDisk("\(context), killed", isKilled: true)
    #expect(try canaries.run(["recover", "Trial"]).succeeded, "\(context)")
    try canaries.searchDisk("\(context), recovered")
    try canaries.run(Self.files).expect()
    canaries.moved = ["Trial"]
    try canaries.searchDisk("\(context), migrated")
  }
}
