import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BackupRepository

/// Snapshots of containers that somebody writes to meanwhile.
@Suite(.serialized) struct LiveSnapshotTests {
  /// Of one that is stored as bytes, SQLite opens what a power cut leaves.
  @Test(arguments: [[], ["--rollback-journal"]] as [[String]], [false, true])
  func databaseIsWholeWhileMoneyMoves(_ mode: [String], isOpaque: Bool) throws {
    let lab = try Lab(name: "notes", notes: (isOpaque ? [] : ["--bulk-mb", "4"]) + mode)
    if isOpaque { lab.configuration.opaque = ["Documents/database.sqlite"] }
    let before = try TreeListing(lab.root)
    let writer = try Command.spawn(Tools.notesApp(), ["write", lab.root])
    try writer.waitForLine("ready")
    let reports = try (0..<(isOpaque ? 4 : rounds)).map { _ in try lab.snapshot() }
    writer.kill(SIGTERM)
    _ = try writer.wait()
    // The writer's own doing: the database, and sidecars that come and go in its directory.
    let others = try TreeListing(lab.root).without("Documents/database.sqlite").differences(
      from: before.without("Documents/database.sqlite"), comparing: TreeListing.untouched,
      ignoringTimesOf: ["Documents"])
    #expect(others.filter { !isOpaque || !$0.hasPrefix("Documents/database.sqlite-") } == [])
    for report in reports where !isOpaque || report.skipped.isEmpty {
      #expect(!report.isIncomplete && report.raw.isEmpty)
      let entry = try Archive(path: report.path).manifest.entry("Documents/database.sqlite")
      #expect(entry?.kind == (isOpaque ? .rawDatabase : .database))
      try expectWhole(report, lab)
      for sidecar in isOpaque ? [] : ["-wal", "-shm", "-journal"] {
        #expect(!lab.exists("Documents/database.sqlite" + sidecar, in: lab.directory("out")))
      }
    }
    #expect(reports.contains { $0.skipped.isEmpty }, "\(reports.map(\.skipped))")
  }

  private let rounds = TestExtent.isFull ? 12 : 6

  private func expectWhole(_ report: SnapshotReport, _ lab: Lab) throws {
    try lab.shell("rm -rf out")
    try lab.restore(report.path, to: lab.directory("out"))
    #expect(try Lab.notes(["check", lab.directory("out/Documents/database.sqlite")]).contains("200000"))
  }

  @Test func appsComeAndGo() throws {
    // The lock is taken, lost and taken again while archives are made.
    let lab = try Lab(name: "notes", notes: ["--bulk-mb", "8"])
    var reports: [SnapshotReport] = []
    for _ in 0..<rounds {
      let writer = try Command.spawn(Tools.notesApp(), ["write", lab.root])
      reports.append(try lab.snapshot())
      writer.kill(SIGTERM)
      reports.append(try lab.snapshot())
      _ = try writer.wait()
    }
    for report in reports { try expectWhole(report, lab) }
  }

  @Test(arguments: [[], ["--rollback-journal"], ["--leave-wal"]] as [[String]])
  func idleAndInUseGiveTheSameId(_ mode: [String]) throws {
    let lab = try Lab(name: "notes", notes: mode)
    let untouched = try TreeListing(lab.root)
    let idle = try lab.snapshot()
    expectSame(try TreeListing(lab.root), as: untouched)
    let holder = try Command.spawn(Tools.notesApp(), ["hold", lab.root])
    try holder.waitForLine("ready")
    let before = try TreeListing(lab.root)
    let busy = try lab.snapshot()
    // Not even the log's index, which all share who have the database open, or the ctime that SQLite moves as root.
    expectSame(try TreeListing(lab.root), as: before, comparing: TreeListing.untouched)
    #expect(lab.exists("Documents/database.sqlite-shm") == (mode != ["--rollback-journal"]))
    try holder.finish()
    let again = try lab.snapshot()
    #expect(idle.snapshot == busy.snapshot && idle.snapshot == again.snapshot)
    #expect(Set([idle, busy, again].map(\.path)).count == 3 && idle.archive != again.archive)
  }

  @Test func changingFilesAreNeverTorn() throws {
    let lab = try Lab()
    // Each file always holds one letter only, but for the moments inside of a write.
    let sizes = ["small": 300_000, "large": 3_000_000]
    for (name, size) in sizes { try lab.write(name, [UInt8](repeating: 65, count: size)) }
    try lab.write("log", "0\n")
    let changes = sizes.map { [root = lab.root] name, size -> @Sendable (Int) -> Void in
      { overwrite(root + "/" + name, [UInt8](repeating: UInt8(65 + $0 % 26), count: size)) }
    }
    try repeating(changes) {
      for _ in 0..<rounds {
        let report = try lab.snapshot()
        for path in report.skipped { #expect(path.reason == .unstable && sizes["\(path.path)"] != nil) }
        #expect(report.isIncomplete == !report.skipped.isEmpty)
        let archive = try Archive(path: report.path)
        _ = try Verification.run(Archive(path: report.path), data: true)
        for (name, size) in sizes {
          if let bytes = try archive.bytes(of: ContainerPath(name)) {
            // Compared at once: these are megabytes, and tests are not optimized.
            let isWhole = bytes == Data(repeating: bytes.first ?? 0, count: size)
            #expect(isWhole, "\(name) is torn, or has other than \(size) bytes: \(bytes.count)")
          } else {
            #expect(report.skipped.map(\.path.description).contains(name))
          }
        }
      }
    }
  }

  @Test func growingFileIsStoredAsItWasAtOneMoment() throws {
    let lab = try Lab()
    try lab.write("log", [UInt8](repeating: 0, count: 2 << 20))
    let append: @Sendable (Int) -> Void = { [path = lab.root + "/log"] _ in
      let file = open(path, O_WRONLY | O_APPEND)
      _ = [UInt8](repeating: 1, count: 5000).withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
      close(file)
      usleep(2000)
    }
    try repeating([append]) {
      for _ in 0..<5 {
        let report = try lab.snapshot()
        _ = try Verification.run(Archive(path: report.path), data: true)
        if let entry = try Archive(path: report.path).manifest.entry("log") {
          #expect((entry.size - 2 << 20) % 5000 == 0)
        } else {
          #expect(report.isIncomplete)
        }
      }
    }
  }

  @Test func `A file that a process has mapped is named if it may write there`() throws {
    let lab = try Lab()
    for name in ["written", "read"] { try lab.write(name, String(repeating: "x", count: 5000)) }
    let app = try Command.spawn(
      Tools.system("python3"),
      [
        "-c",
        """
        import mmap, sys
        files = [open(name, "r+b") for name in sys.argv[1:]]
        maps = [mmap.mmap(file.fileno(), 0, access=access)
                for file, access in zip(files, (mmap.ACCESS_WRITE, mmap.ACCESS_READ))]
        print("ready", flush=True)
        sys.stdin.read()
        """, lab.root + "/written", lab.root + "/read",
      ])
    try app.waitForLine("ready")
    let report = try lab.snapshot()
    #expect(report.mapped.map(\.path) == ["written"] && report.isIncomplete)
    try app.finish()
    #expect(try !lab.snapshot().isIncomplete)
  }
}

/// Files that an app changes together belong to one moment, also when it changes them while they are stored.
struct FileGroupTests {
  private let lab: Lab
  private static let table = "db/000005.ldb", other = "db/000007.ldb", manifest = "db/MANIFEST-000004"
  private static let compacted = "000005, 000007, not 000005"

  init() throws {
    lab = try Lab()
    try lab.write("db/000006.log", "one")
    try lab.write(Self.table, "one")
    try lab.write("db/CURRENT", "MANIFEST-000004\n")
    try lab.write(Self.manifest, "000005")
    try lab.write("mmkv/settings", "one")
    try lab.write("mmkv/settings-of-another", "")
    try lab.write("mmkv/settings.crc", "one")
  }

  /// As LevelDB does it: another table, the manifest that names it, and the first one is removed.
  private static func compact(in root: String) throws {
    try write("one", to: root + "/" + other)
    try write(compacted, to: root + "/" + manifest)
    #expect(unlink(root + "/" + table) == 0)
  }

  private static func write(_ text: String, to path: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
  }

  private func content(_ path: ContainerPath, in report: SnapshotReport) throws -> String? {
    try Archive(path: report.path).bytes(of: path).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(arguments: [1, 3])
  func `A LevelDB that is compacted before it is reached, and while it is stored`(after count: Int) throws {
    let report = try lab.incremental(after: count) { [root = lab.root] in try Self.compact(in: root) }
    #expect(!report.isIncomplete)
    #expect(try content("db/MANIFEST-000004", in: report) == (count == 1 ? Self.compacted : "000005"))
    #expect(try content("db/000005.ldb", in: report) == (count == 1 ? nil : "one"))
    #expect(try content("db/000007.ldb", in: report) == (count == 1 ? "one" : nil))
    let next = try lab.incremental(trusting: false)
    #expect(try content("db/MANIFEST-000004", in: next) == Self.compacted)
    #expect(try content("db/000007.ldb", in: next) == "one" && content("db/000005.ldb", in: next) == nil)
  }

  @Test func `A LevelDB that changes each time that it is read is named, and not stored`() throws {
    let root = lab.root
    try repeating([{ try? Self.write(String($0), to: root + "/" + Self.manifest) }]) {
      while try String(contentsOfFile: root + "/" + Self.manifest, encoding: .utf8) == "000005" {}
      let report = try lab.incremental(trusting: false)
      let isStored = try content("db/MANIFEST-000004", in: report) != nil
      #expect(report.isIncomplete != isStored && report.skipped.allSatisfy { $0.reason == .unstable })
      for name in ["000005.ldb", "000006.log", "CURRENT"] {
        #expect(try (content(ContainerPath("db/" + name), in: report) != nil) == isStored)
      }
    }
  }

  @Test(arguments: [false, true]) func aFileAndItsChecksum(isIncremental: Bool) throws {
    if isIncremental {
      try lab.incremental()
      // The checksum alone has another time: the file is not read.
      try lab.write("mmkv/settings.crc", "one")
    }
    let report = try lab.incremental(trusting: isIncremental, after: 8) { [root = lab.root] in
      for name in ["settings", "settings.crc"] { try Self.write("two", to: root + "/mmkv/" + name) }
    }
    let sum = try content("mmkv/settings.crc", in: report)
    #expect(try content("mmkv/settings", in: report) == "one" && sum == (report.isIncomplete ? nil : "one"))
    #expect(report.isIncomplete == isIncremental)
    let next = try lab.incremental(trusting: false)
    #expect(
      try content("mmkv/settings", in: next) == "two" && content("mmkv/settings.crc", in: next) == "two")
  }

  @Test func `A pair of which one file was replaced is stored; one that lacks a file is not`() throws {
    let whole = try lab.incremental(after: 1) { [root = lab.root] in
      try Self.write("two", to: root + "/other")
      #expect(rename(root + "/other", root + "/mmkv/settings") == 0)
    }
    #expect(try !whole.isIncomplete && content("mmkv/settings", in: whole) == "two")
    #expect(try content("mmkv/settings.crc", in: whole) == "one")
    let half = try lab.incremental(after: 1) { [root = lab.root] in
      #expect(unlink(root + "/mmkv/settings") == 0)
    }
    #expect(half.skipped.map(\.path) == ["mmkv/settings", "mmkv/settings.crc"])
    #expect(try content("mmkv/settings", in: half) == nil && content("mmkv/settings.crc", in: half) == nil)
  }

  /// Both have the same number, or the file has the next one: then it was the moment between the two writes.
  private func expectOneMoment(_ file: String?, _ sum: String?, _ location: SourceLocation = #_sourceLocation)
  {
    let numbers = [file, sum].map { $0.flatMap { Int($0) } }
    let isOneMoment =
      numbers[0].flatMap { file in numbers[1].map { (0...1).contains(file - $0) } } ?? (file == sum)
    #expect(isOneMoment, "\(file ?? "none"), \(sum ?? "none")", sourceLocation: location)
  }

  /// By `rename`, with files of another directory, as fast as it goes.
  @Test func eachArchiveHasAPairOrNames() throws {
    for name in ["settings", "settings.crc"] { try lab.write("mmkv/" + name, "000000") }
    let root = lab.root
    let change: @Sendable (Int) -> Void = { number in
      for name in ["settings", "settings.crc"] {
        try? Self.write(String(number), to: root + "/new")
        rename(root + "/new", root + "/mmkv/" + name)
      }
      usleep(500)
    }
    try repeating([change]) {
      for _ in 0..<4 {
        let report = try lab.incremental(trusting: false)
        let (file, sum) = try (content("mmkv/settings", in: report), content("mmkv/settings.crc", in: report))
        expectOneMoment(file, sum)
        // The directory changes all the time, too, and may be reported as such.
        let skipped = report.skipped.map(\.path).filter { $0 != "mmkv" && !$0.isRoot }
        #expect(
          skipped.contains("mmkv/settings") == (file == nil) && Set(skipped).count == skipped.count,
          "\(file ?? "nothing"), \(report.skipped)")
      }
    }
  }

  /// A write through a mapping sets no time.
  @Test func aChecksumThatIsWrittenThroughAMapping() throws {
    for name in ["settings", "settings.crc"] { try lab.write("mmkv/" + name, "000000") }
    let root = lab.root
    let files = ["settings", "settings.crc"].map { open(root + "/mmkv/" + $0, O_RDWR) }
    nonisolated(unsafe) let maps = files.map { mmap(nil, 6, PROT_READ | PROT_WRITE, MAP_SHARED, $0, 0)! }
    defer {
      for map in maps { munmap(map, 6) }
      for file in files { close(file) }
    }
    let change: @Sendable (Int) -> Void = { number in
      let text = String(format: "%06d", number)
      for map in maps { memcpy(map, text, 6) }
      usleep(500)
    }
    try repeating([change]) {
      for _ in 0..<5 {
        let report = try lab.incremental(trusting: false)
        try expectOneMoment(content("mmkv/settings", in: report), content("mmkv/settings.crc", in: report))
      }
    }
  }
}

/// Runs a body while a thread for each of some changes makes it again and again, each time with the next number.
private func repeating(_ changes: [@Sendable (Int) -> Void], during body: () throws -> Void) rethrows {
  let stop = Mutex(false)
  let running = DispatchGroup()
  for change in changes {
    running.enter()
    Thread {
      var number = 0
      while !stop.withLock({ $0 }) {
        number += 1
        change(number)
      }
      running.leave()
    }.start()
  }
  defer {
    stop.withLock { $0 = true }
    running.wait()
  }
  try body()
}

private func overwrite(_ path: String, _ bytes: [UInt8]) {
  let file = open(path, O_WRONLY)
  _ = bytes.withUnsafeBytes { pwrite(file, $0.baseAddress, $0.count, 0) }
  close(file)
}
