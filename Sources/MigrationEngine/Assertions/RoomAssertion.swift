import AppFrameworks
import AppStores
import ContainerTransaction
import Formats
import GRDB

/// `room: {database, schema}`: Room would open the database with an exported schema, which is a file of the migration.
struct RoomAssertion: AssertionBody {
  private let database: NamedDatabase
  private let schema: RoomSchema

  init(_ arguments: YAMLNode, _ files: MigrationFiles) throws {
    let reader = try YAMLReader(arguments, what: "room", keys: ["database", "schema"])
    database = try NamedDatabase(reading: reader)
    let file = try reader.required("schema")
    let path = try file.text("`schema`")
    schema = try RoomSchema(files.bytes(of: path, namedAt: file.position), file: files.display(path))
  }

  var demandsSomething: Bool { true }

  func observe(_ stage: StagedContainer, isBefore: Bool) throws -> Observation {
    guard let place = try database.place(on: stage) else { return .noDatabase(database.name) }
    return try stage.readDatabase(at: place) { db in
      .room(
        try schema.differences(in: db),
        version: try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0)
    }
  }

  func judge(_ now: Observation, before: Observation?, _ redactor: Redactor) -> Verdict {
    switch now {
    case .noDatabase(let name, _):
      return .notRun("the database \(name) is not in the container, so this could not be checked")
    case .room(let differences, let version):
      if !differences.isEmpty {
        return .failed(RoomSchema.failure(differences, version: schema.version).message)
      }
      if version != schema.version {
        return .failed(
          "the user_version of the database \(database.name) is \(version), not \(schema.version)")
      }
      return .passed
    default: return .failed("the database \(database.name) was not read")
    }
  }
}
