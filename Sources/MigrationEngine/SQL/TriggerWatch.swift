import AppStores
import ContainerTransaction
import FileSystem
import Formats
import GRDB

/// Finds the columns that triggers write and the statements of a script do not name.
///
/// SQLite says what a statement writes while it compiles it. The database's own connection reports that to GRDB, so the
/// statements are compiled once more, in an empty copy of the schema.
final class TriggerWatch {
  private(set) var columns: [String: [String: String]] = [:]
  /// Nil in a database without triggers.
  private var copy: DatabaseQueue?
  /// Whether no statement can have changed the schema since it was copied.
  private var isCopied = false
  private let compiled = CompiledWrites()

  /// Notes what a statement that can be compiled is about to write.
  func note(_ source: SQLStatement, in db: Database) throws {
    guard source.isAboutRows else { return isCopied = false }
    if !isCopied { (copy, isCopied) = (try copied(db), true) }
    guard let copy else { return }
    compiled.columns = []
    copy.inDatabase { schema in
      var schema = SchemaCopy(schema)
      _ = schema.run(source.text)
    }
    for case let (table, column, trigger?) in compiled.columns
    where !compiled.columns.contains(where: { $0 == (table, column, nil) }) {
      columns[table, default: [:]][column] = trigger
    }
  }

  private func copied(_ db: Database) throws -> DatabaseQueue? {
    let objects = try SchemaShape(db).objects
    let triggers = objects.filter(\.isTrigger)
    if triggers.isEmpty { return nil }
    let queue = try DatabaseQueue()
    queue.inDatabase { db in
      var schema = SchemaCopy(db)
      for object in objects.filter(\.isTable) + objects.filter(\.isView) + triggers {
        _ = schema.run(object.sql)
      }
      compiled.watch(db)
    }
    return queue
  }
}

extension StagedContainer {
  /// Changes a database; a dry run notes which columns triggers write for the statements.
  func notingTriggers<Value>(
    in database: ContainerPath, _ body: (TriggerWatch?) throws -> Value
  ) rethrows -> Value {
    guard self is DiscardedStage else { return try body(nil) }
    let triggers = TriggerWatch()
    let value = try body(triggers)
    note(triggers.columns, in: database)
    return value
  }
}
