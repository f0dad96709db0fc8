@testable import ArchiveManifest
import ContainerTransaction
import Foundation
import Testing

/// Restores in every combination of what the archive says of a path, what is live there, what the restore acts on and
/// its options: each combination is a path of one container, and all must come out as the model says.
@Suite struct RestoreMatrixTests {
  typealias Node = RestoreModel.Node

  /// What an archive has of a combination's path `x`: nodes by what follows its name.
  struct Stored {
    var nodes: [String: Node] = [:]
    var excluded: [String] = []
    var skipped: SkippedPath.Reason?
  }

  private static func plain(_ content: RestoreModel.Content) -> Node { Node(content: content) }
  private static func flagged(_ content: RestoreModel.Content) -> Node {
    Node(content: content, isFlagged: true)
  }

  static let stored: [Stored] = [
    Stored(nodes: ["": plain(.file("archive"))]),
    Stored(nodes: ["": plain(.directory), "/c": plain(.file("archive"))]), Stored(nodes: ["": plain(.link)]),
    Stored(nodes: ["": plain(.database(1))]), Stored(nodes: ["": flagged(.file("archive"))]),
    Stored(nodes: ["": flagged(.database(1))]),
    Stored(nodes: ["": flagged(.directory), "/c": plain(.file("archive"))]),
    Stored(nodes: ["": plain(.directory), "/c": flagged(.file("archive")), "/n": plain(.file("archive"))]),
    Stored(nodes: ["": plain(.directory), "/n": plain(.file("archive"))], excluded: ["/c"]),
    Stored(excluded: [""]), Stored(skipped: .unstable), Stored(nodes: ["": plain(.fifo)]), Stored(),
  ]

  /// What is live at `x`; nil is what the archive was made of.
  static let live: [[String: Node]?] = [
    nil, [:], ["": plain(.file("live"))], ["": flagged(.file("live"))],
    ["": plain(.file("archive"))], ["": plain(.link)],
    ["": plain(.database(2))], ["": flagged(.database(2))],
    ["": plain(.fifo)], ["": plain(.directory)],
    [
      "": plain(.directory), "/c": plain(.file("live")), "/n": plain(.file("live")),
      "/d": plain(.directory), "/d/e": plain(.database(2)),
    ],
    ["": flagged(.directory), "/c": plain(.file("live")), "/n": plain(.file("live"))],
    ["": plain(.directory), "/c": flagged(.file("live")), "/n": plain(.file("live")), "/f": plain(.fifo)],
  ]

  enum Reach: String, CaseIterable { case all, directory, eachPath, files, databases, settings }

  @Test func everyOption() throws {
    let matrix = try RestoreMatrix(Self.stored, Self.live, storesExcluded: true)
    for bits in 0..<8 { try matrix.check(model(matrix, .all, bits), seed: bits) }
  }

  /// A scope decides nothing that the options decide: none of them, and all.
  @Test func everyScope() throws {
    let matrix = try RestoreMatrix(Self.stored, Self.live, storesExcluded: true)
    for reach in Reach.allCases.dropFirst() {
      for bits in reach == .files || reach == .eachPath ? [0, 7] : [7] {
        try matrix.check(model(matrix, reach, bits), seed: bits)
      }
    }
  }

  @Test func withoutWhatIsExcluded() throws {
    let matrix = try RestoreMatrix(Self.stored, Self.live, storesExcluded: false)
    try matrix.check(model(matrix, .all, 2), seed: 2)
  }

  private func model(_ matrix: RestoreMatrix, _ reach: Reach, _ bits: Int) -> RestoreModel {
    var model = matrix.model
    model.scope = matrix.scope(reach)
    model.keepExtra = bits & 1 != 0
    model.overwriteExcluded = bits & 2 != 0
    model.includeExcluded = bits & 4 != 0
    return model
  }
}
