@testable import ContainerDiff
@testable import Drydock
@testable import DrydockTesting
import Foundation
@testable import MigrationEngine
@testable import Reports

/// Pages made by hand, with values as they are, and with values that are made to do harm.
enum PageSamples {
  /// Texts that would act on a page, or on who reads it.
  static let hostile = [
    "<script>document.title='seized'</script>", "\"><img src=x onerror=\"document.title='seized'\">",
    "</style><script>document.title='seized'</script>",
    "</title></head><body onload=document.title='seized'>",
    "--><script>document.title='seized'</script>", "' onmouseover='document.title=1' x='",
    "javascript:document.title='seized'", "https://example.com/\"><base href=\"https://example.com/\">",
    "{{title}}{{{word}}}{{>page}}{{#sections}}", "&lt;b&gt;&amp;", "]]>", "<!-- ",
    // A quote with an accent is one character to Swift.
    "\"\u{301} onfocus=document.title='seized' \u{D4E}\" autofocus=\"", "<\u{301}b>", "\u{600}<i>",
    "invoice\u{202E}fdp.exe", "\u{2066}\u{2067}\u{200E}\u{200F}\u{61C}",
    "\u{0}\u{7}\u{1B}[31m\u{85}\u{FFFE}\u{FEFF}",
    "one\r\ntwo\tthree\u{2028}four", "Z" + String(repeating: "\u{351}", count: 60), "\u{E0041}\u{3164}",
    String(decoding: [0x61, 0xFF, 0xC0, 0x62] as [UInt8], as: UTF8.self), "שלום עולם", "👩‍👩‍👧‍👦 é 日本語", "",
  ]
  /// Far beyond what a page shows of a text; `HTMLPageTests.long` has one of a megabyte.
  static let long = String(repeating: "A long text without end; ", count: 2_000)

  private static func path(_ text: String) throws -> ContainerPath { try ContainerPath(text) }

  /// A difference in all stores; each text in a different place.
  static func difference(texts: [String], rows: Int) throws -> ContainerDifference {
    var next = 0
    func text() -> String {
      next += 1
      return texts[next % texts.count]
    }
    func field(_ name: String) -> ContainerDifference.Field {
      .init(name: name, before: text(), after: text())
    }
    var difference = ContainerDifference()
    let changes: [ContainerDifference.Change] = [.added, .removed, .changed]
    for index in 0..<(3 * texts.count) {
      let change = changes[index % 3]
      difference.settings.append(
        .init(
          file: try path("Library/Preferences/\(index / texts.count).plist"), key: text(), change: change,
          before: change == .added ? nil : text(), after: change == .removed ? nil : text()))
    }
    let items = changes.map { change in
      ContainerDifference.VaultItem(
        name: text(), class: "genericPassword", change: change, attributes: [field(text()), field("label")],
        valueBefore: "(secret, 12 characters, #01234567)", valueAfter: nil)
    }
    difference.vault = [
      .init(
        path: try path("Library/Vault/vault.age"), change: .changed, items: items, recipientsBefore: [text()],
        recipientsAfter: [text(), text()], deviceBefore: text(), deviceAfter: text()),
      .init(path: try path("Library/Vault/old.age"), change: .removed, problem: text()),
    ]
    var database = ContainerDifference.Database(
      path: try path("Library/notes.sqlite"), movedFrom: try path("Documents/notes.sqlite"), change: .added)
    database.schema = [
      .init(kind: "pragma", name: "user_version", change: .changed, before: "1", after: "2"),
      .init(
        kind: "table", name: text(), change: .changed,
        before: "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT DEFAULT '\(text())', due REAL)",
        after: "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT DEFAULT '\(text())', due REAL , notes)",
        columns: [.init(name: "notes", change: .added)]),
      .init(
        kind: "view", name: text(), change: .added, after: "CREATE VIEW v AS\nSELECT \(text())\n\(text())"),
      .init(kind: "trigger", name: text(), change: .removed, before: text()),
    ]
    for change in changes {
      database.tables.append(
        .init(
          name: text(), added: change == .added ? rows : 0, removed: change == .removed ? rows : 0,
          changed: change == .changed ? rows : 0,
          rows: (0..<min(rows, HTMLPage.rowLimit)).map { number in
            .init(
              change: change, key: [.init(name: "id", before: "\(number)", after: "\(number)")],
              columns: [field("title"), field(texts[number % texts.count])])
          }))
    }
    let damaged = ContainerDifference.Database(path: try path("cache.db"), change: .changed, problem: text())
    difference.databases = [database, damaged]
    difference.files = try (0..<60).map { index in
      let name = texts[index % texts.count].prefix(60)
        .replacing("\u{0}", with: "").replacing("/", with: "-")
      return ContainerDifference.File(
        path: try path("Documents/\(index) \(name)"), type: index % 7 == 0 ? .directory : .file,
        change: changes[index % 3], aspects: [.content, .mode], sizeBefore: UInt64(index * 1000),
        sizeAfter: UInt64(index * index * 1000), modeBefore: "644", modeAfter: "600")
    }
    return difference
  }

  static func dryRun(texts: [String], rows: Int) throws -> Report {
    let report = MigrationReport(
      from: 1, to: 7,
      migrations: (2...7).map { number in
        .init(
          number: number, name: texts[number % texts.count], summary: texts[(number + 1) % texts.count],
          milliseconds: number * 700, notes: [texts[(number + 2) % texts.count]],
          missingDatabases: number == 7 ? [texts[0]] : nil)
      }, appliedExternally: [1], notes: texts)
    return Report(
      dryRun: report, changing: try difference(texts: texts, rows: rows), app: texts[0], instance: texts[1],
      container: texts[2])
  }

  static func comparison(texts: [String]) throws -> Report {
    let opening = texts.map { Report.Line($0, depth: 0) }
    let omitted = texts.map { NotCompared(path: "Library/Caches", reason: $0, isLoss: true) }
    return Report(
      comparing: (texts[0], texts[3]), opening, try difference(texts: texts, rows: 3), compared: 5,
      notCompared: omitted)
  }

  static func suite(texts: [String]) -> Report {
    var result = ReportSamples.everything
    for (number, text) in texts.enumerated() {
      var findings: [FixtureResult.Finding] = []
      for place in [text, nil] {
        var finding = FixtureResult.Finding(
          FixtureResult.Finding.Check.allCases[number % FixtureResult.Finding.Check.allCases.count], text,
          place: place)
        (finding.expected, finding.found, finding.file, finding.migration) = (text, text + "!", text, text)
        (finding.pattern, finding.count, finding.noun) = (
          "Documents/notes.sqlite: task.title", number + 1, "row"
        )
        findings.append(finding)
      }
      var fixture = ReportSamples.fixture(text, number % 5 == 0 ? .knownFailure : .failed, findings)
      (fixture.summary, fixture.kept, fixture.notes, fixture.knownFailure) = (text, text, [text], text)
      result.fixtures.append(fixture)
    }
    result.notes = texts
    return Report(result, from: "/repo")
  }

  static func inspection(texts: [String]) throws -> Report {
    // Made as a program reads the documented JSON.
    func object(_ index: Int, _ rest: [String: Any]) -> [String: Any] {
      rest.merging(["path": "Documents/\(index)", "bytes": index * index * 1000]) { $1 }
    }
    let indices = texts.indices
    let document: [String: Any] = [
      "root": texts[0], "app": texts[1], "instance": texts[2], "layout": "ios",
      "groups": texts.map { ["id": $0, "root": $0, "exists": false] as [String: Any] },
      "versionProblem": texts[3],
      "settings": indices.map { object($0, ["problem": texts[$0]]) },
      "databases": indices.map { object($0, ["logBytes": 5, "tables": $0]) },
      "vault": "Library/Vault/vault.age", "vaultBytes": 400, "vaultEncryption": texts[4],
      "vaultItems": texts, "vaultProblem": texts[0], "files": 7, "fileBytes": 123_456_789,
      "excluded": indices.map {
        object(
          $0,
          [
            "rule": ["rule": "pattern", "origin": "Documents/\($0)", "detail": texts[$0]] as [String: Any],
            "files": $0, "pathsBelow": 0, "diskBytes": 4096 * $0,
          ])
      },
      "warnings": texts.map { ["kind": "rule", "message": $0] },
    ]
    let data = try JSONSerialization.data(withJSONObject: document)
    let inspection = try JSONDecoder().decode(ContainerInspection.self, from: data)
    return Report(inspection, pending: texts)
  }

  static func audit(texts: [String]) throws -> Report {
    let findings = texts.enumerated().map { number, text -> [String: Any] in
      [
        "rule": AuditRule.all[number % 5].id.rawValue, "severity": ["error", "warning", "note"][number % 3],
        "path": text, "item": text, "message": text, "count": number, "unit": "row",
        "examples": [text, text],
        "fix": text,
      ]
    }
    let document: [String: Any] = [
      "root": texts[0], "app": texts[1], "instance": texts[2], "layout": "ios", "findings": findings,
      "off": [["rule": AuditRule.all[6].id.rawValue, "reason": texts[0], "findings": 2] as [String: Any]],
      "limits": texts, "notChecked": texts, "unreadable": texts,
    ]
    let data = try JSONSerialization.data(withJSONObject: document)
    return Report(try JSONDecoder().decode(AuditReport.self, from: data))
  }

  /// Values as in most pages.
  static let plain = [
    "\"Ada Lovelace\"", "0002_rename_settings", "com.example.notes", "\"dark\"", "blob (5 bytes)",
  ]

  /// Every kind of page, and what is in it.
  static func pages(_ texts: [String]) throws -> [(name: String, page: HTMLPage)] {
    [
      ("dry run", try dryRun(texts: texts, rows: 22)), ("comparison", try comparison(texts: texts)),
      ("suite", suite(texts: texts)), ("inspection", try inspection(texts: texts)),
      ("audit", try audit(texts: texts)),
      ("failure", Report(failed: texts[0], title: texts[1], lines: texts)),
      ("run", Report(run(texts: texts))),
    ].map { ($0, HTMLPage($1)) }
  }

  /// A run over many containers with all that a summary can have.
  private static func run(texts: [String]) -> RunSummary {
    var summary = RunSummary()
    (summary.commands, summary.runs, summary.containers) = (texts, texts, 100_000)
    summary.states = Dictionary(uniqueKeysWithValues: RunState.allCases.map { ($0.rawValue, 20_000) })
    summary.failures = texts.map { .init(code: $0, exitCode: 1, count: 7, container: $0, message: $0) }
    summary.versions = [.init(before: 1, after: 2, count: 3), .init(before: nil, after: 2, count: 1)]
    summary.slowest = texts.prefix(10).map { .init(container: $0, seconds: 1234.5) }
    summary.shards = texts.map {
      .init(
        command: $0, run: $0, count: 8, complete: 4, incompleteCount: 2, missingCount: 2,
        incomplete: ["1/8", "2/8"], missing: ["3/8", "4/8"])
    }
    (summary.repeatedCount, summary.repeated) = (30, texts)
    (summary.changedAgainCount, summary.changedAgain) = (30, texts)
    summary.problems = texts.map { .init(file: $0, line: 3, message: $0) }
    summary.problemCount = 5000
    (summary.firstDone, summary.lastDone) = (texts[0], texts[1])
    return summary
  }
}
