import Foundation
import TestSupport
import Testing

@Suite("Rekey") struct RekeyTests {
  private let sandbox: Sandbox, old: String, new: String

  init() throws {
    sandbox = try Sandbox(creating: "Notes", version: 4)
    (old, new) = (try sandbox.key("old"), try sandbox.key("new"))
  }

  /// The SHA-256 of what an age file holds.
  private func content(_ file: String, _ key: String) throws -> String {
    try sandbox.shell("age -d -i \(key) '\(file)' | sha256sum")
  }

  @Test func `The same archive for others, beside the old one`() throws {
    try sandbox.encrypted("A", to: old)
    try sandbox.succeed("rekey", "A", "--identity", "old", "--recipient", new, "-o", "B")
    #expect(try content("A", "old") == content("B", "new"))
    try sandbox.expectRefusal("show B --identity old", exit: 4, ["the identity does not match"])
    try sandbox.succeed("verify B --data --identity new")
    // The old one can be read as before: that is what the help says.
    try sandbox.succeed("verify A --data --identity old")
    try sandbox.expectRefusal(
      ["rekey", "A", "--identity", "old", "--recipient", new, "-o", "B"], exit: 1, ["already exists"])
    // Into repositories: the names are free or get more of the id.
    try sandbox.shell("mkdir One; cp A One/given-by-hand.tar.zst.age")
    let document = try sandbox.document(
      "rekey", "-r", "One", "--identity", "old", "--recipient", new, "--into", "One")
    let path = try #require(document["archives"][0]["path"].text)
    #expect(path.hasSuffix(".tar.zst.age") && path.contains("com.example.notes_"))
    try sandbox.succeed("rekey", "A", "--identity", "old", "--recipient", new, "--into", "One")
    #expect(try sandbox.names("One").count == 3)
    // Copies of one archive under different keys are one archive for who can read one of them.
    for key in ["old", "new"] {
      try sandbox.succeed("verify", "latest", "-r", "One", "--data", "--identity", key)
    }
  }

  @Test func `In place of the old one, in one step; a plain one gets .age behind its name`() throws {
    let plain = try sandbox.snapshot()
    try sandbox.succeed("snapshot", "Notes", "-r", "Backups", "--recipient", old)
    let names = try sandbox.names("Backups")
    let sealedName = try #require(names.first { $0.hasSuffix(".age") })
    let before = try content("Backups/" + sealedName, "old")
    let digest = try sandbox.shell("sha256sum < '\(plain)'")
    try sandbox.write("words", "correct horse\n")
    let output = try sandbox.succeed(
      "rekey", "-r", "Backups", "--identity", "old", "--recipient", new, "--replace")
    #expect(output.split(separator: "\n").count == 2)
    #expect(
      try sandbox.names("Backups").sorted()
        == (names.map { $0.hasSuffix(".age") ? $0 : $0 + ".age" }).sorted())
    #expect(try content("Backups/" + sealedName, "new") == before)
    #expect(try content(plain + ".age", "new") == digest)
    try sandbox.succeed("verify -r Backups --data --identity new")
    // Once more, with a passphrase, of one that is named by its id.
    try sandbox.succeed("rekey latest -r Backups --identity new --passphrase-file words --replace")
    let listed = try sandbox.succeed("list -r Backups --identity new")
    #expect(listed.contains("with a passphrase (scrypt), not read"), "\(listed)")
    // What cannot be opened is told, and the rest is done all the same.
    let some = try sandbox.drydock(
      "rekey", "-r", "Backups", "--identity", "new", "--recipient", old, "--replace"
    ).expect(exit: 3, errors: "rekey failed: ")
    #expect(some.output.split(separator: "\n").count == 1, "\(some)")
  }

  @Test func `One archive of a chain: a warning names the other, and both keys read them`() throws {
    for _ in 0..<3 {
      try sandbox.succeed("snapshot", "Notes", "-r", "Backups", "--recipient", old, "--identity", "old")
    }
    let names = try sandbox.names("Backups").map { "Backups/" + $0 }
    let parent = try #require(names.first { !$0.contains("-", after: "Z_") })
    let child = try #require(names.first { $0.hasSuffix("-\(parent.dropLast(20).suffix(8)).tar.zst.age") })
    let rekey = ["rekey", parent, "--identity", "old", "--recipient", new]
    let copy = try sandbox.drydock(rekey + ["-o", "alone.tar.zst.age"]).expect()
    #expect(copy.errors == "", "\(copy)")
    try sandbox.shell("mkdir Alone")
    try sandbox.drydock([
      "rekey", child, "--identity", "old", "--recipient", new, "-o", "Alone/part.age",
    ]).expect(errors: "part.age is incremental, and its parent is not beside it")
    let replaced = try sandbox.drydock(rekey + ["--replace"]).expect(
      errors: "warning: \(child.dropFirst(8)) needs \(parent.dropFirst(8)), and only one")
    #expect(replaced.errors.split(separator: "\n").count == 1, "\(replaced)")
    for (keys, works) in [(["old"], false), (["new"], false), (["old", "new"], true)] {
      let verified = try sandbox.drydock(["verify", child, "--data"] + keys.flatMap { ["--identity", $0] })
      #expect(verified.succeeded == works, "\(keys): \(verified)")
    }
    let all = try sandbox.drydock(
      [
        "rekey", "-r", "Backups", "--identity", "old", "--identity", "new", "--recipient", new, "--replace",
        "--json",
      ]).expect()
    #expect(!all.output.contains("needs"), "\(all)")
    try sandbox.succeed("verify -r Backups --data --identity new")
    // The next one is for others, and so a full one.
    try sandbox.drydock(
      ["snapshot", "Notes", "-r", "Backups", "--recipient", new, "--identity", "new", "--json"]).expect(
        output: "\"kind\" : \"full\"")
  }

  @Test func `What is refused changes nothing`() throws {
    try sandbox.encrypted("A", to: old)
    try sandbox.shell(
      "cp A B.tar.zst; cp A B.tar.zst.age; age -d -i old A > P.tar.zst; cp A P.tar.zst.age; mkdir Empty")
    var bytes = try sandbox.read("A")
    bytes[bytes.count / 2] ^= 4
    try sandbox.write("Damaged", bytes: bytes)
    let before = try sandbox.tree(".").without("tmp")
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
      (["rekey", "None", "--replace"] + to, 1, ["no such archive"]),
    ] as [([String], Int32, [String])] { try sandbox.expectError(arguments, exit: exit, words) }
    try sandbox.tree(".").without("tmp").expectSame(as: before, ignoringTimesOf: [""])
    let none = try sandbox.drydock(["rekey", "-r", "Empty", "--replace"] + from + to).expect()
    #expect(none.output == "no archives\n", "\(none)")
  }

  @Test func `A link is followed to its archive; an archive that is locked waits for nobody`() throws {
    try sandbox.shell("mkdir Real; ln -s Real/A.age Link")
    try sandbox.encrypted("Real/A.age", to: old)
    try sandbox.shell("chmod 640 Real/A.age")
    try sandbox.succeed("rekey", "Link", "--identity", "old", "--recipient", new, "--replace")
    try sandbox.succeed("show Real/A.age --identity new")
    #expect(try sandbox.shell("readlink Link; stat -c %a Real/A.age") == "Real/A.age\n640\n")
    let holder = try sandbox.lock("Real", shared: true)
    try sandbox.expectRefusal(
      ["rekey", "Link", "--identity", "new", "--recipient", old, "--replace"], exit: 5, ["locked by"])
    try sandbox.succeed("show Real/A.age --identity new")
    try holder.finish()
  }

  @Test(arguments: ["a.tar.zst", "a.tar.zst.age"])
  func `Killed or failing at any call: there is an archive, and a rerun finishes`(_ file: String) throws {
    let isPlain = file == "a.tar.zst"
    if isPlain { try sandbox.succeed("snapshot Notes -o P") } else { try sandbox.encrypted("P", to: old) }
    let digest = try isPlain ? sandbox.shell("sha256sum < P") : content("P", "old")
    let arguments = [
      "rekey", "-r", "Backups", "--identity", "old", "--identity", "new", "--recipient", new, "--replace",
    ]
    var states: Set<[String]> = []
    // The calls that come last: what is before them changes nothing yet.
    for (call, most) in [("renameat,renameat2", 1), ("unlinkat", 2), ("fsync", 3)] {
      for what in ["signal=SIGKILL", "error=EIO"] {
        for count in 1...most {
          try sandbox.shell("rm -rf Backups; mkdir Backups; cp P Backups/\(file)")
          let result = try sandbox.traced(call, what + ":when=\(count)", arguments)
          let names = try sandbox.names("Backups").filter { !$0.hasPrefix(".drydock-writing-") }
          let state = try names.map { name in
            if try sandbox.read("Backups/" + name) == sandbox.read("P") { return name + " old" }
            let same = try content("Backups/" + name, "new") == digest
            #expect(same, "\(call) \(count) \(what): \(names) \(result)")
            return name + " new"
          }
          states.insert(state)
          try sandbox.succeed(arguments)
          let left = try sandbox.names("Backups")
          #expect(left.allSatisfy { $0.hasSuffix(".age") } && left.count == max(1, names.count), "\(left)")
          try sandbox.succeed("verify latest -r Backups --data --identity new")
        }
      }
    }
    // A plain one gets another name: between two steps both are there.
    let between = isPlain ? [["a.tar.zst old", "a.tar.zst.age new"]] : []
    #expect(states == Set(between + [["\(file) old"], ["a.tar.zst.age new"]]), "all were met")
  }
}

extension String {
  /// Whether a text follows the last occurrence of another one.
  fileprivate func contains(_ text: String, after start: String) -> Bool {
    range(of: start, options: .backwards).map { self[$0.upperBound...].contains(text) } ?? false
  }
}
