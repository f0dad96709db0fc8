import AppContainer
import ContainerTransaction
import Foundation
import GRDB
@testable import MigrationEngine

extension Lab {
  static let place = Lab.newDatabase

  /// Changes the database as its own tool would.
  func change(_ sql: String) throws {
    let queue = try DatabaseQueue(path: directory("container/\(Self.place)"))
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  /// Writes a file beside the container.
  func writeHost(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: directory(name)))
  }

  /// Another tool's files for the database `notes`, which are named from the folder of migrations on.
  func files(_ files: [String: String]) throws {
    for (name, text) in files { try migration(name, text) }
  }

  func catalog(_ format: MigrationTool.Format) throws -> MigrationCatalog {
    try MigrationCatalog.load(directory("migrations"), tool: MigrationTool(format, database: "notes"))
  }

  func plan(_ format: MigrationTool.Format) throws -> MigrationStatus {
    let catalog = try catalog(format)
    return try Transaction.inspect(try container) { try MigrationStatus(catalog, of: $0) }
  }

  @discardableResult
  func migrate(
    _ format: MigrationTool.Format, to target: Int? = nil, allowingOutOfOrder: Bool = false
  ) throws -> MigrationReport {
    let catalog = try catalog(format)
    return try Transaction.run(on: try container, .migrate, summary: "test") { stage in
      let plan = try MigrationStatus(catalog, of: stage, allowingOutOfOrder: allowingOutOfOrder)
      return try Migrator.run(plan, to: target, on: stage, stamp: stamp)
    }.value
  }

  func baseline(_ format: MigrationTool.Format, _ version: Int) throws {
    let catalog = try catalog(format)
    _ = try Transaction.run(on: try container, .baseline, summary: "test") { stage in
      try Baseline.set(version, catalog: catalog, on: stage, stamp: stamp)
    }
  }

  /// The one column of a query's rows, as text.
  func column(_ sql: String) throws -> [String] {
    try query(Self.place, sql).map { row in
      let value: DatabaseValue = row[0]
      return String.fromDatabaseValue(value) ?? Int.fromDatabaseValue(value).map(String.init) ?? ""
    }
  }

  func tables() throws -> [String] {
    try column(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
  }

  func allProblems(_ format: MigrationTool.Format) throws -> [String] {
    try MigrationCatalog.read(directory("migrations"), tool: MigrationTool(format, database: "notes"))
      .problems
      .map { $0.description.replacing(directory("migrations") + "/", with: "") }
  }
}
