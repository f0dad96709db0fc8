import AppContainer
import AppStores
import FileSystem
import Formats
import GRDB

/// What the framework that made a database stores in it, under the framework's names. Secrets are redacted.
public struct DatabaseDescription: Sendable, Codable, Equatable {
  /// What made the database.
  public enum Framework: String, Sendable, Codable {
    case coreData = "core-data"
    case room, grdb
  }

  /// A property of the database, such as the version of its model.
  public struct Fact: Sendable, Codable, Equatable {
    /// What it is, and its value as text.
    public var name: String, value: String

    package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
  }

  /// An entity or a table of the app.
  public struct Entity: Sendable, Codable, Equatable {
    /// Its number of rows; nil when it has no table.
    public var name: String, rows: Int?
    /// The entity that it inherits from, and shares a table with.
    public var parent: String?

    package init(name: String, rows: Int?, parent: String? = nil) {
      (self.name, self.rows, self.parent) = (name, rows, parent)
    }
  }

  /// What made it.
  public var framework: Framework
  /// What it is in a few words, such as `Core Data store, model Notes 2`.
  public var summary: String
  /// What the framework's own tables say, and what the database holds.
  public var facts: [Fact] = [], entities: [Entity] = []
  /// What may keep the app from opening the database, or loses data.
  public var warnings: [String] = []

  package init(_ framework: Framework, summary: String) {
    (self.framework, self.summary) = (framework, summary)
  }
}

/// A database to describe: a private copy of it, and what belongs to the live one.
package struct DescribedDatabase {
  /// Where Core Data stores large values, in the directory that belongs to a database.
  package static let externalDataFolder = "_EXTERNAL_DATA"

  /// A read-only connection to the copy.
  package let db: Database
  /// The path in the container.
  package let path: ContainerPath
  /// The sizes of the files in its directory of external binary data, by name; nil when there is no such directory.
  package let externalFiles: [String: UInt64]?
  package let configuration: ContainerConfiguration
  package let redactor: Redactor

  package init(
    _ db: Database, path: ContainerPath, externalFiles: [String: UInt64]?,
    configuration: ContainerConfiguration, redactor: Redactor
  ) {
    (self.db, self.path, self.externalFiles) = (db, path, externalFiles)
    (self.configuration, self.redactor) = (configuration, redactor)
  }

  /// The name of the database in `drydock.yaml`, if it has one.
  package var name: String? {
    configuration.databases.filter { $0.value.contains(path) }.keys.min()
  }
}

extension DatabaseDescription {
  /// Describes a database that a known framework made; nil for others. Nothing that the content of the database causes is thrown:
  /// what is corrupt becomes a warning.
  package static func of(_ database: DescribedDatabase) throws -> DatabaseDescription? {
    try DatabaseDescription(coreData: database) ?? DatabaseDescription(room: database)
      ?? DatabaseDescription(grdb: database)
  }
}
