import Foundation
import TestSupport
import Testing

@testable import ContainerTransaction
@testable import FileSystem

/// What `chattr` and default access lists set on directories and files, and neighbours that cannot be linked. On ext4.
@Suite struct FlagTests {
  private static let files = [
    "Documents/empty.txt": "", "Documents/keep": "k", "Documents/Inbox/in": "i", "Library/a/b": "b",
    "top": "t",
  ]

  private func with(_ body: (Ship) throws -> Void) throws {
    try #require(getuid() == 0, "run as root, as CI does: only root can make a file immutable")
    try Ship.withFiles(Self.files) { ship in
      // Else the directory could not be removed.
      defer { _ = try? Command.run(Tools.system("chattr"), ["-R", "-ia", ship.folder.path]) }
      try body(ship)
    }
  }

  private func chattr(_ ship: Ship, _ flags: String, _ path: String) throws {
    let result = try Command.run(
      Tools.system("chattr"), [flags, path.isEmpty ? ship.root : "\(ship.root)/\(path)"])
    #expect(result.succeeded, "\(result)")
  }

  /// The flags of every path as `lsattr` shows them, one line each.
  private func flags(_ ship: Ship) throws -> [String] {
    let script = "cd \"$0\" && find . -name .drydock-state -prune -o -exec lsattr -d {} +"
    let result = try Command.run("/bin/sh", ["-c", script, ship.root])
    #expect(result.succeeded, "\(result)")
    return result.output.split(separator: "\n").map { line in
      let parts = line.split(separator: " ", maxSplits: 1)
      return "\(parts[1]) \(parts[0].filter { !"-eI".contains($0) })"
    }.sorted()
  }

  private func change(_ staged: StagedContainer) throws {
    try Ship.change(staged)
    try staged.write([1], to: "top")
  }

  @Test(arguments: [CommitPreference.exchange, .inPlace]) func areReproduced(commit: CommitPreference) throws
  {
    try with { ship in
      for (path, set) in [
        ("", "+A"), ("Documents", "+AD"), ("Library", "+Ssu"), ("Library/a", "+TcP"),
        ("Documents/Inbox", "+DS"),
        ("Documents/empty.txt", "+ASs"), ("top", "+u"), ("Documents/Inbox/in", "+A"),
      ] { try chattr(ship, set, path) }
      let (before, listing) = (try flags(ship), try ship.listing())
      let outcome = try ship.run(commit: commit, change)
      #expect(outcome.way == .exchange || commit == .inPlace)
      let after = try flags(ship)
      // What is new is as if the app had made it there.
      let made = ["./Documents/new DA", "./Documents/new/sub DA", "./Documents/new/sub/deep.txt A"]
      let written = made + ["./Documents/written.txt A"]
      #expect(after == (before.filter { !$0.contains("/Inbox") } + written).sorted())
      try ship.rollback(commit: commit)
      let back = try flags(ship)
      #expect(back == before)
      expectNone(try ship.listing().changes(from: listing))
    }
  }

  @Test func defaultAccessListsAreReproduced() throws {
    try with { ship in
      func entry(_ tag: UInt8, _ rights: UInt8, _ id: [UInt8] = [255, 255, 255, 255]) -> [UInt8] {
        [tag, 0, rights, 0] + id
      }
      let list =
        [2, 0, 0, 0] + entry(1, 7) + entry(2, 7, [210, 4, 0, 0]) + entry(4, 5) + entry(16, 7) + entry(32, 5)
      // Also on the directory around it, from which the state would inherit one.
      for path in [ship.folder.path, "\(ship.root)/Documents"] {
        try ExtendedAttributes.set("system.posix_acl_default", list, of: Array(path.utf8))
      }
      let before = try ship.listing()
      let outcome = try ship.run(commit: .exchange, change)
      #expect(outcome.way == .exchange)
      let changed = [
        "Documents/written.txt", "Documents/new", "Documents/Inbox", "Documents/empty.txt", "top",
      ]
      expectNone(
        try ship.listing().without(changed).changes(
          from: before.without(changed), ignoringTimesOf: ["", "Documents"]))
      try ship.rollback()
      expectNone(try ship.listing().changes(from: before))
    }
  }

  // MARK: What cannot be linked

  @Test(arguments: ["+i", "+a"], ["Documents/keep", "Library/a", "Library/a/b"])
  func immutableNeighboursAreNotTouched(flag: String, path: String) throws {
    try with { ship in
      try chattr(ship, flag, path)
      let (before, listing) = (try flags(ship), try ship.listing())
      let error = ship.failure { try ship.run(commit: .exchange, change) }
      #expect(error?.code == .notWritable && error?.message.contains("\(path) is immutable") == true)
      let outcome = try ship.run { try change($0) }
      #expect(outcome.notes.contains { $0.contains("in place: \(path) is immutable") }, "\(outcome.notes)")
      let (text, stages) = (try ship.text("Documents/empty.txt"), try ship.stages())
      #expect(text == "replaced" && stages.isEmpty)
      try ship.rollback()
      let after = try flags(ship)
      #expect(after == before)
      expectNone(try ship.listing().changes(from: listing))
    }
  }

  @Test func aNeighbourThatBecomesImmutableStopsTheCommit() throws {
    try with { ship in
      let faults = FaultInjection { point in
        if point == .treeBuilt { try chattr(ship, "+i", "Library/a/b") }
      }
      let error = ship.failure { try ship.run(faults: faults, change) }
      #expect(error?.code == .changedMeanwhile && error?.message.contains("Library/a/b") == true)
      let (stages, text) = (try ship.stages(), try ship.text("top"))
      #expect(text == "t" && stages.count == 1)
      try chattr(ship, "-i", "Library/a/b")
      _ = try Transaction.recover(ship.container())
      let left = try ship.stages()
      #expect(left.isEmpty)
    }
  }

  /// What would have to change is not: nothing is, before a record COMMIT is written.
  @Test(
    arguments: ["+i", "+a"],
    ["Documents/empty.txt", "Documents", "Documents/Inbox", "Documents/Inbox/in", ""])
  func anImmutableTargetIsRefused(flag: String, path: String) throws {
    try with { ship in
      try chattr(ship, flag, path)
      let before = try ship.listing()
      let error = ship.failure { try ship.run { try change($0) } }
      #expect(
        error?.code == .notWritable && error?.message.contains("clear that with chattr") == true,
        "\(error as Any)")
      #expect(error?.message.contains("as root") == false)
      expectNone(try ship.listing().changes(from: before))
      let (stages, states) = (try ship.stages(), try ship.log().map(\.state))
      #expect(stages.isEmpty && states.allSatisfy { $0 == .discarded })
      try chattr(ship, "-ia", path)
      let outcome = try ship.run { try change($0) }
      #expect(outcome.way == .exchange)
    }
  }

  @Test func aFileWithAllTheNamesItMayHave() throws {
    try with { ship in
      try Directory(ship.folder.path).createDirectory("names")
      defer { _ = try? Command.run("/bin/rm", ["-rf", ship.folder("names")]) }
      let script = """
        import itertools, os, sys
        try:
          for n in itertools.count(1): os.link(sys.argv[1], sys.argv[2] + "/" + str(n))
        except OSError as error: print(os.strerror(error.errno))
        """
      let linked = try Command.run(
        Tools.system("python3"), ["-c", script, "\(ship.root)/Library/a/b", ship.folder("names")])
      #expect(linked.output == "Too many links\n", "\(linked)")
      let outcome = try ship.run { try change($0) }
      #expect(
        outcome.notes.contains { $0.contains("in place: Library/a/b has as many hard links") },
        "\(outcome.notes)")
      try Directory(ship.folder("names")).removeFile("1")
      let exchanged = try ship.run { try $0.write([2], to: "top") }
      #expect(exchanged.way == .exchange)
    }
  }
}
