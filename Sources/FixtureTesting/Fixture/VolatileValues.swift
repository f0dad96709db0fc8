import AppContainer
import DrydockErrors
import Formats

/// What is another value in each run, such as the time of the installation or a random id: goldens hold a word in its
/// place.
package struct VolatileValues: Sendable, Equatable {
  /// Keys of settings, at any depth.
  package var settings: Set<String> = []
  /// Columns of databases, in every table of that name; `rowid` names the rowids of a table without a key.
  package var columns: Set<Column> = []
  /// Files of which only the path counts, and directories whose content does not.
  package var files: PatternList = []
  /// Regular expressions: what matches, in any text of settings, databases and vault items, is not compared.
  package var patterns: [String] = []
  /// Whether the order of a table's columns is compared: SQL that adds a column puts it behind the others.
  package var comparesColumnOrder = false

  /// A column, by its table.
  package struct Column: Sendable, Hashable {
    /// The table and the column.
    package var table: String, column: String

    /// A column of a table.
    package init(table: String, column: String) { (self.table, self.column) = (table, column) }
  }

  /// Nothing is volatile.
  package init() {}

  init(_ node: YAMLNode?) throws {
    guard let node else { return }
    let reader = try YAMLReader(
      node, what: "volatile", keys: ["settings", "columns", "files", "patterns", "column-order"])
    settings = Set(try reader.texts("settings") ?? [])
    files = PatternList(try reader.texts("files") ?? [])
    patterns = try reader.texts("patterns") ?? []
    comparesColumnOrder = try reader.boolean("column-order") == false
    do {
      _ = try patterns.map(NeutralValues.expression)
    } catch let error as DrydockError {
      throw (reader["patterns"]?.position ?? reader.position).error(error.message, cause: error)
    }
    for text in try reader["columns"]?.texts("`columns`") ?? [] {
      let parts = text.split(separator: ".", maxSplits: 1).map(String.init)
      guard parts.count == 2 else {
        throw reader.position.error("`\(text)` in `columns` is no TABLE.COLUMN")
      }
      columns.insert(Column(table: parts[0], column: parts[1]))
    }
  }

  /// These and others: what a fixture says besides what holds for all.
  func adding(_ other: VolatileValues) -> VolatileValues {
    var result = self
    result.settings.formUnion(other.settings)
    result.columns.formUnion(other.columns)
    result.files = files.adding(other.files)
    result.patterns += other.patterns
    result.comparesColumnOrder = comparesColumnOrder || other.comparesColumnOrder
    return result
  }
}
