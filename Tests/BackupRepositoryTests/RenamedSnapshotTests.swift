@testable import ArchiveManifest
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BackupRepository

/// Snapshots of containers in which somebody renames meanwhile: nothing may be in neither place.
@Suite(.serialized) struct RenamedSnapshotTests {
  /// Two directories, one that a walk lists early and one late, with a few things in each.
  private func lab() throws -> Lab {
    let lab = try Lab()
    for directory in ["early", "late"] {
      for number in 0..<3 { try lab.write("\(directory)/file-\(number)", "\(directory) \(number)") }
      try lab.write("\(directory)/box/inner/deep", "deep in \(directory)")
      try lab.shell(
        "ln -s target '\(directory)/link'; ln \(directory)/file-1 \(directory)/twin", in: lab.root)
    }
    try lab.write("middle", "between the two")
    // What was made a moment before cannot be told from what is made now.
    usleep(30_000)
    return lab
  }

  private func contents(_ report: SnapshotReport) throws -> [String: String] {
    let archive = try Archive(path: report.path)
    var found: [String: String] = [:]
    try archive.manifest.entries { entry in
      if entry.kind == .directory { return }
      if let first = entry.hardLink { return found[entry.path.description] = found[first.description] }
      var bytes = entry.linkTarget ?? []
      if entry.isFile { try archive.content(of: entry) { bytes.append(contentsOf: $0) } }
      found[entry.path.description] = String(decoding: bytes, as: UTF8.self)
    }
    return found
  }

  @Test(arguments: ["file-0", "file-1", "link", "box"])
  func `Renamed at each moment of a snapshot, either way`(_ name: String) throws {
    let lab = try lab()
    let expected = try contents(lab.snapshot())
    let count = try lab.snapshot().entries
    for (from, to) in [("early", "late"), ("late", "early")] {
      // Every other moment, or every fourth, from another one in each run: several runs meet all.
      let step = TestExtent.isFull ? 2 : 4
      for moment in stride(from: .random(in: 1...step), through: count, by: step) {
        let (old, new) = ("\(lab.root)/\(from)/\(name)", "\(lab.root)/\(to)/moved")
        let report = try lab.incremental(after: moment) { rename(old, new) }
        #expect(!report.isIncomplete && report.entries == count, "\(from) \(moment) \(report.skipped)")
        #expect(try contents(report) == expected, "\(from) \(moment)")
        if moment % 5 == 0 { _ = try Verification.run(Archive(path: report.path), data: true) }
        rename(new, old)
      }
    }
  }

  @Test func `A log is rotated, a file is saved anew, two files change places: at each moment`() throws {
    let lab = try lab()
    let count = try lab.snapshot().entries
    let root = lab.root
    // Every moment, or every third, from another one in each run.
    let step = TestExtent.isFull ? 1 : 3
    for moment in stride(from: .random(in: 1...step), through: count, by: step) {
      try lab.write("late/log", "old lines")
      try lab.write("late/saved", "old")
      usleep(30_000)
      let report = try lab.incremental(after: moment) {
        rename(root + "/late/log", root + "/late/log.1")
        try? RawFiles.write(Array("new lines".utf8), to: Array((root + "/late/log").utf8))
        try? RawFiles.write(Array("new".utf8), to: Array((root + "/late/.temporary").utf8))
        rename(root + "/late/.temporary", root + "/late/saved")
        rename(root + "/early/file-0", root + "/early/aside")
        rename(root + "/late/file-0", root + "/early/file-0")
        rename(root + "/early/aside", root + "/late/file-0")
      }
      let found = try contents(report)
      #expect(!report.isIncomplete, "\(moment) \(report.skipped)")
      #expect(found["late/log"] == "old lines" && found["late/log.1"] == nil, "\(moment) \(found)")
      #expect(["old", "new"].contains(found["late/saved"]), "\(moment)")
      #expect(
        Set([found["early/file-0"], found["late/file-0"]]) == ["early 0", "late 0"], "\(moment) \(found)")
      try lab.remove("late/log.1")
    }
  }

  @Test func `A removed file's inode in another file is not taken for it`() throws {
    let lab = try lab()
    let root = lab.root
    try lab.write("late/old", "removed")
    usleep(30_000)
    let report = try lab.incremental(after: 2) {
      unlink(root + "/late/old")
      // What is made at the moment of the list cannot be told from what is in it.
      usleep(30_000)
      for number in 0..<20 {
        try? RawFiles.write(Array("other".utf8), to: Array((root + "/early/new-\(number)").utf8))
      }
    }
    let found = try contents(report)
    #expect(!report.isIncomplete && found["late/old"] == nil && !found.values.contains("other"))
  }

  @Test func `A database that is renamed meanwhile is named, and a restore keeps it`() throws {
    let lab = try lab()
    try lab.sql("late/notes.sqlite", "CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    usleep(30_000)
    let root = lab.root
    let report = try lab.incremental(after: 2) {
      rename(root + "/late/notes.sqlite", root + "/early/notes.sqlite")
    }
    #expect(report.isIncomplete)
    #expect(
      Set(report.skipped.map(\.description)) == ["late/notes.sqlite unstable", "early/notes.sqlite unstable"])
    #expect(try lab.restore(report.path).value.removed.isEmpty)
    #expect(try lab.sql("early/notes.sqlite", "SELECT a FROM t") == "1\n")
  }

  @Test(arguments: [0.03, 0.002])
  func `Renamed back and forth by another process, every few milliseconds`(_ pause: Double) throws {
    let lab = try Lab()
    try lab.shell(
      "mkdir a z; (cd a; seq -f a-%g 150 | xargs touch); (cd z; seq -f z-%g 150 | xargs touch); echo only >a/it",
      in: lab.root)
    let script = """
      import os, sys, time
      a, z, pause = sys.argv[1] + "/a/it", sys.argv[1] + "/z/it", float(sys.argv[2])
      print("ready", flush=True)
      while True:
          os.rename(a, z); time.sleep(pause)
          os.rename(z, a); time.sleep(pause)
      """
    let mover = try Command.spawn(Tools.system("python3"), ["-c", script, lab.root, "\(pause)"])
    try mover.waitForLine("ready")
    var checked = 0
    for number in 0..<6 {
      let report = try lab.snapshot()
      let kinds = try Archive(path: report.path).manifest.kinds().kinds
      let stored = [kinds["a/it"], kinds["z/it"]].compactMap { $0 }
      #expect(stored.count == 1 || report.isIncomplete, "\(number): \(stored.count) of it")
      #expect(kinds.count >= 303)
      if report.isIncomplete, checked < 3 {
        checked += 1
        mover.kill(SIGSTOP)
        let removed = try lab.dryRun(report.path).value.removedPaths
        #expect(stored.count == 1 || removed.isEmpty, "\(number): \(removed) \(report.skipped)")
        mover.kill(SIGCONT)
      }
      try lab.remove("../repository/" + lastName(report.path))
    }
  }

  @Test func `A directory that changes at each listing is named, and a restore keeps its content`() throws {
    let lab = try lab()
    try lab.directory(in: "busy/first")
    let busy = lab.root + "/busy/"
    let number = Mutex(0)
    let report = try lab.snapshot {
      $0.seams.lists = { path in
        guard path.parent == "busy" else { return }
        let name = number.withLock {
          $0 += 1
          return $0
        }
        mkdir(busy + "\(name)", 0o700)
      }
    }
    let named = report.skipped.map(\.description)
    #expect(report.isIncomplete && named.contains("busy unstable") && !named.contains("early unstable"))
    _ = try Verification.run(Archive(path: report.path), data: true)
    try lab.write("busy/extra", "kept")
    try lab.write("early/extra", "removed")
    let outcome = try lab.restore(report.path)
    #expect(try lab.read("busy/extra") == "kept" && outcome.value.removedPaths == ["early/extra"])
  }
}

extension SkippedPath {
  fileprivate var description: String { "\(path) \(reason.rawValue)" }
}
