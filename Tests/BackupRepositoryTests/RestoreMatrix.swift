@testable import ArchiveManifest
import AppContainer
import ContainerTransaction
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// A container with every combination in a directory of its own, the archive it is restored from, and what both are to the
/// model.
struct RestoreMatrix {
  private let lab: Lab
  private let archive: String
  private let source: TreeListing
  private(set) var model = RestoreModel()

  init(
    _ stored: [RestoreMatrixTests.Stored], _ live: [[String: RestoreModel.Node]?], storesExcluded: Bool
  ) throws {
    lab = try Lab(name: "source")
    try lab.sql("../1", "PRAGMA user_version=1; CREATE TABLE t(a)")
    try lab.sql("../2", "PRAGMA user_version=2; CREATE TABLE other(b)")
    var options = SnapshotOptions()
    options.includesExcluded = storesExcluded
    var copies: [String] = []
    for (s, kept) in stored.enumerated() {
      for (l, present) in live.enumerated() {
        do {
          let top = (s + l) % 3 == 0 ? "out" : "in"
          let place = "\(top)/\(s)-\(l)"
          for path in [top, place] {
            model.stored[path] = RestoreModel.Node(content: .directory)
            model.live[path] = model.stored[path]
          }
          try Self.make(kept.nodes, at: place + "/x", in: "source", lab)
          if let present {
            try Self.make(present, at: place + "/x", in: "live", lab)
          } else {
            copies.append(place)
          }
          for (rest, node) in present ?? kept.nodes { model.live[place + "/x" + rest] = node }
          let flagged = kept.nodes.filter(\.value.isFlagged).keys
          for (rest, node) in kept.nodes where node.content != .fifo {
            guard storesExcluded || !flagged.contains(where: rest.hasPrefix) else { continue }
            model.stored[place + "/x" + rest] = node
          }
          for rest in flagged + kept.excluded { model.excluded.insert(place + "/x" + rest) }
          for rest in kept.excluded {
            let path = try ContainerPath(place + "/x" + rest)
            options.missing.excluded.append(
              ExcludedPath(path: path, exclusion: Exclusion(rule: .pattern, origin: path, detail: "x")))
          }
          if let reason = kept.skipped {
            options.missing.skipped.append(SkippedPath(path: try ContainerPath(place + "/x"), reason: reason))
          }
          if kept.skipped != nil || kept.nodes[""]?.content == .fifo { model.skipped.insert(place + "/x") }
        }
      }
    }
    try lab.shell(
      "find live -exec touch -h -d 2021-01-01 {} +; find source -exec touch -h -d 2020-01-01 {} +")
    for place in copies {
      try lab.shell("[ ! -e source/\(place)/x ] || cp -a source/\(place)/x live/\(place)/x")
    }
    archive = try lab.take(options).path
    source = try TreeListing(lab.root)
  }

  private static func make(_ nodes: [String: RestoreModel.Node], at path: String, in root: String, _ lab: Lab)
    throws
  {
    let full = { (rest: String) in lab.directory("\(root)/\(path)\(rest)") }
    for root in ["source", "live"] {
      try lab.make((lab.directory(root + "/" + path) as NSString).deletingLastPathComponent)
    }
    for (rest, node) in nodes.sorted(by: { $0.key < $1.key }) {
      let bytes = Array(full(rest).utf8)
      switch node.content {
      case .directory: try lab.make(full(rest))
      case .file(let text): try RawFiles.write(Array(text.utf8), to: bytes)
      case .database(let number):
        try RawFiles.write(Array(RawFiles.read(Array(lab.directory(String(number)).utf8))), to: bytes)
      case .link:
        try FileManager.default.createSymbolicLink(atPath: full(rest), withDestinationPath: "../nowhere")
      case .fifo: try lab.shell("mkfifo '\(full(rest))'")
      }
      if node.isFlagged {
        try ExtendedAttributes.set("user.xdg.robots.backup", Array("false".utf8), of: bytes)
      }
    }
  }

  func scope(_ reach: RestoreMatrixTests.Reach) -> RestoreModel.Scope {
    switch reach {
    case .all: .all
    case .directory: .paths(["in"])
    case .eachPath:
      .paths(Set(model.stored.keys.filter { $0.hasSuffix("/x") && !model.excluded.contains($0) }))
    case .files: .stores([.files])
    case .databases: .stores([.databases])
    case .settings: .stores([.defaults])
    }
  }

  private func apply(_ model: RestoreModel, _ options: inout RestoreOptions) {
    (options.keepExtra, options.overwriteExcluded, options.includeExcluded) = (
      model.keepExtra, model.overwriteExcluded, model.includeExcluded
    )
    switch model.scope {
    case .all: break
    case .paths(let paths): options.scope = paths.sorted().compactMap { try? ContainerPath($0) }
    case .stores(let stores): options.stores = stores
    }
  }

  // MARK: Checking

  /// Restores all combinations without a conflict, and a few of those with one.
  func check(_ model: RestoreModel, seed: Int) throws {
    let conflicting = Set(model.conflicts(model.ends()).map { String($0.split(separator: "/x")[0]) }).sorted()
    var rest = model
    rest.live = model.live.filter { path, _ in
      !conflicting.contains { path == $0 || path.hasPrefix($0 + "/") }
    }
    let list = conflicting.map { "box/" + $0 }.joined(separator: " ")
    try lab.shell("rm -rf box .drydock-*; cp -a live box; rm -rf \(list.isEmpty ? "none" : list)")
    try checkRestore(rest)
    for (number, place) in conflicting.enumerated() where (number + seed) % 29 == 0 {
      try lab.shell("rm -rf box; mkdir -p box/\(place); rmdir box/\(place); cp -a live/\(place) box/\(place)")
      expectError(.conflict) { try lab.restore(archive, to: lab.directory("box")) { apply(model, &$0) } }
    }
  }

  private func checkRestore(_ model: RestoreModel) throws {
    let box = lab.directory("box")
    let change = { (options: inout RestoreOptions) in apply(model, &options) }
    let before = try TreeListing(box)
    let dry = try lab.dryRun(archive, to: box, change).value
    try expectSame(TreeListing(box), as: before, comparing: TreeListing.unread)
    let report = try lab.restore(archive, to: box, change).value
    #expect(
      dry.restored == report.restored && dry.removed == report.removed && dry.preserved == report.preserved)
    #expect(dry.restoredUnderExcluded == report.restoredUnderExcluded && dry.unchanged == report.unchanged)

    let after = try TreeListing(box)
    let ends = model.ends()
    #expect(model.conflicts(ends).isEmpty)
    let toArchive = Self.lines(after.differences(from: source)),
      toLive = Self.lines(after.differences(from: before))
    var wrong: [String] = []
    for (path, end) in ends.sorted(by: { $0.key < $1.key }) {
      let isDatabase = after[path].map { $0.size > 4000 } ?? false
      let differences: [String]
      switch end {
      case .archive: differences = (toArchive[path] ?? []).filter { !isDatabase || !$0.hasPrefix("modified") }
      case .live:
        let isDirectory = before[path]?.kind == .directory
        differences = (toLive[path] ?? []).filter { !isDirectory || !$0.hasPrefix("modified") }
      case .absent: differences = after[path] == nil ? [] : ["is there"]
      }
      wrong += differences.map { "\(path), to be \(end.rawValue): \($0)" }
    }
    wrong += after.paths.filter { ends[$0] == nil }.map { "\($0) came from nowhere" }
    wrong += Self.wrong(report, model, ends, changed: toLive, after)
    #expect(
      wrong == [],
      "keep \(model.keepExtra), overwrite \(model.overwriteExcluded), include \(model.includeExcluded)")

    let second = try lab.restore(archive, to: box, change)
    let moved = second.transaction == nil ? [] : try TreeListing(box).differences(from: after)
    #expect(moved == [])
    if report.restored.isEmpty && report.removed.isEmpty { return }
    _ = try Transaction.rollback(lab.container(box))
    #expect(try TreeListing(box).differences(from: before) == [])
  }

  /// What a report says that is not so.
  private static func wrong(
    _ report: RestoreReport, _ model: RestoreModel, _ ends: [String: RestoreModel.End],
    changed: [String: [String]], _ after: TreeListing
  ) -> [String] {
    var wrong: [String] = []
    let preserved = Set(report.preservedPaths), restored = Set(report.restoredPaths)
    for path in model.live.keys where model.isPreserved(path) {
      let isTold = preserved.contains(path) || RestoreModel.above(path).contains(where: preserved.contains)
      if !isTold { wrong.append("\(path) is preserved, and nobody is told") }
    }
    wrong += preserved.filter { !model.isPreserved($0) }.map { "\($0) is told to be preserved" }
    let gone = Set(model.live.keys.filter { ends[$0] == .absent })
    wrong += gone.symmetricDifference(report.removedPaths).map { "\($0) is told to be removed, or not told" }
    for path in restored where ends[path] != .archive { wrong.append("\(path) is told to be restored") }
    for path in changed.keys where ends[path] == .archive && after[path]?.kind != .directory {
      if !restored.contains(path) { wrong.append("\(path) is restored, and nobody is told") }
    }
    return wrong
  }

  private static func lines(_ differences: [String]) -> [String: [String]] {
    differences.reduce(into: [:]) { lines, line in
      guard let colon = line.firstRange(of: ": ") else { return }
      lines[String(line[..<colon.lowerBound]), default: []].append(String(line[colon.upperBound...]))
    }
  }
}
