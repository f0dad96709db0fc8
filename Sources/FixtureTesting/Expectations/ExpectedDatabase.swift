import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// A database that an expectation is about: by its name in `drydock.yaml`, or by its path.
struct ExpectedDatabase: Sendable {
  let name: String
  private let path: ContainerPath

  init(_ name: String, _ position: YAMLPosition) throws {
    self.name = name
    guard let path = try? ContainerPath(name), !path.isRoot else {
      throw position.error("`\(name)` is neither a database's name in drydock.yaml nor a path in a container")
    }
    self.path = path
  }

  /// The places that it may be in.
  private func places(_ container: Container) -> [ContainerPath] {
    container.configuration.databases[name] ?? [path]
  }

  /// Where it is: of several places the first that there is.
  func path(in stage: StagedContainer) throws -> ContainerPath {
    let places = places(stage.container)
    return try places.first { try stage.live.status($0) != nil } ?? places.first ?? path
  }

  /// Whether it may be at a path.
  func isAt(_ path: ContainerPath, _ container: Container) -> Bool { places(container).contains(path) }
}

/// Rows of a table that the migrations may take away: `lost-rows: {DATABASE: {TABLE: COUNT}}`.
package struct ExpectedLoss: Sendable {
  private let database: ExpectedDatabase
  /// The table's name.
  package let table: String
  /// How many rows at most.
  package let rows: Int
  /// Where it is announced.
  package let position: YAMLPosition

  static func all(_ node: YAMLNode?) throws -> [ExpectedLoss] {
    try node?.pairs("`lost-rows`").pairs.flatMap { pair in
      let database = try ExpectedDatabase(pair.key.source, pair.keyPosition)
      return try pair.value.pairs("the tables of a database").pairs.map { table in
        let number = try table.value.integer("the number of lost rows")
        guard let rows = Int(exactly: number), rows > 0 else {
          throw table.value.position.error("the number of lost rows is 1 or more, not \(number)")
        }
        return ExpectedLoss(
          database: database, table: table.key.source, rows: rows, position: table.keyPosition)
      }
    } ?? []
  }

  /// Whether the table is in the database at a path.
  func isOf(_ path: ContainerPath, _ container: Container) -> Bool { database.isAt(path, container) }
}
