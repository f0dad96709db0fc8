import Foundation
import TestSupport

@testable import MigrationEngine

/// Random migrations over what ``RandomContainer`` makes: any operation, arguments that mostly fit.
struct RandomMigrations {
  /// How a step fails that has to.
  static let failing = [
    "defaults.set: {values: {anchor: 1}}", "files.move: {from: nowhere, to: elsewhere, if-missing: fail}",
    "sql: {database: notes, up: INSERT INTO no_such_table VALUES (1)}",
    "sql: {database: notes, up: \"UPDATE task SET title = 'half' WHERE 1; INSERT INTO task(id, title, done) VALUES (9, 'x', NULL)\"}",
    "defaults.convert: {key: anchor, map: {false: 1}}",
    "vault.delete: {service: none, if-missing: fail, destructive: x}",
    "defaults.patch: {key: anchor, patch: [{op: remove, path: /x}]}",
  ]

  private let seed: UInt64
  /// Numbers for the arguments of the present step.
  private var random: SeededRandom
  /// Only steps that can be reverted without down steps.
  private let isReversible: Bool
  /// A number of the present step that no other step of the case has.
  private var number = 0

  init(seed: UInt64, isReversible: Bool = false) {
    (self.seed, self.isReversible) = (seed, isReversible)
    random = Self.stream(seed, "counts")
  }

  /// Migration files by name, numbered from 1.
  mutating func files() -> [String: String] {
    var counts = random
    var files: [String: String] = [:]
    for migration in 1...Int.random(in: 1...4, using: &counts) {
      let steps = (0..<Int.random(in: 1...4, using: &counts)).map { index in
        "  - " + step(migration * 10 + index)
      }
      files[String(format: "%04d_random.yaml", migration)] = "steps:\n" + steps.joined(separator: "\n") + "\n"
    }
    return files
  }

  /// Random numbers for one purpose, independent of all others.
  static func stream(_ seed: UInt64, _ purpose: String) -> SeededRandom {
    // FNV-1a: Swift's own hashes differ from run to run.
    let hash = purpose.utf8.reduce(14_695_981_039_346_656_037 ^ seed) {
      ($0 ^ UInt64($1)) &* 1_099_511_628_211
    }
    return SeededRandom(seed: hash)
  }

  typealias Generator = @Sendable (inout RandomMigrations) -> String

  /// A generator of arguments for each operation: one with random arguments, or else the step of its example.
  static let generators: [String: Generator] = {
    var generators = own
    for kind in Operations.all where generators[kind.name] == nil {
      if let example = kind.example { generators[kind.name] = { _ in example.step } }
    }
    return generators
  }()

  static let own: [String: Generator] = [
    "defaults.set": { "{values: \($0.values()), if-exists: \($0.one("replace", "keep"))\($0.suite())}" },
    "defaults.set-default": { "{values: \($0.values())\($0.suite())}" },
    "defaults.rename": {
      let (old, new) = $0.twoKeys()
      return "{keys: {\(old): \(new)}, if-exists: \($0.one("replace", "keep"))\($0.suite())}"
    },
    "defaults.convert": {
      let type = $0.one("string", "integer", "real", "boolean", "date", "data")
      let to = $0.one("", ", to: \($0.key()), if-exists: \($0.one("replace", "keep"))")
      return "{key: \($0.key()), type: \(type), unmapped: \($0.one("keep", "delete"))\(to)\($0.suite())}"
    },
    "defaults.delete": {
      $0.one(
        "{keys: [\($0.key()), \($0.key())], destructive: no\($0.suite())}",
        "{prefix: prefix., destructive: x}")
    },
    "defaults.move": { $0.transfer() },
    "defaults.copy": { $0.transfer() },
    "defaults.patch": { "{key: \($0.one("doc", "json"))\($0.suite()), patch: \($0.patch())}" },
    "defaults.document-migrate": {
      let place = $0.one("key: doc", "key: json", "path: Library/five.json")
      return "{\(place), data-key: '', versions: {2: {defaults: {added: \($0.jsonScalar())}, "
        + "steps: [{op: add, path: /two, value: \($0.jsonScalar())}]}}}"
    },
    "defaults.move-to-file": {
      "{key: \($0.key())\($0.suite()), to: Documents/\($0.one("big", "bigger")).plist, format: plist, if-exists: \($0.one("replace", "keep"))}"
    },
    "vault.move-from-defaults": {
      "{key: \($0.key())\($0.suite()), service: s, account: \($0.account()), as: \($0.one("text", "json")), if-exists: \($0.one("replace", "keep"))}"
    },
    "vault.rename": {
      "{service: s, account: \($0.account()), to: {account: \($0.account())}, if-exists: \($0.one("replace", "keep"))}"
    },
    "vault.move-to": {
      "{service: s, to: \($0.one("group.x", "''")), if-exists: \($0.one("replace", "keep"))}"
    },
    "vault.set-accessibility": {
      "{service: s, account: \($0.account()), accessible: \($0.one("afterFirstUnlock", "whenUnlockedThisDeviceOnly"))}"
    },
    "vault.set-access-control": {
      "{service: s, account: \($0.account()), access-control: [\($0.one("", "userPresence", "devicePasscode"))]}"
    },
    "vault.set-synchronizable": {
      "{service: s, account: \($0.account()), to: \($0.one("true", "false")), if-exists: \($0.one("replace", "keep"))}"
    },
    "vault.compute": {
      "{service: s, account: \($0.account()), value: \($0.one("upper(:value)", "\"json_object('v', hex(:value))\""))}"
    },
    "defaults.compute": {
      let key = $0.one("a", "b", "c", "d")
      let value = $0.one(
        "\"typeof(:\(key)) || ' computed'\", type: text", "\":\(key) IS NULL\", type: boolean",
        "\"coalesce(length(CAST(:\(key) AS BLOB)), 0) / 2.0\", type: real")
      return
        "{key: \($0.key()), value: \(value), if-missing: null, if-exists: \($0.one("replace", "keep"))\($0.suite())}"
    },
    "files.export-column": {
      "{database: \($0.one("notes", "log")), table: task, column: title, to: \"'Documents/Tasks/' || id || '.txt'\", replace-with: \($0.one("path", "null", "keep")), if-exists: keep}"
    },
    "files.import-column": {
      "{database: \($0.one("notes", "log")), table: task, column: title, from: \"'Documents/Tasks/' || id || '.txt'\", as: text, files: \($0.one("remove", "keep")), if-exists: keep}"
    },
    "vault.convert": {
      "{service: s, account: \($0.account()), fields: token, unmapped: \($0.one("keep", "delete"))}"
    },
    "vault.delete": { "{service: s, account: \($0.account()), destructive: x}" },
    "sql": { $0.sql() },
    "files.move": { $0.moveFiles() },
    "files.copy": { $0.moveFiles() },
    "files.delete": {
      $0.one("{path: \($0.path()), destructive: x}", "{path: ['Documents/*.txt'], destructive: x}")
    },
    "files.patch": { "{path: Library/five.json, patch: \($0.patch())}" },
    "files.write": {
      "{path: Documents/\($0.one("one.txt", "new.txt", "New/deep.txt")), text: \($0.quoted("text \($0.random.next() % 99)")), if-exists: \($0.one("replace", "keep"))}"
    },
    "files.create-directory": {
      "{path: \($0.one("Documents/Made", "Documents/Made/Deep", "Documents/Sub"))}"
    },
    "files.set-protection": {
      "{path: \($0.attributePath()), class: \($0.one("complete", "completeUnlessOpen"))}"
    },
    "files.set-backup-exclusion": { "{path: \($0.attributePath()), excluded: \($0.one("true", "false"))}" },
  ]

  /// Each operation draws a number for each step, and the highest one wins: a new operation replaces only the steps that it
  /// wins, and the others stay as they were.
  private mutating func step(_ number: Int) -> String {
    let streams = Self.generators.keys.filter { name in
      !isReversible || !["files.delete", "vault.delete", "defaults.delete"].contains(name)
    }
    .map { name in
      var stream = Self.stream(seed, "\(number) \(name)")
      // Of SQL there is more to be tried than of any other operation.
      let draw = name == "sql" ? (0..<10).reduce(0) { most, _ in max(most, stream.next()) } : stream.next()
      return (name: name, draw: draw, stream: stream)
    }
    guard let winner = streams.max(by: { $0.draw < $1.draw }), let generator = Self.generators[winner.name]
    else {
      return ""
    }
    (self.number, random) = (number, winner.stream)
    return "\(winner.name): \(generator(&self))"
  }

  private mutating func transfer() -> String {
    let (from, to) = one(("{suite: group}", "{suite: standard}"), ("{suite: standard}", "{suite: group}"))
    let what = one("keys: [\(key()), \(key())]", "prefix: prefix.")
    return "{from: \(from), to: \(to), \(what), if-exists: \(one("replace", "keep"))}"
  }

  private mutating func moveFiles() -> String {
    let pairs = [
      ("Documents/one.txt", "Documents/two.txt"), ("Documents/Sub", "Library/Sub"),
      ("Library/Sub", "Documents/Sub"),
      ("Documents/hard", "Documents/one.txt"), ("Documents/Sub/link", "Documents/link"),
      ("Documents/Empty", "Documents/Sub/Empty"), ("Documents/two.txt", "New/Place/two.txt"),
      (RandomContainer.databases[0], RandomContainer.moved[0]),
      (RandomContainer.databases[1], RandomContainer.moved[1]),
    ]
    let (from, to) = pairs[Int.random(in: 0..<pairs.count, using: &random)]
    return "{from: \(from), to: \(to), if-exists: \(one("replace", "keep"))}"
  }

  private mutating func sql() -> String {
    if one(true, false, true), let step = Self.schemaStep(number, seed, &random) {
      return String(step.dropFirst("sql: ".count))
    }
    let database = one("notes", "log")
    let (up, down) = one(
      ("ALTER TABLE task ADD COLUMN c\(number)", "ALTER TABLE task DROP COLUMN c\(number)"),
      (
        "CREATE TABLE t\(number)(x); INSERT INTO t\(number) VALUES (\(random.next() % 9))",
        "DROP TABLE t\(number)"
      ),
      ("UPDATE task SET done = done + 10 WHERE 1", "UPDATE task SET done = done - 10 WHERE 1"),
      (
        "INSERT INTO task(id, title) VALUES (\(100 + number), 'new')",
        "DELETE FROM task WHERE id = \(100 + number)"
      ),
      ("CREATE INDEX i\(number) ON task(title)", "DROP INDEX i\(number)"),
      ("DELETE FROM tag WHERE task > 2; DELETE FROM task WHERE id > 2", isReversible ? nil : ""))
    guard let down else { return "{database: \(database), up: SELECT 1, down: SELECT 1}" }
    return "{database: \(database), up: \(quoted(up)), down: \(quoted(down)), destructive: x}"
  }

  private mutating func patch() -> String {
    let steps = [
      "{op: add, path: /new, value: \(scalar())}", "{op: remove, path: /b, if-missing: skip}",
      "{op: replace, path: /version, value: 1}", "{op: move, from: /list, path: /moved, if-missing: skip}",
      "{op: copy, from: /version, path: /copied, if-missing: skip}",
    ]
    return "["
      + (0..<2).map { _ in steps[Int.random(in: 0..<steps.count, using: &random)] }.joined(separator: ", ")
      + "]"
  }

  private mutating func one<T>(_ values: T...) -> T {
    values[Int.random(in: 0..<values.count, using: &random)]
  }
  private mutating func key() -> String { quoted(RandomContainer.keys.randomElement(using: &random) ?? "a") }
  private mutating func path() -> String { RandomContainer.paths.randomElement(using: &random) ?? "a" }
  /// A path that can carry an attribute: no link.
  private mutating func attributePath() -> String {
    RandomContainer.paths.filter { !$0.hasSuffix("link") }.randomElement(using: &random) ?? "a"
  }
  private mutating func account() -> String { RandomContainer.accounts.randomElement(using: &random) ?? "a" }
  private mutating func suite() -> String { one("", ", suite: group", "") }
  private func quoted(_ text: String) -> String { "\"\(text.replacing("\"", with: "\\\""))\"" }

  private mutating func twoKeys() -> (String, String) {
    while true {
      let (left, right) = (key(), key())
      if left != right { return (left, right) }
    }
  }

  private mutating func values() -> String {
    var pairs: [String: String] = [:]
    for _ in 0..<Int.random(in: 1...3, using: &random) { pairs[key()] = scalar() }
    return "{" + pairs.sorted { $0.key < $1.key }.map { "\($0): \($1)" }.joined(separator: ", ") + "}"
  }

  private mutating func scalar() -> String {
    one(
      "true", "false", "\(random.next() % 99)", "1.25", "\"yes\"", "text", "!date 2026-12-01", "!data AAEC",
      "[1, two]",
      "{x: 1, y: [false]}", "''")
  }

  /// A value that JSON can represent.
  private mutating func jsonScalar() -> String {
    one("true", "\(random.next() % 99)", "1.25", "text", "[1, two]", "{x: 1, y: [false]}")
  }
}
