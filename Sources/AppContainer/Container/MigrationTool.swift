import Formats

/// Another tool whose migration folder is used unchanged. Such a folder is for one database.
package struct MigrationTool: Sendable, Equatable {
  package enum Format: String, CaseIterable, Sendable, Codable {
    case dbmate
    case golangMigrate = "golang-migrate"
    case goose
    case sqldelight
    case room
  }

  package var format: Format
  /// The database, by its name in `drydock.yaml`.
  package var database: String
  /// The directory of the schemas that Room exported.
  package var schemas: String?
  /// The directory of SQLDelight's `.sq` files.
  package var sources: String?

  package init(_ format: Format, database: String, schemas: String? = nil, sources: String? = nil) {
    (self.format, self.database, self.schemas, self.sources) = (format, database, schemas, sources)
  }

  /// Reads `{path: …, format: …, database: …}` except the path.
  init(_ node: YAMLNode, databases: [String], _ resolve: (String) -> String) throws {
    let reader = try YAMLReader(node, what: "`migrations`", keys: Self.keys)
    guard let format = try reader.choice("format", of: Format.self) else {
      throw reader.position.error(
        "`migrations` needs the key `format`; for Drydock's format write the path alone")
    }
    let database = try reader.required("database")
    let name = try database.text("`database`")
    guard databases.contains(name) else {
      throw database.position.error(
        "`databases` has no `\(name)`; " + NearestWord.hint(for: name, among: databases))
    }
    for (key, tool) in [("schemas", Format.room), ("sources", .sqldelight)] where tool != format {
      if let node = reader[key] {
        throw node.position.error("`\(key)` is for the format \(tool.rawValue), not for \(format.rawValue)")
      }
    }
    if format == .room { _ = try reader.required("schemas") }
    self.init(
      format, database: name, schemas: try reader.text("schemas").map(resolve),
      sources: try reader.text("sources").map(resolve))
  }

  static let keys = ["path", "format", "database", "schemas", "sources"]
}
