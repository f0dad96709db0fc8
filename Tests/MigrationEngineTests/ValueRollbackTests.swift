import Foundation
import Testing

@testable import MigrationEngine

/// All operations on values in one migration, taken back by its steps.
@Suite struct ValueRollbackTests {
  private static let migration = """
    steps:
      - defaults.move: {to: {suite: group.notes}, keys: [theme, size], if-exists: replace}
      - defaults.copy: {from: {suite: group.notes}, keys: {theme: oldTheme}}
      - defaults.patch: {key: editor, patch: [{op: move, from: /font, path: /face}, {op: add, path: /list/-, value: 3}]}
      - defaults.document-migrate: {key: session, versions: {2: {defaults: {colour: none}}}}
      - defaults.move-to-file: {key: drafts, to: Documents/new/drafts.json, format: json}
      - files.patch: {path: Documents/index.json, patch: [{op: remove, path: /b}]}
      - files.patch: {path: Documents/index.json, patch: [{op: add, path: /c, value: [1]}]}

    """

  private let lab: Lab

  init() throws {
    lab = try Lab()
    lab.configuration.defaults = ["group.notes": Lab.group]
    try lab.set([
      "theme": "dark", "size": 14, "editor": ["font": "Menlo", "list": [1, 2]],
      "session": #"{ "version": 1, "data": { "name": "n" } }"#, "drafts": ["a": [1.5, true]],
    ])
    try lab.write(Lab.group, settings: ["size": 9])
    try lab.write("Documents/index.json", "{ \"a\":1.0 ,\n \"b\" : [ ] }")
    try lab.migration("0001_values.yaml", Self.migration)
    try lab.baseline(0)
  }

  @Test func stepsGiveBackWhatWas() throws {
    let before = try lab.tree()
    try lab.migrate()
    #expect(try lab.exists("Documents/new/drafts.json"))
    let report = try lab.rollback(down: true)
    #expect(report.migrations.count == 1 && report.notes.isEmpty)
    let changed = try lab.tree().differences(from: before)
    // Settings files are written anew, and directories had names come and go: their times, and nothing else; of the
    // JSON file not even that.
    #expect(changed.allSatisfy { $0.contains("modified was") && !$0.contains("index.json") }, "\(changed)")
    #expect(try lab.look { try $0.settings(Lab.group) } == ["size": 9])
    #expect(try lab.settings()?["session"] == #"{ "version": 1, "data": { "name": "n" } }"#)
    #expect(try lab.settings()?.count == 5)
  }

  @Test func whatTheAppWroteSinceStays() throws {
    try lab.migrate()
    var values = try #require(try lab.settings())
    values["editor"] = ["face": "Courier", "list": [0, 1, 2, 3], "new": true]
    values["oldTheme"] = "mine"
    try lab.set(values)
    try lab.write(Lab.group, settings: ["theme": "light", "size": 15, "more": 1])
    try lab.write("Documents/new/drafts.json", "{\"a\": []}")
    try lab.write("Documents/index.json", #"{"a": 2, "c": [1], "z": 0}"#)
    let notes = try lab.revert()
    let after = try #require(try lab.settings())
    #expect(after["theme"] == "light" && after["size"] == 15 && after["drafts"] == ["a": []])
    #expect(after["editor"] == ["font": "Courier", "list": [0, 1, 2, 3], "new": true])
    #expect(after["oldTheme"] == "mine")
    let index = FileManager.default.contents(atPath: lab.path("Documents/index.json")) ?? Data()
    #expect(String(decoding: index, as: UTF8.self) == #"{"a": 2, "b": [ ], "z": 0}"#)
    #expect(
      notes.count == 2 && notes.allSatisfy { $0.hasPrefix(lab.directory("migrations/0001_values.yaml:")) },
      "\(notes)")
  }
}
