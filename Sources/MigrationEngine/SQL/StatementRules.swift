import Formats
import GRDB

/// What a statement must not do in a migration, by SQLite's program for it (`EXPLAIN`), not by its spelling.
struct StatementRules {
  let source: SQLStatement
  /// The reason for destroying data.
  let destructive: String?
  /// Whether messages speak of arguments or directives.
  var language: SQLLanguage = .steps
  /// Whether the statements are in a transaction that they must not end; another tool's need not be.
  var isInTransaction = true

  /// Why the statement may not run; nil when it may.
  func refusal(_ db: Database) throws -> String? {
    // Statements on rows may be many. `load_extension` is found by its name, in quotes, too.
    if source.isAboutRows, !source.mentionsExtensions { return loss(drops: false) }
    if source.verb == "PRAGMA", source.namesWritableSchema {
      return "`writable_schema` is not for migrations: change the schema by CREATE, ALTER and DROP"
    }
    var drops = false
    // Stops at the first refusal: GRDB reads the end of `EXPLAIN COMMIT` as a commit.
    let rows = try Row.fetchCursor(db, sql: "EXPLAIN " + source.text)
    while let row = try rows.next() {
      let opcode: String = row["opcode"] ?? ""
      let detail: String = (row["p4"] as DatabaseValue).storage.text ?? ""
      if let reason = refusal(opcode, detail, row["p3"]) { return reason }
      // Database 1 has the temporary tables.
      let database: Int = row["p1"] ?? 0
      drops = drops || (opcode == "DropTable" && database != 1) || detail.hasPrefix("sqlite_drop_column(")
    }
    return loss(drops: drops)
  }

  /// The refusal by words alone, for a statement on tables that do not exist.
  var refusalByWords: String? { loss(drops: source.drops) }

  private func loss(drops: Bool) -> String? {
    if destructive != nil { return nil }
    if !drops, !["DELETE", "UPDATE", "WITH"].contains(source.verb) { return nil }
    // A view has no data, although SQLite's program drops it as it drops a table.
    if drops, source.dropsView { return nil }
    let rows = drops ? nil : source.lossOfAllRows
    guard let what = drops ? "drops a table or a column" : rows.map({ "is \($0)" }) else { return nil }
    return "the statement \(what) and destroys data: \(language.reason)"
  }

  private func refusal(_ opcode: String, _ detail: String, _ argument: Int?) -> String? {
    switch opcode {
    case "AutoCommit" where !isInTransaction, "Savepoint" where !isInTransaction,
      "Vacuum" where !isInTransaction:
      return nil
    case "AutoCommit", "Savepoint":
      return
        "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not for migrations: the whole run is one transaction already"
    case "Vacuum": return "VACUUM is not for migrations: it cannot run inside their transaction"
    // -1 only reads the mode, as SQLite does in some other statements.
    case "JournalMode" where argument != -1:
      return "the journal mode is not for migrations: a migrated database keeps the mode that it has"
    case "Checkpoint": return "a checkpoint is not for migrations: they work on a copy without a log"
    default: break
    }
    if detail.hasPrefix("sqlite_attach(") || detail.hasPrefix("sqlite_detach(") {
      return "ATTACH and DETACH are not for migrations: another file would be changed outside the transaction"
    }
    if detail.hasPrefix("load_extension(") { return "extensions are not for migrations" }
    return nil
  }
}

extension DatabaseValue.Storage {
  fileprivate var text: String? {
    if case .string(let text) = self { text } else { nil }
  }
}

/// Whether a message about SQL speaks of arguments or directives.
enum SQLLanguage: Sendable {
  case steps
  /// A `.sql` file with its directives in comments.
  case directives

  /// How to give a reason for destroying data.
  var reason: String {
    switch self {
    case .steps: "say why with `destructive`"
    case .directives: "say why with a line `-- drydock: destructive REASON`"
    }
  }
}
