import DrydockErrors
import Formats
import GRDB

/// The functions and collations that an app defines in its SQL, by their names: `functions:` and `collations:` of
/// `drydock.yaml`.
package struct AppDefinedSQL: Sendable, Equatable {
  package var functions: [String: SQLFunction] = [:]
  package var collations: [String: SQLCollation] = [:]

  package init() {}

  package init(functions: YAMLNode?, collations: YAMLNode?) throws {
    self.functions = try Self.provided(functions, "function")
    self.collations = try Self.provided(collations, "collation")
  }

  /// Reads `functions:` and `collations:`, which map the app's names to words for what Drydock provides.
  private static func provided<Word: RawRepresentable & CaseIterable>(_ node: YAMLNode?, _ kind: String)
    throws
    -> [String: Word]
  where Word.RawValue == String {
    guard let node, !node.isNull else { return [:] }
    var result: [String: Word] = [:]
    for pair in try node.pairs("`\(kind)s`").pairs {
      let name = pair.key.source
      guard let first = name.utf8.first, first != 0x24, !(0x30...0x39).contains(first),
        name.utf8.allSatisfy({
          $0 == 0x5F || $0 == 0x24 || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20)
        })
      else {
        throw pair.keyPosition.error(
          "`\(name)` is not the name of a SQL \(kind) (letters, digits, `_` and `$`)")
      }
      if let other = result.keys.first(where: { $0.lowercased() == name.lowercased() }) {
        throw pair.keyPosition.error("`\(name)` is the \(kind) `\(other)`, too: SQLite ignores case")
      }
      // Other indexes have them, too.
      if Word.self == SQLCollation.self, SQLCollation(rawValue: name.lowercased()) != nil {
        throw pair.keyPosition.error("`\(name)` is a collation of SQLite's: leave it out")
      }
      let word = try pair.value.text("what the \(kind) `\(name)` does")
      guard let provided = Word(rawValue: word) else {
        throw pair.value.position.error(
          "unknown \(kind) `\(word)`; " + NearestWord.hint(for: word, among: Word.allCases.map(\.rawValue)))
      }
      result[name] = provided
    }
    return result
  }

  /// Adds the app's functions and collations to a connection.
  package func define(in db: Database) {
    for (name, function) in functions { function.add(named: name, to: db) }
    for (name, collation) in collations { collation.add(named: name, to: db) }
  }

  /// Requires that the indexes with a collation of the app are in the order that it has here: in another order SQLite would
  /// not find their rows, and would damage them.
  ///
  /// - Throws: ``DrydockError`` `badConfiguration`. A collation that is unknown here fails the statements that need it.
  package func requireDeclaredOrder(_ db: Database, of path: String) throws {
    // GRDB's have the order of this system.
    let known =
      [
        DatabaseCollation.unicodeCompare, .caseInsensitiveCompare, .localizedCaseInsensitiveCompare,
        .localizedCompare, .localizedStandardCompare,
      ].map(\.name) + collations.keys
    let sql = """
      SELECT DISTINCT t.name, i.name, x.coll
      FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_xinfo(i.name) AS x
      WHERE t.schema = 'main' AND t.type = 'table' AND upper(x.coll) NOT IN ('BINARY', 'NOCASE', 'RTRIM')
      """
    var checked: [String: [String]] = [:]
    for part in try Row.fetchAll(db, sql: sql) {
      let (table, index, collation): (String, String, String) = (part[0], part[1], part[2])
      guard let name = known.first(where: { $0.lowercased() == collation.lowercased() }) else { continue }
      let lines = try checked[table] ?? Self.faults(of: table, db)
      checked[table] = lines
      // SQLite stops after 100 lines.
      let found = lines.first {
        $0.hasSuffix("index \(index)") || $0 == "row not in PRIMARY KEY order for \(table)"
          || lines.count > 99
      }
      guard let found else { continue }
      let order = collations[name].map { "`collations: {\(name): \($0.rawValue)}`" }
      throw DrydockError(
        .badConfiguration,
        "the index `\(index)` is not in the order of \(order ?? "the collation \(name) here") (\(found)): "
          + "\(order == nil ? "declare" : "correct") the app's order in drydock.yaml, or, if it is right, let the app "
          + "rebuild the index (REINDEX)", path: path)
    }
  }

  /// A table that cannot be checked has more than SQLite reports.
  private static func faults(of table: String, _ db: Database) throws -> [String] {
    do { return try String.fetchAll(db, sql: "PRAGMA integrity_check(\(quotedIdentifier(table)))") } catch let
      error
      as DatabaseError where error.resultCode == .SQLITE_ERROR
    { return Array(repeating: error.plainMessage, count: 100) }
  }
}
