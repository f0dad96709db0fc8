import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import ContainerTransaction
@testable import FileSystem

/// Places where an exchange cannot work, and disks that are full. These mount file systems, which needs root.
@Suite(.serialized) struct ImpossibleTests {
  private func mount(_ arguments: String..., body: () throws -> Void) throws {
    let mounted = try asRoot("mount", arguments)
    #expect(mounted.succeeded, "\(mounted)")
    defer { unmount(arguments.last ?? "") }
    try body()
  }

  /// - Returns: Whether it was mounted.
  @discardableResult private func unmount(_ place: String) -> Bool {
    let unmounted = (try? asRoot("umount", [place]))?.succeeded == true
    // A process in a mount namespace that another test made meanwhile has a copy of the mount, for as long as that test takes. The
    // product refuses an exchange because of it.
    for _ in 1...600 {
      let search = "cat /proc/[0-9]*/mountinfo 2>&1 | grep -qF -- \"$0\""
      guard (try? Command.run("/bin/sh", ["-c", search, place]))?.succeeded == true else { return unmounted }
      usleep(100_000)
    }
    Issue.record("\(place) is still mounted for another process")
    return unmounted
  }

  /// Only root may mount: another user needs `sudo` without a password, as on build machines.
  private func asRoot(_ command: String, _ arguments: [String]) throws -> CommandResult {
    if geteuid() == 0 { return try Command.run(command, arguments) }
    return try Command.run("sudo", ["-n", command] + arguments)
  }

  /// Changes the container, which cannot be exchanged, and takes it back.
  private func inPlace(_ sandbox: Sandbox, _ words: String) throws {
    let before = try sandbox.listing()
    let outcome = try sandbox.run()
    let note = try #require(outcome.notes.first { $0.hasPrefix("changed in place: ") }, "\(outcome)")
    #expect(outcome.place == .inside && note.contains(words), "\(note)")
    #expect(try sandbox.text("Documents/empty.txt") == "replaced" && sandbox.stages().isEmpty)
    try sandbox.rollback()
    expectNone(try sandbox.listing().changes(from: before))
    #expect(try sandbox.state() == nil)
    expectError(.notWritable) { try sandbox.run(commit: .beside) }
  }

  @Test func theContainerIsAMountPoint() throws {
    let folder = try TemporaryDirectory()
    let sandbox = Sandbox(folder: folder)
    try Directory(folder.path).createDirectory("c")
    try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder("c")) {
      try sandbox.put("Documents/empty.txt", "x")
      try inPlace(sandbox, "mounted at the container's root")
    }
    // A directory of the same file system, mounted on itself.
    try sandbox.put("Documents/empty.txt", "x")
    try mount("--bind", folder("c"), folder("c")) {
      try inPlace(sandbox, "mounted at the container's root")
      try sandbox.run("the last in place")
    }
    // What is kept in the container stays with it when it is exchanged, and both logs are one.
    let exchanged = try sandbox.run("by exchange") { try $0.write([1], to: "later") }
    #expect(exchanged.place == .beside)
    #expect(try sandbox.log().map(\.summary).suffix(2) == ["the last in place", "by exchange"])
    // Mounted again: what an exchange has kept beside it is behind another mount, and comes back all the same.
    try mount("--bind", folder("c"), folder("c")) {
      try sandbox.rollback()
      #expect(try !sandbox.exists("later") && sandbox.text("Documents/empty.txt") == "replaced")
    }
    try sandbox.rollback()
    #expect(try sandbox.text("Documents/empty.txt") == "x")
  }

  @Test func anotherFileSystemIsInsideIt() throws {
    let sandbox = try Sandbox(files: ["Documents/empty.txt": "x", "Library/mounted/below": "y"])
    try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", sandbox.root + "/Library/mounted") {
      try sandbox.put("Library/mounted/inside", "z")
      try inPlace(sandbox, "mounted inside the container, at Library/mounted")
      // What is on it cannot be changed in the same step.
      let before = try sandbox.listing()
      for body in [
        { try $0.write([1], to: "Library/mounted/inside") },
        { try $0.write([1], to: "Library/mounted/new") }, { try $0.remove("Library/mounted") },
      ] as [(StagedContainer) throws -> Void] {
        let refused = (try? sandbox.run { try body($0) }) == nil
        #expect(refused)
        expectNone(try sandbox.listing().changes(from: before))
        #expect(try sandbox.stages().isEmpty)
      }
    }
    try mount("--bind", sandbox.root + "/Documents", sandbox.root + "/Library/mounted") {
      try inPlace(sandbox, "mounted inside the container")
    }
    #expect(try sandbox.run().place == .beside)
    #expect(try sandbox.text("Library/mounted/below") == "y")
  }

  @Test func theParentIsReadOnly() throws {
    let sandbox = try Sandbox(files: ["Documents/empty.txt": "x"])
    try mount("--bind", sandbox.folder.path, sandbox.folder.path) {
      let remounted = try asRoot("mount", ["-o", "remount,bind,ro", sandbox.folder.path])
      #expect(remounted.succeeded, "\(remounted)")
      let before = try TreeListing(sandbox.folder.path)
      expectError(.notWritable) { try sandbox.run() }
      expectNone(try TreeListing(sandbox.folder.path).changes(from: before))
      // Looking needs no writable directory.
      let outcome = try Transaction.dryRun(on: sandbox.container(), body: Sandbox.change)
      #expect(!outcome.difference.isEmpty)
    }
  }

  @Test func mountedAtTheLastMoment() throws {
    let sandbox = try Sandbox(files: ["Documents/empty.txt": "x"])
    let before = try sandbox.listing()
    let root = sandbox.root
    let faults = Seams { point in
      guard point == .committed else { return }
      try Command.succeed("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", root + "/Documents"])
    }
    // Whatever becomes of it, what is mounted is not emptied.
    _ = try? sandbox.run(faults: faults)
    defer { unmount(root + "/Documents") }
    _ = try? Transaction.recover(sandbox.container())
    let mounts = try String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
    let place = mounts.split(separator: "\n").first { $0.contains(sandbox.folder.path) }
    let path = try #require(place).split(separator: " ")[4]
    #expect(unmount(String(path)))
    _ = try Transaction.recover(sandbox.container())
    #expect(try sandbox.stages().isEmpty)
    if try sandbox.log().first?.state == .undoable { try sandbox.rollback() }
    expectNone(try sandbox.listing().changes(from: before))
  }

  // MARK: Full disks

  /// With less and less space: a commit in place is done, or has changed nothing.
  @Test func noSpaceInPlace() throws {
    for room in [0, 8, 16, 24, 32, 40, 48, 60, 80] {
      let folder = try TemporaryDirectory()
      try mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.path) {
        let sandbox = Sandbox(folder: folder)
        try Directory(folder.path).createDirectory("c")
        try sandbox.put("Documents/empty.txt", "x")
        let before = try sandbox.listing()
        let free = Int(try sandbox.live().freeSpace() ?? 0) - room * 1024
        try Directory(folder.path).create("filler", [UInt8](repeating: 0, count: max(free, 0)))
        do {
          try sandbox.run(commit: .inside)
          #expect(try sandbox.text("Documents/new/sub/deep.txt") == "deep", "\(room)")
        } catch {
          expectNone(try sandbox.listing().changes(from: before), "\(room)")
        }
        try Directory(folder.path).removeFile("filler")
        _ = try Transaction.recover(sandbox.container())
        #expect(try sandbox.stages().isEmpty, "\(room)")
        if try !sandbox.exists("Documents/new") { try sandbox.run(commit: .inside) }
        try sandbox.rollback(commit: .inside)
        expectNone(try sandbox.listing().changes(from: before), "\(room)")
      }
    }
  }

  @Test func noSpace() throws {
    let folder = try TemporaryDirectory()
    try mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", folder.path) {
      let sandbox = Sandbox(folder: folder)
      try Directory(folder.path).createDirectory("c")
      try sandbox.put("Documents/empty.txt", "x")
      try Command.succeed(
        try Tools.system("sqlite3"),
        ["\(sandbox.root)/db", "CREATE TABLE t(x); INSERT INTO t VALUES (zeroblob(1000000))"])
      let before = try sandbox.listing()
      let big = [UInt8](repeating: 1, count: 5 << 20)
      let bodies: [(StagedContainer) throws -> Void] = [
        { try $0.write(big, to: "big") },
        { staged in try staged.putFile(at: "big", metadata: nil, size: 0) { try $0.write(big) } },
        { staged in
          try staged.writeDatabase(at: "db") {
            try $0.execute(sql: "INSERT INTO t VALUES (zeroblob(4000000))")
          }
        },
        { staged in for number in 0..<6 { try staged.copy("db", to: ContainerPath("copy-\(number)")) } },
      ]
      for (number, body) in bodies.enumerated() {
        do {
          try sandbox.run("\(number)", body)
          Issue.record("there was room for \(number)")
        } catch let error as DrydockError {
          #expect(error.code == .noSpace && error.message.contains("free"), "\(number): \(error)")
        }
        expectNone(try sandbox.listing().changes(from: before, comparing: TreeListing.untouched))
        #expect(try sandbox.stages().isEmpty)
        #expect(try sandbox.log().isEmpty)
      }
      let outcome = try sandbox.run { try $0.write([1], to: "small") }
      #expect(outcome.transaction != nil)
    }
  }
}

/// What `chattr` and default access lists set on directories and files, and neighbours that cannot be linked. On ext4.
@Suite struct FlagTests {
  private static let files = [
    "Documents/empty.txt": "", "Documents/keep": "k", "Documents/Inbox/in": "i", "Library/a/b": "b",
    "top": "t",
  ]

  private func with(_ body: (Sandbox) throws -> Void) throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can make a file immutable")
    let sandbox = try Sandbox(files: Self.files)
    // Else the directory could not be removed.
    defer { _ = try? Command.run(Tools.system("chattr"), ["-R", "-ia", sandbox.folder.path]) }
    try body(sandbox)
  }

  private func chattr(_ sandbox: Sandbox, _ flags: String, _ path: String) throws {
    try Command.succeed(
      Tools.system("chattr"), [flags, path.isEmpty ? sandbox.root : "\(sandbox.root)/\(path)"])
  }

  /// The flags of every path as `lsattr` shows them, one line each.
  private func flags(_ sandbox: Sandbox) throws -> [String] {
    let script = "cd \"$0\" && find . -name .drydock-state -prune -o -exec lsattr -d {} +"
    let result = try Command.succeed("/bin/sh", ["-c", script, sandbox.root])
    return result.output.split(separator: "\n").map { line in
      let parts = line.split(separator: " ", maxSplits: 1)
      return "\(parts[1]) \(parts[0].filter { !"-eI".contains($0) })"
    }.sorted()
  }

  private func change(_ staged: StagedContainer) throws {
    try Sandbox.change(staged)
    try staged.write([1], to: "top")
  }

  @Test(arguments: [StateDirectory.Place.beside, .inside]) func areReproduced(commit: StateDirectory.Place)
    throws
  {
    try with { sandbox in
      for (path, set) in [
        ("", "+A"), ("Documents", "+AD"), ("Library", "+Ssu"), ("Library/a", "+TcP"),
        ("Documents/Inbox", "+DS"),
        ("Documents/empty.txt", "+ASs"), ("top", "+u"), ("Documents/Inbox/in", "+A"),
      ] { try chattr(sandbox, set, path) }
      let (before, listing) = (try flags(sandbox), try sandbox.listing())
      let outcome = try sandbox.run(commit: commit, change)
      #expect(outcome.place == .beside || commit == .inside)
      let after = try flags(sandbox)
      // What is new is as if the app had made it there.
      let made = ["./Documents/new DA", "./Documents/new/sub DA", "./Documents/new/sub/deep.txt A"]
      let written = made + ["./Documents/written.txt A"]
      #expect(after == (before.filter { !$0.contains("/Inbox") } + written).sorted())
      try sandbox.rollback(commit: commit)
      let back = try flags(sandbox)
      #expect(back == before)
      expectNone(try sandbox.listing().changes(from: listing))
    }
  }

  @Test func defaultAccessListsAreReproduced() throws {
    try with { sandbox in
      func entry(_ tag: UInt8, _ rights: UInt8, _ id: [UInt8] = [255, 255, 255, 255]) -> [UInt8] {
        [tag, 0, rights, 0] + id
      }
      let list =
        [2, 0, 0, 0] + entry(1, 7) + entry(2, 7, [210, 4, 0, 0]) + entry(4, 5) + entry(16, 7) + entry(32, 5)
      // Also on the directory around it, from which the state would inherit one.
      for path in [sandbox.folder.path, "\(sandbox.root)/Documents"] {
        try ExtendedAttributes.set("system.posix_acl_default", list, of: Array(path.utf8))
      }
      let before = try sandbox.listing()
      let outcome = try sandbox.run(commit: .beside, change)
      #expect(outcome.place == .beside)
      let changed = [
        "Documents/written.txt", "Documents/new", "Documents/Inbox", "Documents/empty.txt", "top",
      ]
      expectNone(
        try sandbox.listing().without(changed).changes(
          from: before.without(changed), ignoringTimesOf: ["", "Documents"]))
      try sandbox.rollback()
      expectNone(try sandbox.listing().changes(from: before))
    }
  }

  // MARK: What cannot be linked

  @Test(arguments: ["+i", "+a"], ["Documents/keep", "Library/a", "Library/a/b"])
  func immutableNeighboursAreNotTouched(flag: String, path: String) throws {
    try with { sandbox in
      try chattr(sandbox, flag, path)
      let (before, listing) = (try flags(sandbox), try sandbox.listing())
      expectError(.notWritable, "\(path) is immutable") { try sandbox.run(commit: .beside, change) }
      let outcome = try sandbox.run { try change($0) }
      #expect(outcome.notes.contains { $0.contains("in place: \(path) is immutable") }, "\(outcome.notes)")
      let (text, stages) = (try sandbox.text("Documents/empty.txt"), try sandbox.stages())
      #expect(text == "replaced" && stages.isEmpty)
      try sandbox.rollback()
      let after = try flags(sandbox)
      #expect(after == before)
      expectNone(try sandbox.listing().changes(from: listing))
    }
  }

  @Test func aNeighbourThatBecomesImmutableStopsTheCommit() throws {
    try with { sandbox in
      let faults = Seams { point in
        if point == .treeBuilt { try chattr(sandbox, "+i", "Library/a/b") }
      }
      let error = expectError(.changedMeanwhile) { try sandbox.run(faults: faults, change) }
      #expect(error?.message.contains("Library/a/b") == true)
      let (stages, text) = (try sandbox.stages(), try sandbox.text("top"))
      #expect(text == "t" && stages.count == 1)
      try chattr(sandbox, "-i", "Library/a/b")
      _ = try Transaction.recover(sandbox.container())
      let left = try sandbox.stages()
      #expect(left.isEmpty)
    }
  }

  /// What would have to change is not: nothing is, before a record COMMIT is written.
  @Test(
    arguments: ["+i", "+a"],
    ["Documents/empty.txt", "Documents", "Documents/Inbox", "Documents/Inbox/in", ""])
  func anImmutableTargetIsRefused(flag: String, path: String) throws {
    try with { sandbox in
      try chattr(sandbox, flag, path)
      let before = try sandbox.listing()
      let error = expectError(.notWritable, "clear that with chattr") { try sandbox.run { try change($0) } }
      #expect(error?.message.contains("as root") == false)
      expectNone(try sandbox.listing().changes(from: before))
      let (stages, states) = (try sandbox.stages(), try sandbox.log().map(\.state))
      #expect(stages.isEmpty && states.isEmpty)
      try chattr(sandbox, "-ia", path)
      let outcome = try sandbox.run { try change($0) }
      #expect(outcome.place == .beside)
    }
  }

  @Test func aFileWithAllTheNamesItMayHave() throws {
    try with { sandbox in
      try Directory(sandbox.folder.path).createDirectory("names")
      defer { _ = try? Command.run("/bin/rm", ["-rf", sandbox.folder("names")]) }
      let script = """
        import itertools, os, sys
        try:
          for n in itertools.count(1): os.link(sys.argv[1], sys.argv[2] + "/" + str(n))
        except OSError as error: print(os.strerror(error.errno))
        """
      let linked = try Command.run(
        Tools.system("python3"), ["-c", script, "\(sandbox.root)/Library/a/b", sandbox.folder("names")])
      #expect(linked.output == "Too many links\n", "\(linked)")
      let before = try sandbox.listing()
      let reason = "Library/a/b has as many hard links"
      expectError(.notWritable, reason) { try sandbox.run(commit: .beside) { try change($0) } }
      expectNone(try sandbox.listing().changes(from: before))
      #expect(try sandbox.state() == nil && sandbox.state(.inside) == nil)
      let outcome = try sandbox.run { try change($0) }
      #expect(outcome.notes.contains { $0.contains("in place: \(reason)") }, "\(outcome.notes)")
      try Directory(sandbox.folder("names")).removeFile("1")
      let exchanged = try sandbox.run { try $0.write([2], to: "top") }
      #expect(exchanged.place == .beside)
    }
  }
}
