import Foundation
import TestSupport
import Testing

@Suite("Rekey")
struct RekeyTests {
  private func prepare(_ lab: Lab) throws -> (old: String, new: String) {
    try lab.create(version: 4)
    return (try lab.key("old"), try lab.key("new"))
  }

  /// The SHA-256 of what an age file holds.
  private func content(_ lab: Lab, _ file: String, _ key: String) throws -> String {
    try lab.shell("age -d -i \(key) '\(file)' | sha256sum")
  }

  @Test("The same archive for others, beside the old one")
  func copies() throws {
    try Lab.with { lab in
      let (old, new) = try prepare(lab)
      try lab.sealed("A", to: old)
      try lab.succeed("rekey", "A", "--identity", "old", "--recipient", new, "-o", "B")
      #expect(try content(lab, "A", "old") == content(lab, "B", "new"))
      try lab.expectRefusal(["show", "B", "--identity", "old"], exit: 4, ["the identity does not match"])
      try lab.succeed("verify", "B", "--data", "--identity", "new")
      // The old one can be read as before: that is what the help says.
      try lab.succeed("verify", "A", "--data", "--identity", "old")
      try lab.expectRefusal(
        ["rekey", "A", "--identity", "old", "--recipient", new, "-o", "B"], exit: 1, ["already exists"])
      // Into repositories: the names are free or get more of the id.
      try lab.shell("mkdir One; cp A One/given-by-hand.tar.zst.age")
      let document = try lab.document(
        "rekey", "-r", "One", "--identity", "old", "--recipient", new, "--to", "One")
      let path = try #require((document["archives"] as? [[String: Any]])?.first?["path"] as? String)
      #expect(path.hasSuffix(".tar.zst.age") && path.contains("com.example.notes_"))
      try lab.succeed("rekey", "A", "--identity", "old", "--recipient", new, "--to", "One")
      #expect(try lab.names("One").count == 3)
      // Copies of one archive under different keys are one archive for who can read one of them.
      for key in ["old", "new"] {
        try lab.succeed("verify", "latest", "-r", "One", "--data", "--identity", key)
      }
    }
  }

  @Test("In place of the old one, in one step; a plain one gets .age behind its name")
  func replaces() throws {
    try Lab.with { lab in
      let (old, new) = try prepare(lab)
      let plain = try lab.snapshot()
      try lab.succeed("snapshot", "Notes", "-r", "Backups", "--recipient", old)
      let names = try lab.names("Backups")
      let sealedName = try #require(names.first { $0.hasSuffix(".age") })
      let before = try content(lab, "Backups/" + sealedName, "old")
      let digest = try lab.shell("sha256sum < '\(plain)'")
      try lab.write("words", "correct horse\n")
      let output = try lab.succeed(
        "rekey", "-r", "Backups", "--identity", "old", "--recipient", new, "--replace")
      #expect(output.split(separator: "\n").count == 2)
      #expect(
        try lab.names("Backups").sorted() == (names.map { $0.hasSuffix(".age") ? $0 : $0 + ".age" }).sorted())
      #expect(try content(lab, "Backups/" + sealedName, "new") == before)
      #expect(try content(lab, plain + ".age", "new") == digest)
      try lab.succeed("verify", "-r", "Backups", "--data", "--identity", "new")
      // Once more, with a passphrase, of one that is named by its id.
      try lab.succeed(
        "rekey", "latest", "-r", "Backups", "--identity", "new", "--passphrase-file", "words", "--replace")
      let listed = try lab.succeed("list", "-r", "Backups", "--identity", "new")
      #expect(listed.contains("with a passphrase (scrypt), not read"), "\(listed)")
      // What cannot be opened is told, and the rest is done all the same.
      let some = try lab.drydock(
        "rekey", "-r", "Backups", "--identity", "new", "--recipient", old, "--replace")
      #expect(some.exitCode == 3 && some.output.split(separator: "\n").count == 1, "\(some)")
      #expect(some.errors.contains("rekey failed: "))
    }
  }

  @Test("What is refused changes nothing")
  func refusals() throws {
    try Lab.with { lab in
      let (old, new) = try prepare(lab)
      try lab.sealed("A", to: old)
      try lab.shell(
        "cp A B.tar.zst; cp A B.tar.zst.age; age -d -i old A > P.tar.zst; cp A P.tar.zst.age; mkdir Empty")
      var bytes = try lab.read("A")
      bytes[bytes.count / 2] ^= 4
      try lab.write("Damaged", bytes: bytes)
      let before = try lab.tree(".").without("tmp")
      let to = ["--recipient", new]
      let from = ["--identity", "old"]
      for (arguments, exit, words) in [
        (["rekey", "A"] + from + to, 64, ["--replace"]),
        (["rekey", "A", "--replace", "-o", "B"] + from + to, 64, ["one of"]),
        (["rekey", "A", "P.tar.zst", "-o", "B"] + from + to, 64, ["one archive"]),
        (["rekey", "--replace"] + from + to, 64, ["nothing to rekey"]),
        (["rekey", "A", "--replace"] + from, 64, ["no recipients are given"]),
        (["rekey", "A", "--replace", "--no-encryption"] + from, 64, ["no recipients are given"]),
        (["rekey", "A", "--replace"] + to, 4, ["no identity was given"]),
        (["rekey", "A", "--replace", "--identity", "new"] + to, 4, ["the identity does not match"]),
        (["rekey", "Damaged", "--replace"] + from + to, 4, ["the key fits, but"]),
        (["rekey", "old", "--replace"] + from + to, 4, ["not an archive"]),
        (["rekey", "P.tar.zst", "--replace"] + to, 1, ["already exists"]),
        (["rekey", "None", "--replace"] + to, 1, ["no such archive"]),
      ] as [([String], Int32, [String])] { try lab.expectRefusal(arguments, exit: exit, words) }
      try lab.tree(".").without("tmp").expectSame(as: before, ignoringTimesOf: [""])
      let none = try lab.drydock(["rekey", "-r", "Empty", "--replace"] + from + to)
      #expect(none.succeeded && none.output == "no archives\n", "\(none)")
    }
  }

  @Test("A link is followed to its archive; an archive that is locked waits for nobody")
  func odd() throws {
    try Lab.with { lab in
      let (old, new) = try prepare(lab)
      try lab.shell("mkdir Real; ln -s Real/A.age Link")
      try lab.sealed("Real/A.age", to: old)
      try lab.shell("chmod 640 Real/A.age")
      try lab.succeed("rekey", "Link", "--identity", "old", "--recipient", new, "--replace")
      try lab.succeed("show", "Real/A.age", "--identity", "new")
      #expect(try lab.shell("readlink Link; stat -c %a Real/A.age") == "Real/A.age\n640\n")
      let holder = try Command.spawn(
        Tools.system("flock"), ["-s", lab("Real"), "-c", "echo locked; exec cat"])
      try holder.waitForLine("locked")
      try lab.expectRefusal(
        ["rekey", "Link", "--identity", "new", "--recipient", old, "--replace"], exit: 5, ["locked by"])
      try lab.succeed("show", "Real/A.age", "--identity", "new")
      holder.closeInput()
      _ = try holder.wait()
    }
  }

  @Test("Killed at any moment, the archive is the old one or the new one, whole")
  func killed() throws {
    try Lab.with { lab in
      let (old, new) = try prepare(lab)
      try lab.shell("head -c 12000000 /dev/urandom > Notes/Documents/noise; mkdir Backups")
      try lab.sealed("A", to: old)
      let digest = try content(lab, "A", "old")
      let arguments = ["rekey", "-r", "Backups", "--identity", "old", "--recipient", new, "--replace"]
      try lab.shell("cp A Backups/a.tar.zst.age")
      let begun = Date()
      try lab.succeed(arguments)
      let whole = Date().timeIntervalSince(begun)
      var random = SeededRandom(seed: 11)
      var keys: [String: Int] = [:]
      for attempt in 0..<40 where attempt < 8 || keys.count < 2 {
        try lab.shell("rm -rf Backups; mkdir Backups; cp A Backups/a.tar.zst.age")
        let running = try lab.start(arguments)
        // On a machine that has become slower since, the end is later: then the later attempts wait longer.
        let end = whole * max(1.1, Double(attempt) / 4)
        let delay = Double.random(in: attempt % 2 == 0 ? end * 0.7...end : 0...whole, using: &random)
        usleep(UInt32(delay * 1e6))
        running.kill()
        _ = try running.wait()
        let names = try lab.names("Backups").filter { !$0.hasPrefix(".drydock-writing-") }
        #expect(names == ["a.tar.zst.age"])
        let key =
          try lab.drydock("show", "Backups/a.tar.zst.age", "--identity", "old").succeeded ? "old" : "new"
        keys[key, default: 0] += 1
        #expect(try content(lab, "Backups/a.tar.zst.age", key) == digest)
        // The next one that writes there removes what is left.
        try lab.succeed("rekey", "A", "--identity", "old", "--recipient", new, "--to", "Backups")
        #expect(try lab.names("Backups").count == 2)
        #expect(try lab.names("tmp") == [])
      }
      #expect(keys.count == 2, "\(keys)")
    }
  }

  /// Runs a rekey in place under `strace`, which changes one call of it.
  private func traced(_ lab: Lab, _ call: String, _ what: String, _ arguments: [String]) throws
    -> CommandResult
  {
    let inject = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(call):\(what)"]
    return try Command.run(
      Tools.system("strace"), inject + [lab.program] + arguments, environment: lab.environment,
      directory: lab.directory.path)
  }

  @Test("A plain archive, killed or failing at any call: one archive is there, and the same command finishes")
  func plainKilled() throws {
    try Lab.with { lab in
      let (_, new) = try prepare(lab)
      try lab.succeed("snapshot", "Notes", "-o", "P")
      let digest = try lab.shell("sha256sum < P")
      let arguments = ["rekey", "-r", "Backups", "--identity", "new", "--recipient", new, "--replace"]
      var states: Set<String> = []
      // The calls that come last: what is before them changes nothing yet.
      for (call, most) in [("renameat2", 2), ("renameat", 1), ("unlinkat", 2), ("fsync", 3)] {
        for what in ["signal=SIGKILL", "error=EIO"] {
          for count in 1...most {
            try lab.shell("rm -rf Backups; mkdir Backups; cp P Backups/a.tar.zst")
            let result = try traced(lab, call, what + ":when=\(count)", arguments)
            let names = try lab.names("Backups").filter { !$0.hasPrefix(".drydock-writing-") }
            #expect(names.count == 1, "\(call) \(count) \(what): \(names) \(result)")
            let name = try #require(names.first)
            let isPlain = try lab.shell("head -c 3 Backups/\(name)") != "age"
            states.insert("\(name) \(isPlain)")
            if isPlain {
              #expect(try lab.shell("sha256sum < Backups/\(name)") == digest)
            } else {
              #expect(!result.errors.contains("nothing was changed"), "\(call) \(count) \(what): \(result)")
              #expect(try content(lab, "Backups/" + name, "new") == digest)
            }
            try lab.succeed(arguments)
            #expect(try lab.names("Backups") == ["a.tar.zst.age"], "\(call) \(count) \(what)")
            #expect(try content(lab, "Backups/a.tar.zst.age", "new") == digest)
          }
        }
      }
      #expect(states == ["a.tar.zst true", "a.tar.zst false", "a.tar.zst.age false"], "all were met")
    }
  }

  @Test(
    "A plain archive with its encrypted copy beside it becomes one, when a key can tell that they are the same"
  )
  func pair() throws {
    try Lab.with { lab in
      let (old, new) = try prepare(lab)
      try lab.succeed("snapshot", "Notes", "-o", "P.tar.zst")
      try lab.succeed("rekey", "P.tar.zst", "--recipient", old, "-o", "P.tar.zst.age")
      let digest = try lab.shell("sha256sum < P.tar.zst")
      try lab.expectRefusal(
        ["rekey", "P.tar.zst", "--replace", "--recipient", new], exit: 1, ["already exists", "--identity"])
      try lab.succeed("rekey", "P.tar.zst", "--replace", "--recipient", new, "--identity", "old")
      #expect(!lab.exists("P.tar.zst"))
      #expect(try content(lab, "P.tar.zst.age", "new") == digest)
      // Another archive of that name stays, and so does the plain one.
      try lab.succeed("snapshot", "Notes", "-o", "Q.tar.zst")
      try lab.shell("cp P.tar.zst.age Q.tar.zst.age")
      try lab.expectRefusal(
        ["rekey", "Q.tar.zst", "--replace", "--recipient", new, "--identity", "new"], exit: 1, ["another one"]
      )
      // As a kill before the last step leaves it, for one who has no key.
      try lab.shell("mv P.tar.zst.age R.tar.zst")
      try lab.expectRefusal(
        ["rekey", "R.tar.zst", "--replace", "--recipient", new], exit: 4, ["its name lacks .age"])
    }
  }
}
