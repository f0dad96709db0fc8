import Foundation
import Testing

/// Migrations of settings, vault items, documents and files that lose data, and others that do not, all in one run on one
/// fixture. `K` stands for a name that each has of its own.
@Suite struct StoreLossTests {
  private struct Case {
    var steps: String
    /// Settings, an item's value, and files below `Documents`, with their contents.
    var settings = "", item: String?, files: [String: String] = [:]
    /// The documents in its table `K`.
    var rows: [String] = []
  }

  private static func settings(_ settings: String, _ steps: String) -> Case {
    Case(steps: steps, settings: settings)
  }
  private static func item(_ value: String, _ steps: String, settings: String = "") -> Case {
    Case(steps: steps, settings: settings, item: value)
  }
  private static func files(_ files: [String: String], _ steps: String, rows: String...) -> Case {
    Case(steps: steps, files: files, rows: rows)
  }
  /// A patch of a setting, of the JSON document, and an assignment in the row of a document.
  private static func patch(_ settings: String, _ operation: String) -> Case {
    Case(steps: "defaults.patch: {key: K, patch: [{\(operation)}]}", settings: settings)
  }
  private static func patch(_ operation: String) -> Case {
    files(["K.json": document], "files.patch: {path: Documents/K.json, patch: [{\(operation)}]}")
  }
  private static func update(_ assignments: String) -> Case {
    files([:], "sql: {database: notes, up: \"UPDATE K SET \(assignments) WHERE id = 1\"}", rows: document)
  }
  /// A step that changes the settings of a property list with Python; `d` is the dictionary.
  private static func python(_ code: String) -> String {
    let program =
      "import plistlib; p='Library/Preferences/app.notes.plist'; d=plistlib.load(open(p,'rb')); \(code); plistlib.dump(d, open(p,'wb'))"
    return "script: {program: python3, arguments: [-c, \"\(program)\"]}"
  }
  private static func shell(_ code: String) -> String {
    "script: {program: sh, arguments: [-c, \"\(code)\"]}"
  }
  private static let document =
    #"{"name": "Ada Lovelace", "tags": ["red", "green"], "size": {"w": 3, "h": 4.75}}"#

  private static let lossy: [Case] = [
    // Settings.
    settings("K: Ada Lovelace", "defaults.convert: {key: K, map: {Bob: 1}, unmapped: delete}"),
    settings("K: Ada\nK_new: Bob", "defaults.rename: {keys: {K: K_new}, if-exists: replace}"),
    settings("K: Ada\nK_new: Bob", "defaults.convert: {key: K, to: K_new, type: string, if-exists: replace}"),
    settings(
      "K: Ada\nK_new: Bob",
      "defaults.compute: {key: K_new, value: 'NULL', if-null: delete, if-exists: replace}"),
    settings("K: 14", "defaults.convert: {key: K, map: {15: a}, unmapped: delete}"),
    patch("K: {theme: dark, size: 12}", "op: remove, path: /theme"),
    patch("K: {theme: dark, size: 12}", "op: replace, path: '', value: {}"),
    patch("K: [red, green, blue]", "op: remove, path: /0"),
    patch("K: [red, green, blue]", "op: remove, path: /2"),
    patch("K: {a: {b: {c: deep value}}}", "op: remove, path: /a/b"),
    patch(#"K: '{"theme": "dark", "size": 12}'"#, "op: remove, path: /theme"),
    settings("K: Ada Lovelace", "defaults.compute: {key: K, value: 'substr(:K, 1, 3)'}"),
    settings("K: Ada Lovelace", "defaults.compute: {key: K, value: \"''\", if-exists: replace}"),
    settings("K: 2.75", "defaults.compute: {key: K, value: 'CAST(:K AS INTEGER)'}"),
    settings("K: 2.754", "defaults.compute: {key: K, value: 'round(:K, 1)'}"),
    settings("K: 5", "defaults.compute: {key: K, value: ':K > 0', type: boolean}"),
    settings("K: '00123'", "defaults.convert: {key: K, type: integer}"),
    settings("K: Ada", python("del d['K']")), settings("K: Ada Lovelace", python("d['K'] = 'Ada'")),
    settings("K: [a, bc, def]", python("d['K'] = []")),
    settings("K: {a: x1, b: y2}", python("d['K'].pop('b')")),
    settings("K: !data AAECAwQF", python("d['K'] = d['K'][:2]")), settings("K: Ada", python("d['K'] = ''")),
    settings("K: !date 2024-05-06T07:08:09Z", python("d['K'] = d['K'].replace(hour=0, minute=0, second=0)")),
    settings(
      #"K: '{"version": 1, "data": {"name": "Ada"}}'"#,
      "defaults.document-migrate: {key: K, versions: {2: {steps: [{op: remove, path: /name}]}}}"),
    Case(
      steps: "defaults.move-to-file: {key: K, to: Documents/K.txt, if-exists: replace}",
      settings: "K: long text",
      files: ["K.txt": "other"]),
    // Items.
    item(
      "K-secret", "vault.convert: {service: K, fields: [user, password], separator: ':', unmapped: delete}"),
    item("K-secret", "vault.compute: {service: K, value: 'substr(:value, 1, 3)'}"),
    item("K-secret", "vault.compute: {service: K, value: 'NULL', if-null: delete}"),
    item(
      "K-secret", "vault.move-from-defaults: {key: K_token, service: K, account: auth, if-exists: replace}",
      settings: "K_token: other"),
    // Documents and files.
    patch("op: remove, path: /name"),
    patch("op: remove, path: /tags/0"),
    patch("op: replace, path: /name, value: Ada"),
    patch("op: replace, path: /size/h, value: 5"),
    patch("op: replace, path: '', value: {}"),
    files(["K.json": document], shell("echo {} > Documents/K.json")),
    files(["K.json": document], shell("rm Documents/K.json")),
    files(["K.txt": "first line\nsecond line\n"], shell("head -1 Documents/K.txt > t; mv t Documents/K.txt")),
    files(["K.txt": "first line\n"], shell(": > Documents/K.txt")),
    files(["K.txt": "first line\n"], shell("rm Documents/K.txt")),
    files(
      ["K.txt": "one", "K-2.txt": "two"],
      "files.move: {from: Documents/K.txt, to: Documents/K-2.txt, if-exists: replace}"),
    files(
      ["K.txt": "one", "K-2.txt": "two"],
      "files.copy: {from: Documents/K.txt, to: Documents/K-2.txt, if-exists: replace}"),
    files(["K.txt": "one"], "files.write: {path: Documents/K.txt, text: other, if-exists: replace}"),
    files(
      ["K.json": #"{"motto": "festina lente K"}"#],
      #"files.write: {path: Documents/K.json, text: '{"motto": "sapere aude"}', if-exists: replace}"#),
    files(
      ["K/a.sqlite.sql": "CREATE TABLE t (a); INSERT INTO t VALUES (1);"],
      "files.delete: {path: \"Documents/K/*\", destructive: old caches}"),
    files(
      ["K.txt": "first words", "K-2.txt": "second words"], shell("cp Documents/K.txt Documents/K-2.txt")),
    files(["K.txt": "some words"], shell("ln -sf note.md Documents/K.txt")),
    files(["K.txt": "{\"a\": 1}\n{\"a\": 2}\n"], shell("head -1 Documents/K.txt > t; mv t Documents/K.txt")),
    patch("op: copy, from: /name, path: /size/w"),
    // Fields of documents in a column.
    update("doc = json_remove(doc, '$.name')"),
    update("doc = json_set(doc, '$.size', 1)"),
  ]

  private static let harmless: [Case] = [
    files(
      ["K.json": document],
      "files.import-column: {database: notes, table: K, column: more, from: \"'Documents/K.json'\", files: remove}",
      rows: "-"),
    settings("K: {a: {b: 1234}, c: text}", "vault.move-from-defaults: {key: K, service: K, as: json}"),
    files(["K.txt": "some words"], shell("gzip Documents/K.txt")),
    files(
      [:],
      "sql: {database: notes, up: \"CREATE TABLE K_tag (id, tag); INSERT INTO K_tag SELECT K.id, j.value FROM K, json_each(doc, '$.tags') AS j; UPDATE K SET doc = json_remove(doc, '$.tags') WHERE id = 1\"}",
      rows: document),
    settings("K: Ada", "defaults.rename: {keys: {K: K_new}}"),
    settings("K: dark", "defaults.convert: {key: K, map: {dark: 2}}"),
    settings("K: true", "defaults.convert: {key: K, to: K_theme, map: {true: dark, false: light}}"),
    settings("K: true", "defaults.convert: {key: K, type: integer}"),
    settings(
      "K: true\nK_theme: light",
      "defaults.convert: {key: K, to: K_theme, map: {true: dark, false: light}, if-exists: replace}"),
    settings("K: 3", "defaults.convert: {key: K, type: string}"),
    settings("K: '42'", "defaults.convert: {key: K, type: integer}"),
    settings("K: 2.75", "defaults.convert: {key: K, type: string}"),
    settings("K: 1", "defaults.convert: {key: K, type: boolean}"),
    settings("K: x", "defaults.set: {values: {K: y}, if-exists: replace}"),
    settings("", "defaults.set-default: {values: {K: y}}"),
    settings("K: x", "defaults.copy: {to: {file: Documents/K.plist}, keys: [K]}"),
    settings("K: x", "defaults.move: {to: {file: Documents/K.plist}, keys: [K]}"),
    settings("K: x", "defaults.delete: {keys: K, destructive: not used}"),
    patch("K: {theme: dark, size: 12}", "op: move, from: /theme, path: /look"),
    patch("K: {theme: dark, size: 12}", "op: replace, path: /size, value: 14"),
    settings("K: [b, a]", python("d['K'] = sorted(d['K'])")),
    patch("K: [a, b]", "op: add, path: /-, value: c"),
    settings("K: {a: x1, b: y2}", python("d['K'] = [d['K']['a'], d['K']['b']]")),
    settings("K: {a: x1, b: y2}", python("d['K_a'] = d['K']['a']; d['K_b'] = d['K']['b']; del d['K']")),
    settings("K: Ada  ", "defaults.compute: {key: K, value: 'trim(:K)'}"),
    settings("K: Ada", "defaults.compute: {key: K, value: 'upper(:K)'}"),
    settings("K: Ada\nK_last: Lovelace", python("d['K'] = d['K'] + ' ' + d.pop('K_last')")),
    settings("K: 12", "defaults.compute: {key: K, value: ':K * 1000'}"),
    settings("K: some text", "defaults.move-to-file: {key: K, to: Documents/K-moved.txt}"),
    settings(
      "K: {a: x1, b: [1, 2]}", "defaults.move-to-file: {key: K, to: Documents/K-moved.json, format: json}"),
    settings("K: some token", "vault.move-from-defaults: {key: K, service: K}"),
    settings("K: 12", "vault.move-from-defaults: {key: K, service: K, as: text}"),
    settings(
      #"K: '{"version": 1, "data": {"name": "Ada"}}'"#,
      "defaults.document-migrate: {key: K, versions: {2: {steps: [{op: move, from: /name, path: /title}]}}}"),
    settings("K: '2024-05-06T07:08:09Z'", "defaults.convert: {key: K, type: date}"),
    settings("K: ''", python("del d['K']")),
    item("K-secret", "vault.rename: {service: K, to: {service: K.new}}"),
    item("K-secret", "vault.set-accessibility: {service: K, accessible: afterFirstUnlock}"),
    item("K-user:pw", "vault.convert: {service: K, fields: [user, password], separator: ':'}"),
    item("K-secret", "vault.compute: {service: K, value: \"'Bearer ' || :value\"}"),
    item("K-secret", "vault.delete: {service: K, destructive: not used}"),
    files(["K.txt": "one"], "files.move: {from: Documents/K.txt, to: Documents/new/K.txt}"),
    files(["K.txt": "one"], "files.copy: {from: Documents/K.txt, to: Documents/new/K.txt}"),
    files(["K.txt": "one"], "files.delete: {path: Documents/K.txt, destructive: not used}"),
    files(
      ["K-1.txt": "one", "K-2.txt": "two"], "files.delete: {path: \"Documents/K-*\", destructive: not used}"),
    files(["K.txt": "one\n"], shell("echo two >> Documents/K.txt")),
    files(["K.txt": "one\n"], shell("cat Documents/K.txt >> Documents/note.md; rm Documents/K.txt")),
    files(["K.txt": "one\n"], shell("tr a-z A-Z < Documents/K.txt > t; mv t Documents/K.txt")),
    patch("op: move, from: /name, path: /title"),
    files(["K.json": document], shell("python3 -m json.tool Documents/K.json t; mv t Documents/K.json")),
    files(["K.json": document], "files.move: {from: Documents/K.json, to: Documents/K-new.json}"),
    patch("op: replace, path: /size/w, value: 7"),
    files(
      ["K.sqlite.sql": "CREATE TABLE t (a); INSERT INTO t VALUES (1);"],
      "files.delete: {path: Documents/K.sqlite, destructive: a cache}"),
    files(
      ["K.sqlite.sql": "CREATE TABLE t (a); INSERT INTO t VALUES (1);"],
      "files.move: {from: Documents/K.sqlite, to: Documents/new/K.sqlite}"),
    update("doc = json_set(doc, '$.more', 1)"),
    update("doc = json_remove(json_set(doc, '$.title', doc ->> '$.name'), '$.name')"),
    update("more = doc ->> '$.name', doc = json_remove(doc, '$.name')"),
    update("doc = json_set(doc, '$.size.w', 9)"),
    files(
      [:],
      "files.export-column: {database: notes, table: K, column: doc, to: \"'Documents/K.out'\", replace-with: 'null'}",
      rows: "a long text"),
    files(
      ["K.bin": "image bytes"],
      "files.import-column: {database: notes, table: K, column: more, from: \"'Documents/K.bin'\", files: remove}",
      rows: "-"),
  ]

  /// Runs all of them, and gives the findings about losses by the number of the case.
  private func found(_ cases: [Case]) throws -> [Int: [String]] {
    try SuiteSandbox.with { sandbox in
      var (settings, steps, items, rows) = ("", "", "", "")
      for (number, item) in cases.enumerated() {
        func named(_ text: String) -> String {
          text.replacing(/\bK(?=\b|_|-|[.])/.wordBoundaryKind(.simple), with: "k\(number)x")
        }
        settings += item.settings.isEmpty ? "" : named(item.settings) + "\n"
        steps += "  - \(named(item.steps))\n"
        if let value = item.item {
          items +=
            "    - {service: k\(number)x, account: auth, accessible: whenUnlocked, value: '\(named(value))'}\n"
        }
        for (name, text) in item.files {
          try sandbox.write("Fixtures/one/container/Documents/\(named(name))", text)
        }
        for row in item.rows {
          rows +=
            "CREATE TABLE k\(number)x (id INTEGER PRIMARY KEY, doc TEXT, more); INSERT INTO k\(number)x VALUES (1, '\(row)', NULL);\n"
        }
      }
      try sandbox.migration("0001_all", steps, more: "irreversible: true\n")
      try sandbox.fixture(
        "one", version: 0, more: "expect: {settings: {schema: 1}}\ncontainer:\n  vault:\n\(items)",
        settings: settings,
        sql: rows)
      return try sandbox.losses()
    }
  }

  @Test("Each migration that loses values of a store is found")
  func lossyOnes() throws {
    let found = try found(Self.lossy)
    // A field of a document in a column is found in the table, and a list's first step has a file of its own.
    for (number, item) in Self.lossy.enumerated() where found[number] == nil {
      Issue.record("not found: \(item.steps)")
    }
    #expect(found[-1] == nil, "\(found[-1] ?? [])")
  }

  @Test("No migration that keeps them is reported")
  func harmlessOnes() throws {
    for (number, lines) in try found(Self.harmless).sorted(by: { $0.key < $1.key }) {
      Issue.record("\(number < 0 ? "" : Self.harmless[number].steps): \(lines)")
    }
  }
}
