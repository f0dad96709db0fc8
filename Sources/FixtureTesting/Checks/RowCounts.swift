import ContainerDiff
import GRDB

extension Database {
  /// The numbers of rows of all tables of the app's own: SQLite's, virtual ones and those behind them are left out.
  func rowCounts() throws -> [String: Int] {
    let names = try String.fetchAll(
      self,
      sql: """
        SELECT name FROM pragma_table_list
        WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        """)
    var counts: [String: Int] = [:]
    for name in names {
      counts[name] = try Int.fetchOne(self, sql: "SELECT count(*) FROM \(quoted(name))") ?? 0
    }
    return counts
  }
}
