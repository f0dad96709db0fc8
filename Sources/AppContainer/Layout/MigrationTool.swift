import Formats

/// Another tool whose folder of migrations is used as it is. Such a folder is for one database.
package struct MigrationTool: Sendable, Equatable {
  /// Whose names, sections and table they are.
  package enum Format: String, CaseIterable, Sendable, Codable {
    case dbmate
    case golangMigrate = "golang-migrate"
    case goose
    case sqldelight
  }

  /// Whose files they are.
  package var format: Format
  /// The database that they are for, by its name in `drydock.yaml`.
  package var database: String

  /// A tool and its database.
  package init(_ format: Format, database: String) {
    (self.format, self.database) = (format, database)
  }

  /// Reads `{path: …, format: …, database: …}`, but for the path.
  init(_ node: YAMLNode, databases: [String]) throws {
    let reader = try YAMLReader(node, what: "`migrations`", keys: Self.keys)
    guard let format = try reader.choice("format", of: Format.self) else {
      throw reader.position.error(
        "`migrations` needs the key `format`; for Drydock's own files it is the path alone")
    }
    let database = try reader.required("database")
    let name = try database.text("`database`")
    guard databases.contains(name) else {
      throw database.position.error(
        "`databases` has no `\(name)`; " + NearestWord.hint(for: name, among: databases))
    }
    self.init(format, database: name)
  }

  static let keys = ["path", "format", "database"]
}
