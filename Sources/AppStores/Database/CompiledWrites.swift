import GRDB
import GRDBSQLite

/// What statements write, as SQLite says while it compiles them.
package final class CompiledWrites {
  /// The columns, each with the trigger that writes it; nil where the statement names it.
  package var columns: [(table: String, column: String, trigger: String?)] = []

  package init() {}

  /// Notes what is compiled on a connection from now on, in place of what GRDB wants to know of it.
  package func watch(_ db: Database) {
    sqlite3_set_authorizer(
      db.sqliteConnection,
      { context, action, table, column, _, trigger in
        if action == SQLITE_UPDATE, let context, let table, let column {
          Unmanaged<CompiledWrites>.fromOpaque(context).takeUnretainedValue().columns.append(
            (String(cString: table), String(cString: column), trigger.map { String(cString: $0) }))
        }
        return SQLITE_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }
}
