import ContainerTransaction
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// A restore reads of an archive what it needs, and a rollback gives every flag back.
@Suite struct RestoreEconomyTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// The archives of a chain are read in their order: few frames are decoded by several threads, and none twice by one.
  @Test func eachFrameOfAChainIsReadOnce() throws {
    var random = SeededRandom(seed: 4)
    let size = 3 << 20
    for number in 0..<24 { try lab.write("f\(number)", random.bytes(size)) }
    var sizes = [try lab.incremental().archiveBytes]
    var newest = ""
    for _ in 0..<5 {
      for number in 0..<24 {
        // Three blocks of most files.
        for _ in 0..<Int.random(in: 0...3, using: &random) {
          try lab.overwrite("f\(number)", at: .random(in: 0..<size, using: &random))
        }
      }
      let report = try lab.incremental()
      #expect(report.header.kind == .incremental)
      sizes.append(report.archiveBytes)
      newest = report.path
    }
    let target = lab.directory("restored")
    let read = try lab.restore(newest, to: target).value.bytesRead
    let total = sizes.reduce(0, +)
    // The files are read in five groups: each may begin and end in a frame of 4 MiB that another one decodes, too. As many
    // threads at most each decode the frames of the small archives.
    let twice = UInt64(5 * 2 * 4 << 20) + 4 * sizes.dropFirst().reduce(0, +)
    #expect(read > total / 2 && read < total + twice, "\(read) of \(total)")
    #expect(try TreeListing(target).differences(from: TreeListing(lab.root)) == [])
  }

  @Test func whatIsProvedUnchangedIsNotRead() throws {
    for name in ["a", "same", "touched", "replaced"] { try lab.write(name, "content") }
    try lab.shell("ln a b", in: lab.root)
    try lab.sql("db", "CREATE TABLE t (a)")
    try lab.sql("wal.db", "PRAGMA journal_mode=WAL; CREATE TABLE t (a)")
    try lab.shell(
      Lab.leavingTheLog("PRAGMA journal_mode=WAL; CREATE TABLE t (a)")
        .replacing("db.sqlite", with: "log.db"), in: lab.root)
    let archive = try lab.snapshot().path
    usleep(20_000)
    #expect(try lab.compared(with: archive) == [])
    // They are too young to be trusted, or all is to be read.
    let all: [ContainerPath] = ["a", "b", "db", "log.db", "replaced", "same", "touched", "wal.db"]
    #expect(try lab.compared(with: archive) { $0.transaction.seams.settling = 60 } == all)
    #expect(try lab.compared(with: archive) { $0.checksContents = true } == all)

    // Times that were set back, a copy with all times, and a log that grew.
    try lab.shell(
      """
      touch -r touched ../time; printf CONTENT > touched; touch -r ../time touched
      cp -p replaced other; mv other replaced
      """, in: lab.root)
    try lab.shell(
      Lab.leavingTheLog("INSERT INTO t VALUES (1)")
        .replacing("db.sqlite", with: "log.db"), in: lab.root)
    try lab.sql("db", "INSERT INTO t VALUES (1)")
    #expect(try lab.compared(with: archive) == ["db", "log.db", "replaced", "touched"])
  }

  @Test func theFlagOfADirectoryComesBackWithARollback() throws {
    try lab.write("folder/file", "archive")
    let archive = try lab.snapshot().path
    try lab.write("folder/file", "live")
    try Directory(lab.root).setNoDump(true, of: "folder")
    // Nothing in it is left to be kept out by the flag, so that it goes.
    try lab.restore(archive) { $0.overwriteExcluded = true }
    #expect(try lab.read("folder/file") == "archive")
    #expect(try Directory(lab.root).status("folder")?.isNoDump == false)
    _ = try Transaction.rollback(lab.container())
    #expect(try lab.read("folder/file") == "live")
    #expect(try Directory(lab.root).status("folder")?.isNoDump == true)
  }
}
