import Foundation
import TestSupport
import Testing

@testable import ContainerTransaction
@testable import FileSystem

/// Edits that keep a file's size and modification time, at each moment of a transaction that replaces or removes the file.
@Suite struct QuietEditTests {
  private static let files = ["Documents/keep.txt": "keep", "Documents/gone.txt": "gone", "Library/x": "x"]
  private static let replaced: [ContainerPath] = ["Documents/keep.txt", "Documents/gone.txt"]

  private func change(_ staged: StagedContainer) throws {
    try staged.write(Array("the transaction's".utf8), to: "Documents/keep.txt")
    try staged.remove("Documents/gone.txt")
  }

  private func edit(_ ship: Ship, at point: FaultPoint, _ paths: [ContainerPath]) -> FaultInjection {
    FaultInjection { if $0 == point { for path in paths { try ship.editQuietly(path) } } }
  }

  @Test(
    arguments: [FaultPoint.staged, .checked, .treeBuilt, .synced], [CommitPreference.exchange, .inPlace])
  func stopsTheCommit(point: FaultPoint, commit: CommitPreference) throws {
    for path in Self.replaced {
      try Ship.withFiles(Self.files) { ship in
        let error = ship.failure {
          try ship.run(faults: edit(ship, at: point, [path]), commit: commit, change)
        }
        #expect(error?.code == .changedMeanwhile && error?.message.contains(path.description) == true)
        let texts = try Self.replaced.map(ship.text)
        #expect(texts == (path == Self.replaced[0] ? ["KEEP", "gone"] : ["keep", "GONE"]))
        let (stages, states) = (try ship.stages(), try ship.log().map(\.state))
        #expect(stages.isEmpty && states == [.discarded])
      }
    }
  }

  @Test(arguments: [FaultPoint.rewalked, .committed]) func isKeptAfterTheLastLook(point: FaultPoint) throws {
    try Ship.withFiles(Self.files) { ship in
      let outcome = try ship.run(
        faults: edit(ship, at: point, Self.replaced), commit: .exchange, change)
      #expect(outcome.conflicts == Self.replaced.sorted())
      #expect(try ship.text("Documents/keep.txt") == "the transaction's")
      let transaction = try #require(outcome.transaction).description
      let kept = try #require(try ship.state()).directory("conflict").directory(ContainerPath(transaction))
      #expect(try kept.contents("Documents/keep.txt") == Array("KEEP".utf8))
      #expect(try kept.contents("Documents/gone.txt") == Array("GONE".utf8))
    }
  }

  @Test(arguments: [FaultPoint.rewalked, .committed]) func stopsTheMoves(point: FaultPoint) throws {
    try Ship.withFiles(Self.files) { ship in
      let error = ship.failure {
        try ship.run(faults: edit(ship, at: point, Self.replaced), commit: .inPlace, change)
      }
      #expect(error?.code == .changedMeanwhile)
      let texts = try Self.replaced.map(ship.text)
      #expect(texts == ["KEEP", "GONE"])
      let (stages, reports) = (try ship.stages(), try Transaction.recover(ship.container()))
      #expect(stages.isEmpty && reports.isEmpty)
    }
  }

  @Test func isSeenByARecovery() throws {
    try Ship.withFiles(Self.files) { ship in
      let stop = FaultInjection { point in
        if point == .committed { try ship.editQuietly("Documents/keep.txt") }
        if point == .exchanged { throw CommitFaultTests.Stop() }
      }
      let outcome = try ship.run(faults: stop, commit: .exchange, change)
      #expect(!outcome.isFinished)
      let report = try #require(try Transaction.recover(ship.container()).first)
      #expect(report.outcome == .new && report.conflicts == ["Documents/keep.txt"])
    }
  }

  /// The commit links a file with another name that stays: that moves its change time, and is nobody's edit.
  @Test(arguments: [CommitPreference.exchange, .inPlace]) func ofAFileWithAnotherName(
    commit: CommitPreference
  ) throws {
    try Ship.withFiles(Self.files) { ship in
      try ship.live().link("Documents/keep.txt", in: ship.live(), to: "Library/other")
      let error = ship.failure {
        try ship.run(faults: edit(ship, at: .staged, [Self.replaced[0]]), commit: commit, change)
      }
      #expect(error?.code == .changedMeanwhile)
      let outcome = try ship.run(commit: commit, change)
      let other = try ship.text("Library/other")
      #expect(outcome.conflicts.isEmpty && other == "KEEP")
      try ship.rollback(commit: commit)
      let kept = try ship.text("Documents/keep.txt")
      #expect(kept == "KEEP")
    }
  }
}
