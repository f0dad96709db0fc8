import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// A Core Data store that an operation names, with the model that it is changed to.
struct CoreDataTarget: Sendable {
  let database: NamedDatabase
  private let ifMissing: IfMissing

  init(_ reader: YAMLReader) throws {
    (database, ifMissing) = try (NamedDatabase(reading: reader), reader.ifMissing())
  }

  /// Changes the store in one transaction.
  ///
  /// - Parameter model: the model that the change leads to; nil when the schema stays.
  /// - Returns: notes; nil when there is no such database.
  func change(
    on stage: StagedContainer, to model: CoreDataModel?, _ body: (inout CoreDataSchema) throws -> [String]
  ) throws -> [String]? {
    try database.change(on: stage, ifMissing) { db in
      var notes: [String] = []
      let more = try MigrationTransaction.run(db, model: model, isPart: true) { store in
        guard store != nil else { throw StepFailure(message: "the database is not a Core Data store") }
        var schema = try CoreDataSchema(db)
        if model != nil, try db.tableExists("ANSCKRECORDMETADATA") {
          throw StepFailure(
            message:
              "CloudKit mirrors the store, and would not be told of this change: migrate it with the app itself"
          )
        }
        notes = try body(&schema) + schema.notes
      }
      return notes + more
    }
  }
}

struct ChangeCoreData: MigrationOperation {
  static let kinds = [
    OperationKind(
      "coredata.rename-attribute",
      "Renames an attribute or a to-one relationship of an entity in a [Core Data "
        + "store](OtherTools.md#core-data), with its order and its indexes.",
      [
        "database": "required: a name under `databases:` in `drydock.yaml`",
        "entity, attribute": "required: their names in the model",
        "to": "required: the new name",
        "core-data":
          "required: `{version-info: FILE, version: NAME, down-version: NAME}`, as for `sql`; without "
          + "`down-version` the step cannot be reverted",
      ], common: ["if-missing"]
    ) { try Self(reading: $0, files: $1) },
    OperationKind(
      "coredata.add-attribute",
      "Adds an attribute. The down step drops its column; a note counts the values other than the "
        + "default.",
      [
        "attribute": "required: its name",
        "type":
          "required: `integer-16`, `integer-32`, `integer-64`, `boolean`, `decimal`, `double`, `float`, "
          + "`string`, `date`, `uuid`, `uri`, `binary`, `transformable`",
        "default": "the value in existing rows of the entity, and of those that inherit from it; a `uuid` as "
          + "text, data with `!data`; NULL without it",
      ], common: ["database", "entity", "core-data", "if-missing"]
    ) { try Self(reading: $0, files: $1) },
    OperationKind(
      "coredata.rename-entity",
      "Renames an entity: its table, its row in `Z_PRIMARYKEY`, its indexes, and the numbers of all "
        + "entities.",
      [
        "entity, to": "required: its names before and after"
      ], common: ["database", "core-data", "if-missing"]
    ) { try Self(reading: $0, files: $1) },
    OperationKind(
      "coredata.add-entity",
      "Adds an entity.",
      [
        "entity": "required: its name",
        "parent": "the entity that it inherits from, whose table it shares",
        "attributes": "names, each with its type",
        "to-one": "a list of to-one relationships; only without `parent`",
      ], common: ["database", "core-data", "if-missing"]
    ) { try Self(reading: $0, files: $1) },
  ]

  private enum Change: Sendable {
    case renameAttribute(entity: String, from: String, to: String)
    case addAttribute(CoreDataAttribute, entity: String)
    case dropAttribute(CoreDataAttribute, entity: String)
    case renameEntity(from: String, to: String)
    case addEntity(CoreDataNewEntity)
    case removeEntity(CoreDataNewEntity)

    var inverse: Change {
      switch self {
      case .renameAttribute(let entity, let old, let new):
        .renameAttribute(entity: entity, from: new, to: old)
      case .addAttribute(let attribute, let entity): .dropAttribute(attribute, entity: entity)
      case .dropAttribute(let attribute, let entity): .addAttribute(attribute, entity: entity)
      case .renameEntity(let old, let new): .renameEntity(from: new, to: old)
      case .addEntity(let entity): .removeEntity(entity)
      case .removeEntity(let entity): .addEntity(entity)
      }
    }
  }

  let name: String
  private let target: CoreDataTarget
  /// Of the store afterwards, and after the down step.
  private var models: (up: CoreDataModel, down: CoreDataModel?)
  private var change: Change

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
    name = reader.what
    target = try CoreDataTarget(reader)
    let model = try reader.required("core-data")
    models = try CoreDataModel.argument(
      model, files: files, hasDown: model.mapping?["down-version"] != nil)
    func text(_ key: String) throws -> String {
      try CoreDataAttribute.name(reader.required(key), "`\(key)`")
    }
    switch name {
    case "coredata.rename-attribute":
      change = .renameAttribute(entity: try text("entity"), from: try text("attribute"), to: try text("to"))
    case "coredata.add-attribute":
      let attribute = try CoreDataAttribute(
        text("attribute"), reader.requiredChoice("type"), default: reader["default"])
      change = .addAttribute(attribute, entity: try text("entity"))
    case "coredata.rename-entity":
      change = .renameEntity(from: try text("entity"), to: try text("to"))
      try Self.require(text("to"), in: models.up, at: reader.required("to").position)
    default:
      let entity = try CoreDataNewEntity(reader)
      change = .addEntity(entity)
      try Self.require(entity.name, in: models.up, at: reader.required("entity").position)
    }
  }

  private static func require(_ entity: String, in model: CoreDataModel, at position: YAMLPosition) throws {
    guard model.hashes[entity] == nil else { return }
    throw position.error(
      "the model `\(model.name)` has no entity `\(entity)`; "
        + NearestWord.hint(for: entity, among: model.hashes.keys.sorted()))
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let notes = try target.change(on: stage, to: models.up) { schema in
      switch change {
      case .renameAttribute(let entity, let old, let new):
        try schema.rename(property: old, to: new, of: entity)
      case .addAttribute(let attribute, let entity): try schema.add(attribute, to: entity)
      case .dropAttribute(let attribute, let entity): try schema.drop(attribute, of: entity)
      case .renameEntity(let old, let new): try schema.rename(entity: old, to: new)
      case .addEntity(let entity): try schema.add(entity)
      case .removeEntity(let entity): try schema.remove(entity)
      }
      return []
    }
    if notes == nil { recorded.skipped.append(target.database.name) }
    return notes ?? [target.database.missing]
  }

  var reversal: Reversal { inverse == nil ? .none : .byArguments }
  var inverse: (any MigrationAction)? {
    guard let down = models.down else { return nil }
    var inverse = self
    (inverse.models, inverse.change) = ((down, nil), change.inverse)
    return inverse
  }
  var effects: StepEffects { StepEffects(writing: .conversion, databases: .named(target.database.name)) }
}
