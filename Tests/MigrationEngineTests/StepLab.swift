import ContainerTransaction
import FileSystem
import Formats
import Foundation
import Testing

@testable import MigrationEngine

/// One step, what the app writes afterwards, and the step's revert, on a stage that is discarded.
struct StepLab {
  let stage: StagedContainer
  private let operation: any MigrationAction
  private var recorded = DownValues()

  init(_ lab: Lab, _ step: String) throws {
    try lab.migration("0001_test.yaml", "steps:\n  - " + step + "\n")
    let first = try lab.catalog().migrations.first?.steps.first
    operation = try #require(first).operation
    stage = try DiscardedStage(on: lab.container, options: lab.options)
  }

  var reversal: Reversal { operation.reversal }

  mutating func apply() throws -> [String] {
    var recorded = DownValues()
    let notes = try operation.apply(to: stage, &recorded)
    // As the undo entry stores it: a value that is lost in coding fails the test.
    self.recorded = try JSONDecoder().decode(DownValues.self, from: JSONEncoder().encode(recorded))
    return notes
  }

  func revert(withDownValues: Bool = true) throws -> [String] {
    try operation.revert(on: stage, withDownValues ? recorded : nil)
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
  /// Runs steps as the only migration of a container of version 0, on a stage that is thrown away.
  ///
  /// - Parameter look: looks at the stage and the remarks.
  func tried<T>(_ steps: String, _ look: (StagedContainer, [String]) throws -> T) throws -> T {
    try migration("0001_test.yaml", "steps:\n" + Self.list(steps))
    let catalog = try catalog()
    return try self.look { stage in
      _ = try Baseline.set(0, catalog: catalog, on: stage, stamp: stamp)
      let report = try Migrator.run(MigrationStatus(catalog, of: stage), on: stage, stamp: stamp)
      return try look(stage, report.migrations.first?.notes ?? [])
    }
  }

  /// The text of the error that steps end with.
  func failing(_ steps: String) -> String { failure { try tried(steps) { _, _ in } }.text }

  /// Steps end with an error with all of these texts.
  func expectFailing(
    _ steps: String, _ texts: String..., start: String = "", sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let error = failing(steps)
    let isExpected = error.hasPrefix(start) && texts.allSatisfy(error.contains)
    #expect(isExpected && error != "no error", "\(error)", sourceLocation: sourceLocation)
  }
}
