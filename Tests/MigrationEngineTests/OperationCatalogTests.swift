import Foundation
import Testing

@testable import MigrationEngine

/// An operation is complete only with its guide, its generator and its Swift function: each list below is compared with the
/// operations that migrations can name.
@Suite("Every operation is documented, generated and callable") struct OperationCatalogTests {
  /// Operations that random migrations lack.
  private static let notGenerated: Set = [
    // It starts a program, which is slow; the tests of scripts cover it.
    "script",
    // The random containers have no keyed archive.
    "files.unarchive",
    // Nor a Core Data store.
    "coredata.rename-attribute", "coredata.add-attribute", "coredata.rename-entity", "coredata.add-entity",
    "coredata.convert",
  ]
  /// Operations whose arguments are lists of changes, patterns or formats: Swift plans write them with `.named(_:_:)`.
  private static let namedOnly: Set = [
    "defaults.patch", "defaults.document-migrate", "defaults.move-to-file", "files.patch", "files.unarchive",
    "files.set-protection", "vault.convert", "vault.move-to",
    // A plan has `.custom` instead.
    "script",
    // They read a file beside the migration, which a plan has not; `.named(_:_:)` runs `coredata.convert`.
    "coredata.rename-attribute", "coredata.add-attribute", "coredata.rename-entity", "coredata.add-entity",
    "coredata.convert",
  ]

  private let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private var operations: Set<String> { Set(Operations.named.keys) }

  private func lines(of path: String) throws -> [Substring] {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8).split(separator: "\n")
  }

  @Test("Each has a section in the guide \u{201C}Migrations\u{201D}")
  func sections() throws {
    let sections = try lines(of: "Sources/Drydock/Drydock.docc/Migrations.md").compactMap {
      $0.wholeMatch(of: /### (script|sql|[a-z]+\.[a-z-]+)/).map { String($0.1) }
    }
    #expect(Set(sections).symmetricDifference(operations) == [])
  }

  @Test("Each has a generator in random migrations, or a reason for none")
  func generators() {
    let generated = Set(RandomMigrations.generators.keys)
    #expect(generated.symmetricDifference(operations.subtracting(Self.notGenerated)) == [])
  }

  @Test("Each has a Swift function, or a reason for none")
  func functions() throws {
    let functions = try lines(of: "Sources/MigrationEngine/SwiftPlan/StageOperations.swift").compactMap {
      $0.firstMatch(of: #/\/\/\/ `(sql|[a-z]+\.[a-z-]+)`:? /#).map { String($0.1) }
    }
    #expect(Set(functions).symmetricDifference(operations.subtracting(Self.namedOnly)) == [])
  }
}
