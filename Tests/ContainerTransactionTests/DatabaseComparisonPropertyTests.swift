import Foundation
import GRDB
import TestSupport
import Testing

@testable import ContainerTransaction

/// Random pairs of databases: what the comparison counts is what a plain comparison of all rows counts.
@Suite struct DatabaseComparisonPropertyTests {
  private static let forms = [
    "k INTEGER PRIMARY KEY, a, b", "k PRIMARY KEY, a, b", "k TEXT PRIMARY KEY, a TEXT COLLATE NOCASE, b",
    "k, l, a, b, PRIMARY KEY(k, l)", "k TEXT COLLATE NOCASE, a, b, PRIMARY KEY(k)", "k BLOB, a, b",
  ]

  @Test(arguments: 0..<30 as Range<UInt64>) func countsAreRight(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let form = Self.forms[Int(seed) % Self.forms.count]
    let isWithoutRowid = form.contains("PRIMARY KEY") && random.next() % 3 == 0
    let create = "CREATE TABLE t(\(form))\(isWithoutRowid ? " WITHOUT ROWID" : "");"
    let before = create + inserts(form, &random)
    // Mostly the same rows.
    let after = before + changes(form, &random)
    try DatabasePair.with(before, after) { pair in
      let found = try pair.compare(rows: 1000).tables.first
      let wanted = try Self.reference(pair, form, isWithoutRowid)
      #expect([found?.added ?? 0, found?.removed ?? 0, found?.changed ?? 0] == wanted, "\(form) \(after)")
      let rows = found?.rows ?? []
      #expect(
        [.added, .removed, .changed].map { change in rows.count { $0.change == change } } == wanted, "\(form)"
      )
      #expect(rows.allSatisfy { $0.change != .changed || !$0.columns.isEmpty })
    }
  }

  /// A value for the key: an INTEGER PRIMARY KEY takes nothing else.
  private func key(_ form: String, _ random: inout SeededRandom) -> String {
    form.hasPrefix("k INTEGER") ? "\(random.next() % 20)" : literal(&random)
  }

  private func literal(_ random: inout SeededRandom) -> String {
    let number = Int(random.next() % 6)
    switch random.next() % 7 {
    case 0: return "\(number)"
    case 1: return "'\(number)'"
    case 2: return "x'3\(number)'"
    case 3: return "\(number).5"
    case 4: return "NULL"
    case 5: return random.next() % 2 == 0 ? "'a\(number)'" : "'A\(number)'"
    default: return "CAST(x'61f\(number)00' AS TEXT)"
    }
  }

  private func inserts(_ form: String, _ random: inout SeededRandom) -> String {
    let count =
      form.split(separator: ",").count - (form.contains("PRIMARY KEY(") ? form.contains("l,") ? 2 : 1 : 0)
    return (0..<Int(random.next() % 40)).map { _ in
      // What does not fit the table is left out.
      let values = [key(form, &random)] + (1..<count).map { _ in literal(&random) }
      return "INSERT OR IGNORE INTO t VALUES (\(values.joined(separator: ", ")));"
    }.joined()
  }

  private func changes(_ form: String, _ random: inout SeededRandom) -> String {
    (0..<Int(random.next() % 6)).map { _ in
      let value = literal(&random)
      return [
        "UPDATE t SET a = \(value) WHERE b IS \(literal(&random));", "DELETE FROM t WHERE a IS \(value);",
        "UPDATE OR IGNORE t SET k = \(key(form, &random)) WHERE a IS \(literal(&random));",
        "INSERT OR IGNORE INTO t(k, b) VALUES (\(key(form, &random)), \(literal(&random)));",
      ][Int(random.next() % 4)]
    }.joined()
  }

  /// Loads everything, each value as its type and its bytes.
  private static func reference(_ pair: DatabasePair, _ form: String, _ isWithoutRowid: Bool) throws -> [Int]
  {
    let names = form.contains("l,") ? ["k", "l", "a", "b"] : ["k", "a", "b"]
    func rows(_ path: String, by key: [String]) throws -> [[String]: [String]] {
      let text = { (name: String) in "typeof(\(name)) || ':' || hex(CAST(\(name) AS BLOB))" }
      return try DatabaseQueue(path: path).inDatabase { db in
        let list = (key + names).map(text).joined(separator: ", ")
        return try Row.fetchAll(db, sql: "SELECT \(list) FROM t").reduce(into: [:]) { result, row in
          let values = row.databaseValues.map { $0.description }
          result[Array(values.prefix(key.count))] = Array(values.dropFirst(key.count))
        }
      }
    }
    func hasNull(_ path: String) throws -> Bool {
      try DatabaseQueue(path: path).inDatabase { db in
        try Bool.fetchOne(
          db, sql: "SELECT count(*) FROM t WHERE k IS NULL\(form.contains("l,") ? " OR l IS NULL" : "")")
          == true
      }
    }
    var key = form.contains("PRIMARY KEY") ? form.contains("l,") ? ["k", "l"] : ["k"] : ["rowid"]
    if !isWithoutRowid, try hasNull(pair.before) || hasNull(pair.after) { key = ["rowid"] }
    let (old, new) = (try rows(pair.before, by: key), try rows(pair.after, by: key))
    return [
      new.keys.count { old[$0] == nil }, old.keys.count { new[$0] == nil },
      old.count { key, value in new[key] != nil && new[key] != value },
    ]
  }
}
