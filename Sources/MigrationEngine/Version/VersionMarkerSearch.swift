import AppContainer
import ContainerTransaction
import FileSystem
import GRDB

/// Where a container seems to keep the number of its own schema, for a configuration to start from.
package struct VersionMarkerSearch {
  /// A place and the number in it.
  package struct Finding: Equatable {
    package var place: AppContainer.Configuration.VersionMarker.Place
    package var number: Int
  }

  /// Settings first, then databases whose `user_version` is not 0, which is what it is when nobody sets it.
  package private(set) var findings: [Finding] = []

  /// - Parameter databases: the databases by name. What cannot be read says nothing.
  package init(_ stage: StagedContainer, databases: [(name: String, path: ContainerPath)]) {
    if let path = stage.container.standardDefaults, let root = try? stage.defaults(path)?.root {
      for (key, value) in root where Self.isAboutTheSchema(key) {
        guard case .integer(let number) = value, let number = Int(exactly: number), number >= 0 else {
          continue
        }
        findings.append(Finding(place: .defaults(key: key), number: number))
      }
    }
    for (name, path) in databases {
      let read = try? stage.readDatabase(at: path) { try Int.fetchOne($0, sql: "PRAGMA user_version") }
      guard let number = read ?? nil, number > 0 else { continue }
      findings.append(Finding(place: .userVersion(database: name), number: number))
    }
  }

  /// `dataSchemaVersion`, `db_version`, `lastMigration`: not `version`, which may be the app's.
  static func isAboutTheSchema(_ key: String) -> Bool {
    let name = key.lowercased().filter(\.isLetter)
    let subjects = ["schema", "data", "datamodel", "database", "db", "store", "storage", "migration"]
    return subjects.contains { name.hasSuffix($0 + "version") || name.hasSuffix("version" + "of" + $0) }
      || name.hasSuffix("schemaversionnumber") || name.hasSuffix("lastmigration")
  }
}
