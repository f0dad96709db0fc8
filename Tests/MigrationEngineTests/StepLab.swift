import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import Foundation
import Testing

@testable import MigrationEngine

/// One step, what the app writes afterwards, and the step's revert, on a stage that is discarded.
struct StepLab {
  let stage: StagedContainer
  private let operation: any MigrationAction
  private var recorded = PriorValues()

  init(_ lab: Lab, _ step: String) throws {
    try lab.migration("0001_test.yaml", "steps:\n  - " + step + "\n")
    let first = try lab.catalog().migrations.first?.steps.first
    operation = try #require(first).operation
    stage = try DiscardedStage(on: lab.container, options: lab.options)
  }

  mutating func apply() throws -> [String] {
    var recorded = PriorValues()
    let notes = try operation.apply(to: stage, &recorded)
    // As the undo entry stores it: a value that is lost in coding fails the test.
    self.recorded = try JSONDecoder().decode(PriorValues.self, from: JSONEncoder().encode(recorded))
    return notes
  }

  func revert(withPriorValues: Bool = true) throws -> [String] {
    try operation.revert(on: stage, withPriorValues ? recorded : nil)
  }

  func set(_ values: PropertyListDictionary, at path: ContainerPath = Lab.settings) throws {
    try stage.setDefaults(SettingsFile(format: .propertyList(.binary), root: values), at: path)
  }

  func write(_ path: ContainerPath, _ text: String) throws { try stage.write(Array(text.utf8), to: path) }
}

extension StagedContainer {
  /// The settings of a file; nil when there is none.
  func settings(_ path: ContainerPath = Lab.settings) throws -> PropertyListDictionary? {
    try defaults(path)?.root
  }

  /// A file's text; nil when there is none.
  func text(_ path: ContainerPath) throws -> String? {
    try status(of: path) == nil ? nil : String(decoding: read(path), as: UTF8.self)
  }
}

extension Lab {
  /// A step that was applied to a stage.
  func applied(_ step: String) throws -> StepLab {
    var stepLab = try StepLab(self, step)
    _ = try stepLab.apply()
    return stepLab
  }
  typealias Attempt = (notes: [String], code: DrydockError.Code?, error: String)

  /// Runs SQL as the only migration of a container with a database.
  static func attempt(
    _ sql: String, on schema: String, head: String = "", _ check: (Lab) throws -> Void = { _ in }
  ) throws -> Attempt {
    try with { lab in
      try lab.database(oldDatabase, schema)
      try lab.baseline(0)
      try lab.migration("0001_sql.sql", "-- drydock: database notes\n\(head)-- migrate:up\n" + sql)
      var notes: [String] = []
      let error = failure { notes = try lab.migrate().migrations.first?.notes ?? [] }
      try check(lab)
      return (notes, error.code, error.text)
    }
  }

  /// Runs steps and reverts them: every store is as it was.
  ///
  /// - Returns: whether they changed a store.
  @discardableResult
  func expectComesBack(_ steps: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> Bool {
    if try history() == nil { try baseline(0) }
    let before = try Stores(tree(), keys: deviceKeys)
    try run(steps)
    let isChanged = try Stores(tree(), keys: deviceKeys) != before
    #expect(try revert() == [], sourceLocation: sourceLocation)
    let differences = try Stores(tree(), keys: deviceKeys).differences(from: before)
    #expect(differences == [], sourceLocation: sourceLocation)
    return isChanged
  }

  /// Runs steps as the only migration of a container of version 0, on a stage that is thrown away.
  ///
  /// - Parameter look: looks at the stage and the remarks.
  func tried<T>(_ steps: String..., look: (StagedContainer, [String]) throws -> T) throws -> T {
    try migration("0001_test.yaml", steps: steps)
    let catalog = try catalog()
    return try self.look { stage in
      _ = try Baseline.set(0, catalog: catalog, on: stage, stamp: stamp)
      let report = try Migrator.run(MigrationStatus(catalog, of: stage), on: stage, stamp: stamp)
      return try look(stage, report.migrations.first?.notes ?? [])
    }
  }

  /// The settings that steps leave, on a stage that is thrown away.
  func settings(_ path: ContainerPath = settings, after steps: String) throws -> PropertyListDictionary? {
    try tried(steps) { stage, _ throws in try stage.settings(path) }
  }

  func failing(_ steps: String) -> String { failure { try tried(steps) { _, _ in } }.text }

  /// Steps end with an error with all of these texts.
  func expectFailing(
    _ steps: String, _ texts: String..., start: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) {
    expectFailure(texts, start: start, sourceLocation: sourceLocation) { try tried(steps) { _, _ in } }
  }
}

/// A step of a table: what is there before, and what it makes of that.
struct StepCase<State: Sendable>: CustomTestStringConvertible, Sendable {
  let step: String
  let before: State
  /// Nil when the step fails.
  var after: State?
  /// A part of the error, or of the notes.
  var says = ""

  var testDescription: String { step }

  static func gives(_ step: String, _ before: State, _ after: State, _ says: String = "") -> Self {
    Self(step: step, before: before, after: after, says: says)
  }

  static func fails(_ step: String, _ before: State, _ says: String) -> Self {
    Self(step: step, before: before, says: says)
  }
}
