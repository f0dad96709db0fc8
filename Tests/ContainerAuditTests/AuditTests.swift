import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import ContainerAudit
@testable import FileSystem
@testable import Formats

@Suite("Audit") struct AuditTests {
  private let sandbox: AuditSandbox
  init() throws { sandbox = try AuditSandbox() }

  @Test("Findings are one for each rule and column, with a count and three examples")
  func grouping() throws {
    try sandbox.database(
      "CREATE TABLE photo(id INTEGER PRIMARY KEY, path TEXT); "
        + "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
        + "INSERT INTO photo SELECT i, '/var/mobile/Containers/Data/' || i FROM n")
    for number in 0..<9 { try sandbox.put("Documents/Logs/\(number).log", "password=\(MadeUp.password)\n") }
    let findings = try sandbox.audit().findings
    #expect(findings.map(\.rule) == [.secretInLog, .pathInDatabase])
    #expect(findings.map(\.count) == [9, 500])
    #expect(findings.map(\.examples) == [["0.log", "1.log", "2.log"], []])
    #expect(findings.map(\.path) == ["Documents/Logs", "Library/Application Support/notes.sqlite"])
    #expect(findings.map(\.item) == [nil, "photo.path"])
  }

  @Test("Nothing in the container changes, not even the times of access")
  func unchanged() throws {
    try sandbox.settings(["auth_token": .string(MadeUp.password)])
    try sandbox.database("PRAGMA journal_mode = WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1)")
    try sandbox.put("Documents/a.txt", "text")
    let paths = try TreeListing(sandbox.folder("c")).paths.map { sandbox.folder("c/" + $0) }
    // The kernel moves a time of access that is older than the last change.
    for path in paths {
      let times = [timespec(tv_sec: 1_000_000_000, tv_nsec: 0), timespec(tv_sec: 1_700_000_000, tv_nsec: 0)]
      #expect(utimensat(AT_FDCWD, path, times, 0) == 0)
    }
    func accessed() throws -> [String: Int] {
      var result: [String: Int] = [:]
      for path in paths {
        var status = stat()
        #expect(stat(path, &status) == 0)
        result[path] = status.st_atim.tv_sec
      }
      return result
    }
    let before = try accessed()
    let report = try sandbox.audit()
    #expect(report.findings.map(\.rule) == [.secretInSettings])
    let after = try accessed()
    #expect(paths.filter { after[$0] != before[$0] } == [])
    #expect(try TreeListing(sandbox.folder("c")).paths.count == paths.count)
  }

  @Test("A rule that is off is reported with its reason, and another severity is used")
  func configuration() throws {
    sandbox.configuration.audit.rules = [
      .secretInSettings: .off(reason: "a demo account"), .pathInSettings: .severity(.error),
      .walLarge: .off(reason: "the app keeps it"),
    ]
    try sandbox.settings(["auth_token": .string(MadeUp.password), "file": "/var/mobile/Containers/Data/x"])
    let report = try sandbox.audit()
    #expect(report.findings.map(\.rule) == [.pathInSettings])
    #expect(report.findings.map(\.severity) == [.error])
    #expect(report.off.map(\.rule) == [.secretInSettings, .walLarge])
    #expect(report.off.map(\.findings) == [1, 0])
    #expect(report.off.map(\.reason) == ["a demo account", "the app keeps it"])
  }

  @Test("What is searched in part only is in the report")
  func limits() throws {
    try sandbox.database(
      "CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 50000) "
        + "INSERT INTO t SELECT i FROM n")
    try sandbox.put("Documents/large.txt", String(repeating: "text ", count: 1_000_000))
    let limits = try sandbox.audit().limits
    #expect(
      limits == [
        "Documents/large.txt: searched for secrets up to 4 MiB",
        "Library/Application Support/notes.sqlite: only the first 50000 rows of t were searched",
      ])
  }

  @Test("What cannot be examined is in the report, and the rest is examined")
  func unreadable() throws {
    try sandbox.put(
      "Documents/a.sqlite", bytes: Array("SQLite format 3\0".utf8) + [UInt8](repeating: 7, count: 4080))
    try sandbox.put(AuditSandbox.settings, "not a property list")
    try sandbox.put("Library/Preferences/com.example.other.plist", "<plist><dict>")
    try sandbox.put("Library/Vault/vault.age", "not a vault")
    try sandbox.put("tmp/a.log", "password=\(MadeUp.password)\n")
    let report = try sandbox.audit()
    #expect(report.findings.map(\.rule) == [.secretInLog, .settingsDamaged, .settingsDamaged])
    #expect(report.notChecked.count == 2, "\(report.notChecked)")
    #expect(report.unreadable.isEmpty)
  }

  @Test("A group's files are audited, too")
  func groups() throws {
    let id = "group.com.example.notes"
    let group = sandbox.folder("g")
    try Directory(sandbox.folder.path).createDirectory("g")
    try Directory(group).createDirectories("Library/Preferences")
    try Directory(group).create(
      "Library/Preferences/group.com.example.notes.plist",
      PropertyListFile(root: ["apiKey": .string(MadeUp.password)]).encoded())
    sandbox.configuration.groups = [id: group]
    sandbox.declare(privacy: [:], entitlements: ["com.apple.security.application-groups": [.string(id)]])
    let findings = try sandbox.audit().findings
    #expect(findings.map(\.rule) == [.secretInSettings, .requiredReasonMissing])
    #expect(findings.first?.path == ".groups/\(id)/Library/Preferences/\(id).plist")
    #expect(findings.last?.item == "NSPrivacyAccessedAPICategoryUserDefaults, 1C8F.1")
  }

  @Test("Names and documents of a hostile container are harmless")
  func hostile() throws {
    let name = "a\u{202e}b\n" + String(repeating: "x", count: 5000)
    try sandbox.database("CREATE TABLE \"\(name)\"(password); INSERT INTO \"\(name)\" VALUES ('a1b2c3d4')")
    // Each level refers to the one before it twice.
    var value = PropertyListValue.array([.string("text")])
    for _ in 0..<30 { value = .array([value, value]) }
    try sandbox.put("Documents/deep.json", String(repeating: "[", count: 100_000))
    try sandbox.put("Documents/half.json", #"{"password": ["#)
    try sandbox.put("Documents/half.plist", "<plist><dict><key>password</key><string>\(MadeUp.password)")
    let report = try sandbox.audit()
    #expect(report.findings.map(\.rule) == [.secretInDatabase])
    let item = report.findings.first?.item ?? ""
    #expect(item.count < 400 && !item.contains("\n") && !item.contains("\u{202e}"), "\(item)")
    var search = SecretValueSearch(budget: 1 << 20)
    #expect(search.evidence(in: value, name: "list") == nil && search.left <= 0)
    search = SecretValueSearch(budget: 1 << 20)
    #expect(!search.findsPath(in: value) && search.left <= 0)
  }

  @Test("A table that cannot be checked in one way is searched in the others")
  func partial() throws {
    try sandbox.database(
      "CREATE TABLE p(x); CREATE TABLE t(x REFERENCES p(x), password); INSERT INTO t VALUES (1, 'a1b2c3d4')"
    )
    let report = try sandbox.audit()
    #expect(report.findings.map(\.rule) == [.secretInDatabase, .foreignKeyWithoutIndex])
    #expect(
      report.notChecked.count == 1 && report.notChecked[0].contains("foreign key mismatch"), "\(report)")
  }

  @Test("A container in use is audited with what is in the log, and its files stay as they are")
  func inUse() throws {
    try sandbox.database(
      "PRAGMA journal_mode = WAL; CREATE TABLE account(password TEXT)", at: "Documents/a.sqlite")
    let app = try Command.spawn(
      try Tools.system("sqlite3"),
      [
        "-batch", sandbox.folder("c/Documents/a.sqlite"), "PRAGMA wal_autocheckpoint = 0",
        "INSERT INTO account VALUES ('\(MadeUp.password)')", ".shell echo ready", ".shell cat >/dev/null",
      ])
    try app.waitForLine("ready")
    let before = try TreeListing(sandbox.folder("c"))
    #expect(try sandbox.audit().findings.map(\.rule) == [.secretInDatabase])
    let after = try TreeListing(sandbox.folder("c"))
    #expect(after.differences(from: before, comparing: TreeListing.untouched) == [])
    app.closeInput()
    #expect(try app.wait().succeeded)
  }

  @Test("A name that is a secret is hidden in every place")
  func secretNames() throws {
    try sandbox.settings([MadeUp.github: "x"])
    try sandbox.put("Documents/\(MadeUp.stripe).log", "password=\(MadeUp.password)\n")
    try sandbox.database(
      "CREATE TABLE \"\(MadeUp.slack)\"(password); INSERT INTO \"\(MadeUp.slack)\" VALUES ('a1b2c3d4')")
    let report = try sandbox.audit()
    #expect(report.findings.map(\.rule) == [.secretInSettings, .secretInLog, .secretInDatabase])
    let text = String(decoding: try JSONEncoder().encode(report), as: UTF8.self)
    for secret in [MadeUp.github, MadeUp.stripe, MadeUp.slack] {
      #expect(!text.contains(secret), "\(text)")
    }
  }
}

@Suite("Audit configuration") struct AuditConfigurationTests {
  private func read(_ text: String) throws -> AuditConfiguration {
    try TemporaryDirectory.with { folder in
      try RawFiles.write(Array(text.utf8), to: Array(folder("drydock.yaml").utf8))
      return try ContainerConfiguration(file: folder("drydock.yaml"), sections: [.audit]).audit
    }
  }

  @Test func rules() throws {
    let audit = try read(
      """
      audit:
        protection: completeUnlessOpen
        rules:
          secret-in-log: {off: "logs are removed at each start"}
          wal-large: {severity: error}
      """)
    #expect(audit.protection == .completeUnlessOpen)
    #expect(
      audit.rules == [
        .secretInLog: .off(reason: "logs are removed at each start"), .walLarge: .severity(.error),
      ])
  }

  @Test(
    "A mistake has its place, and the nearest word",
    arguments: [
      ("audit: {rulez: {}}", "1:9: unknown key `rulez` in `audit`; did you mean `rules`?"),
      ("audit: {rules: {secret-in-setings: {off: x}}}", "did you mean `secret-in-settings`?"),
      ("audit: {rules: {wal-large: off}}", "1:28: a rule is switched off with a reason"),
      ("audit: {rules: {wal-large: {off: \" \"}}}", "`off` needs a reason"),
      ("audit: {rules: {wal-large: {off: true}}}", "`off`, the reason, is a text"),
      ("audit: {rules: {wal-large: {severity: warn}}}", "one of note, warning, error"),
      ("audit: {rules: {wal-large: {}}}", "one of `off` and `severity`"),
      ("audit: {protection: compleet}", "did you mean `complete`?"),
    ])
  func mistakes(_ text: String, _ message: String) throws {
    let error = try #require(throws: DrydockError.self) { try read(text) }
    #expect(error.code == .badConfiguration)
    #expect(error.message.contains(message), "\(error.message)")
  }
}
