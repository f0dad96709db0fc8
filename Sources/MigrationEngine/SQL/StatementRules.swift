import AppContainer
import GRDB

/// What a statement may not do in a migration. SQLite's own program for it (`EXPLAIN`) tells, not its spelling.
struct StatementRules {
  let sql: String
  /// The author's reason for destroying data, if any.
  let destructive: String?
  /// Whether the statements are in a transaction that is not theirs to end; another tool's need not be.
  var isInTransaction = true

  /// Why the statement may not run; nil when it may.
  func refusal(_ db: Database) throws -> String? {
    var drops = false
    // Row by row, and no further than a refusal: GRDB takes the end of `EXPLAIN COMMIT` for a commit.
    let rows = try Row.fetchCursor(db, sql: "EXPLAIN " + sql)
    while let row = try rows.next() {
      let opcode: String = row["opcode"] ?? ""
      let detail: String = (row["p4"] as DatabaseValue).storage.text ?? ""
      if let reason = refusal(opcode, detail, row["p3"]) { return reason }
      // Database 1 holds temporary tables, which are nobody's data.
      let database: Int = row["p1"] ?? 0
      drops = drops || (opcode == "DropTable" && database != 1) || detail.hasPrefix("sqlite_drop_column(")
    }
    return loss(drops: drops)
  }

  /// What its words alone tell of ``refusal(_:)``, for a statement on tables that are not there to be explained.
  var refusalByWords: String? { loss(drops: SQLWords(sql).drops) }

  private func loss(drops: Bool) -> String? {
    if destructive != nil { return nil }
    let verb = drops ? nil : SQLWords(sql).verbWithoutWhere
    guard let what = drops ? "drops a table or a column" : verb.map({ "is \($0) without WHERE" }) else {
      return nil
    }
    return "the statement \(what) and destroys data: say why with `destructive`"
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
    // -1 only asks for the mode, which SQLite does in statements that have nothing to do.
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

/// The bare words of one statement, without comments, strings and quoted names: only for the courtesy of asking
/// for a reason before all rows change, never for safety.
struct SQLWords {
  private var words: [String] = []

  init(_ sql: String) {
    let scalars = Array(sql.utf8)
    var index = 0
    var word: [UInt8] = []
    func end(_ closing: UInt8, from start: Int) -> Int {
      (scalars[start...].firstIndex(of: closing) ?? scalars.count - 1) + 1
    }
    while index < scalars.count {
      let byte = scalars[index]
      if Self.isWord(byte) {
        word.append(byte)
        index += 1
        continue
      }
      finish(&word)
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): index = end(byte, from: index + 1)
      case UInt8(ascii: "["): index = end(UInt8(ascii: "]"), from: index + 1)
      case _ where scalars[index...].starts(with: "--".utf8): index = end(0x0A, from: index)
      case _ where scalars[index...].starts(with: "/*".utf8):
        index += 2
        while index < scalars.count, !scalars[index...].starts(with: "*/".utf8) { index += 1 }
        index += 2
      default: index += 1
      }
    }
    finish(&word)
  }

  private mutating func finish(_ word: inout [UInt8]) {
    if !word.isEmpty { words.append(String(decoding: word, as: UTF8.self).uppercased()) }
    word = []
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || (byte >= 0x30 && byte <= 0x39)
      || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
      || byte >= 0x80
  }

  /// Whether the statement makes, changes or removes tables and their like.
  var definesSchema: Bool { words.first.map(["CREATE", "ALTER", "DROP"].contains) ?? false }

  /// Whether it begins or ends a transaction or a part of one.
  var isAboutTransactions: Bool {
    words.first.map(["BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE"].contains) ?? false
  }

  /// Whether it makes a trigger, inside of which are statements.
  var makesTrigger: Bool {
    words.first == "CREATE" && words.dropFirst().first { !["TEMP", "TEMPORARY"].contains($0) } == "TRIGGER"
  }

  /// Whether it is such a one with `IF EXISTS` or `IF NOT EXISTS`.
  var asksForExistence: Bool { definesSchema && words.prefix(6).contains("EXISTS") }

  /// Whether it drops a table or a column.
  var drops: Bool {
    words.starts(with: ["DROP", "TABLE"])
      || (words.starts(with: ["ALTER", "TABLE"]) && words.contains("DROP"))
  }

  /// `DELETE` or `UPDATE`, when the statement is one and says nowhere which rows.
  var verbWithoutWhere: String? {
    guard !words.contains("WHERE"), let verb = words.first else { return nil }
    if verb == "DELETE" || verb == "UPDATE" { return verb }
    guard verb == "WITH", !words.contains("INSERT") else { return nil }
    return words.first { $0 == "DELETE" || $0 == "UPDATE" }
  }
}
