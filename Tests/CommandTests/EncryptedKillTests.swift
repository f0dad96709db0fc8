import Foundation
import TestSupport
import Testing

/// Commands on encrypted archives, and the dry run of a migration, killed at random moments: once the next command ran,
/// nothing of the plain data is anywhere but in the containers. Nothing of it is ever in the repository.
@Suite(.serialized) struct EncryptedKillTests {
  static let canary = "CANARY-7f3a91c2-made-up"
  /// Of a file's name, which the record of a finished transaction has, too.
  static let name = "NAMED-5b20e8d4-made-up"

  struct Scene {
    var name: String
    var arguments: [String]
    /// The command that comes next. Any cleans up below `TMPDIR`; what is beside a container, one that is about it.
    var next = ["list", "-r", "Backups"]
    /// Undoes what a run that was not killed did.
    var reset = "true"
    /// Whether a kill can leave plain data until the next command.
    var leaves = true
  }

  static let scenes = [
    Scene(
      name: "snapshot", arguments: ["snapshot", "Notes", "-r", "Backups", "--recipient", "{R}"],
      reset: "rm -f Backups/*"),
    Scene(
      name: "restore", arguments: ["restore", "A.age", "Trial", "--yes"], next: ["log", "Trial"],
      reset: "rm -rf Trial .drydock-*; cp -a Empty Trial"),
    Scene(
      name: "restore a part, migrated",
      arguments: ["restore", "Old.age", "Trial", "--path", "Documents", "--migrate", "--yes"],
      next: ["log", "Trial"],
      reset: "rm -rf Trial .drydock-*; cp -a Empty Trial"),
    Scene(
      name: "restore --dry-run", arguments: ["restore", "A.age", "Trial", "--dry-run"],
      next: ["log", "Trial"]),
    Scene(name: "diff", arguments: ["diff", "A.age", "Trial", "--details"]),
    Scene(name: "verify", arguments: ["verify", "A.age", "--data", "--container", "Notes"]),
    Scene(
      name: "export", arguments: ["export", "A.age", "--into", "Backups", "--recipient", "{R}"],
      reset: "rm -f Backups/*"),
    Scene(
      name: "rekey", arguments: ["rekey", "A.age", "--into", "Backups", "--recipient", "{R}"],
      reset: "rm -f Backups/*", leaves: false),
    Scene(name: "migrate --dry-run", arguments: ["migrate", "Older", "--dry-run"], next: ["log", "Older"]),
  ]

  private func prepare(_ sandbox: Sandbox) throws -> String {
    let recipient = try sandbox.key("key")
    let canary = Self.canary
    for (name, version) in [("Notes", 4), ("Older", 0)] {
      // A database whose last rows are in its log only: it must be copied to be read.
      try sandbox.create(name, version: version, photos: 3, "--leave-wal", "--bulk-mb", "3")
      try sandbox.shell(
        """
        cd \(name); echo '\(canary)' > Documents/\(Self.name).txt; head -c 3000000 /dev/urandom > Documents/noise
        for n in 1 2 3 4 5 6 7 8 9; do echo "$n \(canary)" > Documents/note-$n; done
        """)
      let database = version == 0 ? Sandbox.oldDatabase : Sandbox.newDatabase
      try sandbox.python(
        """
        import sqlite3, os, signal
        c = sqlite3.connect('\(name)/\(database)'); c.execute('PRAGMA journal_mode=WAL')
        c.execute('CREATE TABLE IF NOT EXISTS canary(a)'); c.executemany('INSERT INTO canary VALUES (?)', [('\(canary)',)] * 50)
        c.commit(); os.kill(os.getpid(), signal.SIGKILL)
        """, killsItself: true)
    }
    try sandbox.create("Empty", version: 4)
    try sandbox.shell("cp -a Empty Trial; mkdir Backups")
    try sandbox.encrypted("A.age", to: recipient)
    try sandbox.encrypted("Old.age", to: recipient, container: "Older")
    return recipient
  }

  private static let containers = ["Notes", "Older", "Empty", "Trial"]

  /// Where plain data is that should not be. What can be undone has the names of its paths in its record, in the
  /// container's private state.
  private func remaining(_ sandbox: Sandbox) throws -> [String] {
    let names = try sandbox.files(with: Self.name, except: Self.containers)
    return try sandbox.files(with: Self.canary, except: Self.containers)
      + names.filter { $0.wholeMatch(of: #/\./\.drydock-[0-9a-f]+/undo/[^/]+/record\.json/#) == nil }
  }

  @Test func `Of each command`() throws {
    try Sandbox.with { sandbox in
      let recipient = try prepare(sandbox)
      #expect(try remaining(sandbox) == [])
      for scene in Self.scenes { try kill(scene, sandbox, recipient) }
    }
  }

  private func kill(_ scene: Scene, _ sandbox: Sandbox, _ recipient: String) throws {
    let environment = ["DRYDOCK_IDENTITY": "key"]
    let arguments = scene.arguments.map { $0 == "{R}" ? recipient : $0 }
    let begun = Date()
    let complete = try sandbox.drydock(arguments, environment: environment)
    let whole = Date().timeIntervalSince(begun)
    #expect(complete.succeeded, "\(complete)")
    #expect(try remaining(sandbox) == [], "\(scene.name), after a complete run")
    try sandbox.shell(scene.reset)

    var random = SeededRandom(seed: 5)
    var (kills, left) = (0, 0)
    let wanted = TestExtent.isFull ? 6 : 3
    for attempt in 0..<40 where kills < wanted || (scene.leaves && left == 0) {
      let running = try sandbox.start(arguments, environment: environment)
      // Every second one once there is something that could be left.
      let waits = !attempt.isMultiple(of: 2)
      while waits, running.isRunning, try sandbox.names("tmp").isEmpty { usleep(100) }
      usleep(UInt32(Double.random(in: 0...(waits ? whole / 4 : whole), using: &random) * 1e6))
      running.kill()
      kills += try running.wait().signal == nil ? 0 : 1
      let after = try sandbox.files(with: Self.canary, except: Self.containers)
      left += try after.isEmpty && sandbox.names("tmp").isEmpty ? 0 : 1
      // What is left is below a directory that only its owner can enter, and none of it beside the archives.
      #expect(
        after.allSatisfy { $0.hasPrefix("./tmp/drydock-scratch-") || $0.hasPrefix("./.drydock-") },
        "\(scene.name): \(after)")
      let open = try sandbox.shell(
        "find tmp/drydock-scratch-* .drydock-* -maxdepth 0 -perm /077 2>/dev/null || true")
      #expect(open.isEmpty, "\(scene.name): \(open)")
      try sandbox.succeed(scene.next)
      #expect(try remaining(sandbox) == [], "\(scene.name), attempt \(attempt)")
      #expect(try sandbox.names("tmp") == [], "\(scene.name), attempt \(attempt)")
      try sandbox.shell(scene.reset)
    }
    print("\(scene.name): \(kills) kills, \(left) left plain data for the next command")
    // Kills that all came too early or too late would prove nothing.
    #expect(
      kills >= wanted && (left > 0 || !scene.leaves), "\(scene.name): \(kills) kills, \(left) left something")
  }
}

extension Sandbox {
  fileprivate func python(_ script: String, killsItself: Bool) throws {
    let result = try Command.run(Tools.system("python3"), ["-c", script], directory: directory.path)
    guard killsItself ? result.signal == SIGKILL : result.succeeded else { throw SystemFailure("\(result)") }
  }
}
