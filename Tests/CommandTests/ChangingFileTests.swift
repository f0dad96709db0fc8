import Foundation
import TestSupport
import Testing

/// Files that another process removes, lets grow, cuts and turns into links and directories while they are read.
@Suite struct ChangingFileTests {
  private static let script = """
    import os, random, shutil, sys
    base = sys.argv[1]
    secret = sys.argv[2]
    print("ready", flush=True)
    os.set_blocking(0, False)
    random.seed(7)
    while True:
        try:
            if os.read(0, 1) == b"": break
        except BlockingIOError: pass
        path = os.path.join(base, "f%d" % random.randrange(12))
        kind = random.randrange(5)
        try:
            if kind == 0 and os.path.isfile(path) and not os.path.islink(path):
                with open(path, "ab") as file: file.write(b"more" * random.randrange(50000))
                continue
            if os.path.isdir(path) and not os.path.islink(path): shutil.rmtree(path)
            elif os.path.lexists(path): os.remove(path)
            if kind == 1: os.symlink(secret, path)
            elif kind == 2: os.mkdir(path)
            elif kind == 3: open(path, "wb").write(b"x" * random.randrange(300000))
        except OSError: pass
    """

  private func hammer(_ sandbox: Sandbox, linkingTo target: String) throws -> RunningCommand {
    try sandbox.shell("mkdir Notes/Documents/Hammer")
    let hammer = try Command.spawn(
      Tools.system("python3"), ["-c", Self.script, sandbox("Notes/Documents/Hammer"), sandbox(target)])
    try hammer.waitForLine("ready")
    return hammer
  }

  @Test func `Snapshots hold what stood still, and nothing from behind a link`() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 4)
      try sandbox.write("secret.txt", "never in an archive 5f3a9c")
      let hammer = try hammer(sandbox, linkingTo: "secret.txt")
      for number in 0..<3 {
        let result = try sandbox.drydock("snapshot", "Notes", "-o", "\(number).tar.zst")
        // 3: done, and something never stood still.
        #expect([0, 3].contains(result.exitCode), "\(result)")
        try sandbox.succeed("verify", "--data", "\(number).tar.zst")
        let held = try sandbox.run(
          "/bin/sh", "-c", "zstd -dcq '\(sandbox("\(number).tar.zst"))' | grep -ac 5f3a9c || true")
        #expect(held.trimmingCharacters(in: .newlines) == "0")
        try sandbox.succeed("restore", "\(number).tar.zst", "Restored-\(number)")
      }
      #expect(hammer.isRunning)
      try hammer.finish()
      #expect(try sandbox.names("tmp") == [])
    }
  }

  @Test(arguments: ["exchange", "in-place"])
  func `A migration stops in words, or is done`(_ way: String) throws {
    try Sandbox.with(commit: way) { sandbox in
      try sandbox.create()
      let hammer = try hammer(sandbox, linkingTo: "drydock.yaml")
      for _ in 0..<4 {
        let result = try sandbox.drydock("migrate Notes")
        // 1: something vanished under its hands, and nothing was changed.
        #expect([0, 1, 5, 6].contains(result.exitCode), "\(result)")
        // Whatever it said, it is one of the two.
        #expect(
          sandbox.exists("Notes/" + Sandbox.newDatabase) != sandbox.exists("Notes/" + Sandbox.oldDatabase))
        #expect(sandbox.exists("Notes/" + Sandbox.newDatabase) || [1, 5].contains(result.exitCode))
      }
      try hammer.finish()
      try sandbox.succeed("recover Notes")
      try sandbox.succeed("migrate Notes")
      #expect(try sandbox.names("tmp") == [] && sandbox.exists("Notes/" + Sandbox.newDatabase))
    }
  }

  /// A `-shm` goes when an app closes its database. The commit links what does not change, and has just listed it.
  @Test func `A file that goes while the new tree is built: nothing is changed, exit 5`() throws {
    let sandbox = try Sandbox(creating: "Notes")
    let directory = "Notes/Library/Preferences/Databases/"
    let names = (0..<300).map { "\(directory)\($0).sqlite-shm" }
    for name in names { try sandbox.write(name, "x") }
    var before = try sandbox.tree()
    let running = try Command.spawn(
      Tools.system("strace"),
      Tools.tracing("linkat", "delay_enter=3000") + [sandbox.program, "migrate", "Notes", "--to", "1"],
      environment: sandbox.environment, input: [], directory: sandbox.directory.path)
    func links(_ name: String) -> UInt {
      var status = stat()
      return stat(sandbox(name), &status) == 0 ? UInt(status.st_nlink) : 0
    }
    let deadline = ContinuousClock.now + .seconds(60)
    while !names.contains(where: { links($0) > 1 }), ContinuousClock.now < deadline {
      Thread.sleep(forTimeInterval: 0.001)
    }
    let removed = try #require(names.last { links($0) == 1 })
    try sandbox.remove(removed)
    before = before.without(String(removed.dropFirst("Notes/".count)))
    try running.wait().expect(exit: 5, errors: "run it again")
    #expect(try sandbox.tree().differences(from: before, comparing: [.content, .mode]) == [])
    try sandbox.succeed("migrate Notes --to 1")
  }
}
