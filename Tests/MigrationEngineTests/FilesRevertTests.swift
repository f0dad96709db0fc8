import FileSystem
import Foundation
import TestSupport
import Testing

@testable import MigrationEngine

/// Operations on files, and scripts, are reverted without down steps.
@Suite struct FilesRevertTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private static let files = ["a", "b", "d/1", "d/s/2", "flagged"]

  private static func prepare(_ lab: Lab) throws {
    for file in files { try lab.write(try ContainerPath(file), file) }
    try ExtendedAttributes.set("user.com.apple.MobileBackup", [1], of: Array(lab.path("flagged").utf8))
  }

  private func upAndDown(
    _ steps: String, app: (Lab) throws -> Void = { _ in }
  ) throws -> (notes: [String], differences: [String]) {
    try Self.prepare(lab)
    let before = try lab.tree()
    try lab.run(steps)
    try app(lab)
    let notes = try lab.revert()
    let after = try lab.tree().without("Library/Application Support")
    return (notes, after.differences(from: before, comparing: TreeListing.timeless))
  }

  @Test(
    arguments: [
      "files.copy: {from: a, to: new/place/a}",
      "files.copy: {from: d, to: b, if-exists: replace}",
      "files.copy: {from: z, to: b}",
      "files.copy: {from: a, to: b, if-exists: keep}",
      "files.copy: {from: ['d/*', a], to: new/place}",
      "files.move: {from: ['d/*', a], to: new/place}",
      "files.move: {from: ['[ab]'], to: d/s}",
      "files.create-directory: {path: one/two, mode: 0o700}",
      "files.create-directory: {path: d}",
      "files.create-directory: {path: a, if-exists: replace}",
      "files.write: {path: one/two, text: x}",
      "files.write: {path: a, text: x, mode: 0o600, if-exists: replace}",
      "files.write: {path: d, text: x, if-exists: replace}",
      "files.set-backup-exclusion: {path: [a, d, flagged], excluded: true}",
      "files.set-backup-exclusion: {path: [a, flagged], excluded: false}",
      "files.set-protection: {path: [a, d, '**/2'], class: complete}",
    ])
  func whatWasThereComesBack(_ step: String) throws {
    try Self.prepare(lab)
    try lab.expectComesBack(step)
  }

  @Test(
    arguments: [
      ("files.copy: {from: a, to: new}", "new", "`new` was changed since: left unchanged"),
      ("files.write: {path: b, text: x, if-exists: replace}", "b", "`b` was changed since: left unchanged"),
      ("files.copy: {from: d, to: e}", "e/1", "`e` was changed since: left unchanged"),
      ("files.create-directory: {path: e}", "e/1", "`e` was changed since: left unchanged"),
      ("files.move: {from: ['d/*', a], to: e}", "e/new", "`e/new` was written since: left unchanged"),
      ("files.copy: {from: ['d/*', a], to: e}", "e/new", "`e/new` was written since: left unchanged"),
    ])
  func whatTheAppChangedSinceStays(_ step: String, _ path: String, _ note: String) throws {
    let result = try upAndDown("  - \(step)\n") { try $0.write(try ContainerPath(path), "of the app") }
    #expect(result.notes.count == 1 && result.notes.first?.hasSuffix(note) == true, "\(result.notes)")
    #expect(result.differences.contains { $0.hasPrefix("\(path):") }, "\(result.differences)")
  }

  /// There was nothing to move: what the new version writes is what the old one would have had.
  @Test func whatIsNewMovesBack() throws {
    let result = try upAndDown("  - files.move: {from: z, to: y}\n") { try $0.write("y", "of the app") }
    #expect(result.notes == [] && result.differences.count == 1 && result.differences[0].hasPrefix("z:"))
  }

  /// The file was replaced by a new one, which had neither the mode nor the attributes.
  @Test func aPatchWithoutACopyLeavesTheMetadata() throws {
    for (file, text) in [("same.json", "{\"a\": 2}"), ("other.json", "{\"a\": 1}")] {
      try lab.write(try ContainerPath(file), text)
      let full = lab.directory("container/" + file)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: full)
      try ExtendedAttributes.set("user.test", [1], of: Array(full.utf8))
    }
    let before = try lab.tree()
    let step = "  - files.patch: {path: '*.json', patch: [{op: replace, path: /a, value: 2}]}\n"
    try lab.migration("0001_patch.yaml", "steps:\n" + step)
    try lab.migration("0002_other.yaml", step: "files.create-directory: {path: made}")
    try lab.baseline(0)
    try lab.migrate(to: 1)
    func revert() throws {
      #expect(try lab.revert(to: 0) == [])
      let after = try lab.tree().without("Library/Application Support")
      #expect(after.differences(from: before, comparing: TreeListing.timeless) == [])
    }
    // The undo entry has no copy of `same.json`, which the step did not change.
    try revert()
    // Nor has the redo of two transactions one of any file.
    try lab.migrate(to: 1)
    try lab.migrate()
    try lab.rollback(to: 0)
    try lab.rollback(redoing: true)
    try revert()
  }

  @Test func whatTwoStepsOfARunReplacedIsOnlyUndoneAsAWhole() throws {
    try Self.prepare(lab)
    let before = try lab.tree()
    try lab.run(
      "files.set-protection: {path: a, class: complete}", "files.copy: {from: b, to: a, if-exists: replace}")
    let after = try lab.tree()
    expectFailure("no copy of `a` is kept", code: .stepFailed) { try lab.rollback(down: true) }
    try lab.expectUntouched(since: after)
    try lab.rollback()
    let undone = try lab.tree().without("Library/Application Support")
    #expect(undone.differences(from: before, comparing: TreeListing.timeless) == [])
  }

  @Test func aScriptGoesBackByItsOwnDown() async throws {
    try await onThread {
      try Lab.with { lab in
        try lab.write("a", "a")
        try lab.migration("0001_test/up.sh", "#!/bin/sh\nmv a b\n")
        try lab.migration("0001_test/down.sh", "#!/bin/sh\ntest $DRYDOCK_DIRECTION = down && mv b a\n")
        try lab.migration("0001_test/migration.yaml", step: "script: {run: up.sh, down: down.sh}")
        try lab.baseline(0)
        try lab.migrate()
        #expect(try !lab.exists("a") && lab.exists("b"))
        #expect(try lab.catalog().migrations[0].irreversibleSteps.isEmpty)
        try lab.write("b", "newer")
        try lab.rollback(down: true)
        #expect(try lab.exists("a") && !lab.exists("b"))
        #expect(try lab.text("a") == "newer")
      }
    }
  }
}
