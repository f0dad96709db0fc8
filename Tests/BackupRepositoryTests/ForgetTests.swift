import AgeEncryption
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

@Suite(.everyPlace) struct ForgetTests {
  private let lab: Lab
  private let repository: Repository
  private let identity: AgeIdentity

  init() throws {
    lab = try Lab()
    repository = Repository(lab.repository)
    identity = try AgeIdentity.generate()
  }

  private func id(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "a", count: 8 - digits.count) + digits + String(repeating: "b", count: 24)
  }

  @discardableResult
  private func add(
    _ number: Int, parent: Int? = nil, instance: String = "box", name: String? = nil, encrypted: Bool = false
  ) throws -> String {
    let time = "2026-01-01T00:00:00Z".dateAdding(days: number)
    let (id, parent) = (
      Archive.ID(unchecked: self.id(number)), parent.map { Archive.ID(unchecked: self.id($0)) }
    )
    let names = ArchiveLabel(
      app: "com.example.lab", instance: instance, time: time, id: id.description, parent: parent?.description
    ).fileNames(isEncrypted: encrypted)
    var archive = try HandmadeArchive(
      lab, name: name ?? names[0], id: id, instance: instance, time: time, parent: parent)
    if encrypted { archive.encryption = .recipients([identity.recipient]) }
    return try archive.write()
  }

  private func remaining() throws -> [Int] {
    try lab.storedNames().compactMap { name in
      guard let label = ArchiveLabel(fileName: name) else { return nil }
      return Int(label.id.replacing("a", with: ""), radix: 16)
    }.sorted()
  }

  private func names() throws -> [String] { try lab.storedNames() }

  @Test(.atEachPlace, arguments: [false, true])
  func chainsStayWhileOneOfThemIsKept(encrypted: Bool) throws {
    for (number, parent) in [(1, nil), (2, 1), (3, 2), (4, nil)] as [(Int, Int?)] {
      try add(number, parent: parent, encrypted: encrypted)
    }
    var policy = RetentionPolicy.last(2)
    let dry = try repository.forget(keeping: policy, dryRun: true)
    #expect(dry.removed.isEmpty && dry.kept.count == 4 && dry.unreadable.isEmpty)
    #expect(dry.kept.first?.reasons == ["needed by \(id(2).prefix(8))"])
    #expect(dry.kept.last?.reasons == ["last"])
    try repository.forget(keeping: policy)
    #expect(try remaining() == [1, 2, 3, 4])
    try add(5, parent: 4, encrypted: encrypted)
    let report = try repository.forget(keeping: policy)
    #expect(
      report.removed.map(\.time) == ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"])
    #expect(report.bytesFreed > 1000 && report.removed.allSatisfy { $0.paths.count == 1 })
    #expect(try remaining() == [4, 5])
    policy = RetentionPolicy()
    expectError(.usage) { try repository.forget(keeping: policy) }
    policy.tags = [["none"]]
    expectError(.checkFailed, encrypted ? "com.example.lab/#" : "com.example.lab/box") {
      try repository.forget(keeping: policy)
    }
    #expect(try remaining() == [4, 5])
  }

  @Test(.local("a name with a line break")) func aNameThatCannotBePrintedIsNotTakenForAnother() throws {
    try add(1)
    try lab.changeRepository("cd repository; mv *.tar.zst \"$(printf 'new\\nline.tar.zst')\"")
    let listing = try repository.list()
    #expect(
      listing.items.isEmpty
        && listing.unreadable.map(\.reason).allSatisfy { $0.contains("control characters") })
    #expect(throws: DrydockError.self) { try repository.forgetEverything(app: "com.example.lab") }
    #expect(try names().count == 1)
  }

  @Test func aSealedFileNamedByHandIsAQuestion() throws {
    try add(1)
    try add(2)
    try add(3, parent: 1, name: "mine.tar.zst.age", encrypted: true)
    expectError(.noIdentity, "mine.tar.zst.age") { try repository.forget(keeping: .last(1)) }
    #expect(try names().count == 3)
    // When nothing would go anyway, it does not matter.
    #expect(try repository.forget(keeping: .last(2)).removed.isEmpty)
    let keys = AgeKeys(identities: [identity])
    let report = try repository.forget(keeping: .last(1), keys: keys)
    #expect(report.removed.map(\.time) == ["2026-01-03T00:00:00Z"])
    #expect(try names().contains("mine.tar.zst.age") && remaining() == [1])
  }

  @Test(arguments: [nil, 0.0]) func aCutFileNamedByHandIsAQuestion(share: Double?) throws {
    try add(1)
    let whole = try add(2, parent: 1, name: "mine.tar.zst")
    try add(3)
    try lab.changeRepository("cp repository/mine.tar.zst saved; truncate -s -10 repository/mine.tar.zst")
    expectError(.noIdentity, "mine.tar.zst") {
      try repository.forget(keeping: .last(1), compacting: share.map(CompactionOptions.share))
    }
    #expect(try remaining() == [1, 3])
    try lab.changeRepository("mv saved repository/mine.tar.zst")
    _ = try Verification.run(Archive(path: whole), data: true)
  }

  @Test(
    arguments: [
      ["李明", "王芳"], ["ada smith", "ada-smith"], ["café", "cafe\u{301}"],
      [String(repeating: "x", count: 90) + "a", String(repeating: "x", count: 90) + "b"],
    ], [false, true])
  func similarInstancesAreApart(instances: [String], encrypted: Bool) throws {
    for number in 1...4 { try add(number, instance: instances[number % 2], encrypted: encrypted) }
    try repository.forget(keeping: .last(1))
    #expect(try remaining() == [3, 4])
    #expect(try repository.find("\(instances[1])@latest").contains(id(3).prefix(8)))
    try repository.forgetEverything(instance: instances[0])
    #expect(try remaining() == [3])
    expectError(.notFound) { try repository.forgetEverything(instance: instances[0]) }
  }

  @Test func damagedFilesStayAndAreNamed() throws {
    try add(1)
    let child = try add(2, parent: 1)
    try add(3)
    try add(4)
    try lab.store(child, Array("no archive".utf8))
    try lab.store("odd.tar.zst", Array("no archive".utf8))
    // A readable copy of another one can go; the damaged file stays.
    let copied = try add(5)
    try lab.changeRepository("cd repository; cp *_\(id(5).prefix(8))*.tar.zst copy.tar.zst")
    try lab.store(copied, [1])
    try add(6)
    #expect(try repository.forget(keeping: .last(1), dryRun: true).removed.flatMap(\.paths).count == 3)
    try lab.removeStored(copied)
    try lab.changeRepository("cd repository; rm copy.tar.zst *_\(id(6).prefix(8))*.tar.zst")
    let report = try repository.forget(keeping: .last(1))
    // What it may need stays, in case that it is repaired.
    #expect(try remaining() == [1, 2, 4] && report.removed.count == 1)
    #expect(report.unreadable.map(\.path).sorted() == [child, lab.repository + "/odd.tar.zst"].sorted())
    #expect(report.kept.map(\.reasons) == [["needed by \(id(2).prefix(8))"], ["last"]])
  }

  @Test func aMissingArchiveKeepsWhatItMayNeed() throws {
    var reports: [SnapshotReport] = []
    for number in 0..<5 {
      try lab.write("file", "content \(number)")
      reports.append(try lab.incremental { $0.isFull = number == 3 })
    }
    let (missing, orphan) = (reports[1], reports[2])
    try lab.changeRepository("mv 'repository/\(lastName(missing.path))' aside")
    for isDry in [true, false] {
      let report = try repository.forget(keeping: .last(1), dryRun: isDry)
      #expect(report.removed.isEmpty)
      #expect(report.unreadable.map(\.path) == [orphan.path])
      #expect(
        report.kept.map(\.reasons) == [
          ["may be needed by the missing parent of \(orphan.archive.short)"], [RetentionPolicy.missing],
          ["needed by \(reports[4].archive.short)"], ["last"],
        ])
    }
    // What is newer than the gap goes by the rules.
    try lab.write("file", "last")
    let last = try lab.incremental { $0.isFull = true }
    #expect(
      try repository.forget(keeping: .last(1)).removed.map(\.id) == reports[3...].map(\.archive.description))
    try lab.changeRepository("mv aside 'repository/\(lastName(missing.path))'")
    for path in [missing.path, orphan.path] {
      _ = try Verification.run(Archive(path: path), data: true)
    }
    let all = try repository.forget(keeping: .last(1))
    #expect(all.removed.count == 3 && all.kept.map(\.id) == [last.archive.description])
  }

  @Test func anUnknownInstanceIsAnError() throws {
    try add(1, instance: "red")
    try add(2, instance: "red")
    try add(3, instance: "blue", encrypted: true)
    for (app, instance) in [(nil, "rad"), ("com.example.lap", nil), ("com.example.lap", "red")]
      as [(String?, String?)]
    {
      for dryRun in [true, false] {
        expectError(.notFound, "com.example.lab/red") {
          try repository.forget(keeping: .last(1), app: app, instance: instance, dryRun: dryRun)
        }
      }
    }
    #expect(try repository.forget(keeping: .last(1), instance: "blue").removed.isEmpty)
    #expect(try repository.forget(keeping: .last(1), instance: "red").removed.count == 1)
  }

  @Test func tagsWithoutAnArchiveAreRemoved() throws {
    try add(1)
    try add(2, encrypted: true)
    let damaged = try add(3)
    try lab.store(damaged, [1])
    try lab.changeRepository(
      """
      cd repository; for i in \(id(1)) \(id(2)) \(id(3)) \(id(4)); do
        echo {} > $i.tags.json; touch -d '2 days ago' $i.tags.json
      done
      """)
    func tags() throws -> [String] {
      try names().filter { $0.hasSuffix(".json") }.map { String($0.prefix(32)) }
    }
    try repository.forget(keeping: .last(9), dryRun: true)
    #expect(try tags() == (1...4).map(id))
    // They may be those of a file whose id is not known.
    let unknown = try add(5, name: "mine.tar.zst.age", encrypted: true)
    try repository.forget(keeping: .last(9))
    #expect(try tags() == (1...4).map(id))
    try lab.removeStored(unknown)
    try lab.changeRepository("cd repository; echo > \(id(1)).tags.json.drydock-new; echo > notes.drydock-new")
    try repository.forget(keeping: .last(9))
    // At a remote place, what was written today may belong to an archive that no listing shows yet. S3 has its own times.
    #expect(try tags() == (1...(PlaceKind.current == .s3 ? 4 : 3)).map(id))
    #expect(try names().filter { $0.hasSuffix("new") } == ["notes.drydock-new"])
  }

  @Test(arguments: [false, true]) func whatAnotherInstanceNeedsStays(encrypted: Bool) throws {
    try add(1, instance: "red", encrypted: encrypted)
    try add(2, parent: 1, instance: "blue", encrypted: encrypted)
    expectError(.checkFailed, "needs it") { try repository.forgetEverything(instance: "red") }
    try repository.forget(keeping: .last(1), instance: "red")
    #expect(try remaining() == [1, 2])
  }

  @Test func everythingOfOneInstance() throws {
    try add(1, instance: "red")
    try add(2, parent: 1, instance: "red", encrypted: true)
    let damaged = try add(3, instance: "red")
    try lab.store(damaged, [1, 2, 3])
    try add(4, instance: "blue")
    try add(5, instance: "blue", encrypted: true)
    try add(6, instance: "red", name: "renamed.tar.zst")
    try add(7, instance: "red", name: "sealed.tar.zst.age", encrypted: true)
    try lab.changeRepository("cd repository; cp renamed.tar.zst again.tar.zst")
    try repository.tag("renamed.tar.zst", adding: ["keep"])
    expectError(.usage) { try repository.forgetEverything() }
    expectError(.notFound, "com.example.lab/red") { try repository.forgetEverything(instance: "rad") }
    #expect(try repository.forgetEverything(instance: "red", dryRun: true).removed.count == 4)
    #expect(try names().count == 9)
    let report = try repository.forgetEverything(instance: "red")
    #expect(report.removed.count == 4 && report.unattributed == [lab.repository + "/sealed.tar.zst.age"])
    #expect(try remaining() == [4, 5] && names().count == 3)
    let rest = try repository.forgetEverything(
      app: "com.example.lab", instance: "red", keys: AgeKeys(identities: [identity]))
    #expect(rest.removed.count == 1 && rest.unattributed.isEmpty)
    #expect(try names().count == 2)
  }

  @Test func aNameIsThatOfOneInstance() throws {
    try add(1, instance: "a@b")
    try add(2, instance: "a/b")
    try add(3, instance: "a/b", encrypted: true)
    let report = try repository.forgetEverything(instance: "a@b")
    #expect(report.removed.map(\.instance) == ["a@b"] && report.unattributed.isEmpty)
    #expect(try remaining() == [2, 3])
    let other = try repository.forgetEverything(instance: "a/b")
    #expect(other.removed.count == 2 && other.unattributed.isEmpty)
  }

  @Test(.atEachPlace) func tags() throws {
    let first = try add(1)
    let encrypted = try add(2, encrypted: true)
    try add(3)
    #expect(try repository.tag(lastName(first), adding: ["release", "keep", "keep"]) == ["keep", "release"])
    let tags = try repository.tag(String(id(1).prefix(10)), adding: ["x"], removing: ["release", "none"])
    #expect(tags == ["keep", "x"])
    expectError(.noIdentity) { try repository.tag(lastName(encrypted), adding: ["keep"]) }
    let keys = AgeKeys(identities: [identity])
    #expect(try repository.tag(lastName(encrypted), adding: ["keep", "y"], keys: keys) == ["keep", "y"])
    // From then on no key is needed.
    #expect(try repository.tag(lastName(encrypted), removing: ["y"]) == ["keep"])
    for tag in ["", "a,b", " a", "a\u{1B}", String(repeating: "a", count: 101)] {
      expectError(.usage) { try repository.tag(lastName(first), adding: [tag]) }
    }
    expectError(.notFound) { try repository.tag("box@2020", adding: ["a"]) }
    let listing = try repository.list()
    #expect(listing.items.map(\.tags) == [["keep", "x"], []] && listing.locked.map(\.tags) == [["keep"]])
    // A copy of the repository decides as this one.
    try lab.changeRepository("cp -r repository copy")
    var policy = RetentionPolicy.last(1)
    for path in [lab.directory("copy"), lab.repository] {
      policy.tags = [["keep", "x"]]
      let report = try Repository(path).forget(keeping: policy)
      #expect(
        report.removed.map(\.tags) == [["keep"]] && report.kept.map(\.reasons) == [["tag keep,x"], ["last"]])
      let left = try path == lab.repository ? names() : FileManager.default.contentsOfDirectory(atPath: path)
      #expect(left.count == 3 && left.filter { $0.hasSuffix(".tags.json") } == ["\(id(1)).tags.json"])
    }
    // Tags that cannot be read might keep it.
    try lab.changeRepository("cd repository; echo '{' > \(id(1)).tags.json")
    let kept = try repository.forget(keeping: .last(1))
    #expect(kept.removed.isEmpty && kept.kept.first?.reasons == ["its tags cannot be read"])
    #expect(try kept.unreadable.count == 1 && repository.list().unreadable.count == 1)
    try lab.changeRepository("cd repository; rm *.tags.json")
    #expect(try repository.forget(keeping: .last(1)).removed.count == 1)
  }

  @Test func aSnapshotHasItsTagsFromTheBeginning() throws {
    try lab.write("file", "content")
    let report = try lab.snapshot { $0.tags = ["b", "a", "b"] }
    #expect(try repository.list().items.map(\.tags) == [["a", "b"]])
    #expect(try names().first { $0.hasSuffix(".json") } == "\(report.archive).tags.json")
    expectError(.usage) { try lab.snapshot { $0.tags = ["a,b"] } }
    expectError(.usage) { try lab.snapshot(to: lab.directory("file.tar.zst")) { $0.tags = ["a"] } }
    #expect(try names().count == 2 && !RawFiles.exists(Array(lab.directory("file.tar.zst").utf8)))
    // An archive is as good without the file.
    try repository.forget(keeping: .last(1))
    try lab.changeRepository("rm repository/*.json")
    #expect(try Verification.run(Archive(path: report.path), data: true).entries == report.entries)
  }

  @Test func listsCanBeShort() throws {
    for number in 1...4 {
      try add(number, instance: number % 2 == 0 ? "red" : "blue", encrypted: number == 4)
    }
    let listing = try repository.list()
    #expect(listing.newest(1).archives.map(\.path) == listing.archives.suffix(2).map(\.path))
    #expect(listing.newest(9).archives.count == 4)
    #expect(try listing.since("2026-01-03").archives.count == 3)
    #expect(try listing.since("2026-01-03T00:00:01Z").archives.count == 2)
    #expect(try listing.since("2026").archives.count == 4 && listing.since("2027").archives.isEmpty)
    expectError(.malformed) { try listing.since("yesterday") }
  }

  /// Killed at every removal of a file: no archive is left without one that it needs.
  @Test(.local("kills at calls of the file system; RandomRepositoryTests at random moments and places"))
  func killedAtAnyMoment() throws {
    let parents: [Int?] = [nil, 0, 1, 2, 1, nil, 5, 6, nil, nil]
    for (number, parent) in parents.enumerated() { try add(number + 16, parent: parent.map { $0 + 16 }) }
    for number in [17, 20] { try repository.tag(id(number), adding: ["t"]) }
    try lab.shell("mv repository master")
    let arguments = ["forget", "-r", lab.repository, "--keep-last", "1"]
    func check(_ context: String) throws -> Int {
      let left = Set(try remaining().map { $0 - 16 })
      for number in left {
        if let parent = parents[number] {
          #expect(left.contains(parent), "\(context): \(number) lost \(parent)")
        }
      }
      #expect(left.contains(9), "\(context)")
      let again = try Command.run(Tools.drydock(), arguments)
      #expect(again.succeeded, "\(context): \(again)")
      #expect(try names().count == 1, "\(context)")
      return left.count
    }
    var counts: Set<Int> = []
    for number in 1...12 {
      try lab.shell("rm -rf repository; cp -r master repository")
      let traced = try Command.run(
        Tools.system("strace"),
        Tools.tracing("unlinkat", "signal=SIGKILL:when=\(number)") + [Tools.drydock()] + arguments)
      counts.insert(try check("unlink \(number): \(traced.exitCode)"))
    }
    #expect(counts.isSuperset(of: Set(2...9)), "every number of archives was met: \(counts)")
  }
}

extension String {
  fileprivate func dateAdding(days: Int) -> String {
    guard let date = try? Date(self, strategy: .iso8601) else { return self }
    return date.addingTimeInterval(Double(days) * 86_400).ISO8601Format()
  }
}
