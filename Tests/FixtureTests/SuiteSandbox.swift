import AppContainer
import DrydockTesting
import Foundation
import MigrationEngine
import TestSupport

/// Migrations and fixtures of a small app, for one test. A fixture has a database of three tasks and two settings.
final class SuiteSandbox {
  let directory: TemporaryDirectory
  var configuration = ContainerConfiguration()
  var options = FixtureSuite.Options()

  static let settings = "Library/Preferences/app.notes.plist"
  static let database = "Documents/notes.sqlite"

  init() throws {
    directory = try TemporaryDirectory()
    configuration.app = "app.notes"
    configuration.layout = .ios
    configuration.databases = ["notes": ["Documents/notes.sqlite"], "absent": ["Documents/absent.sqlite"]]
    configuration.versionMarkers = [.init(place: .defaults(key: "schema"))]
    for name in ["Migrations", "Fixtures"] {
      try RawFiles.createDirectories(directory(name))
    }
  }

  /// Runs a body with a sandbox of its own, for tests with several.
  static func with<T>(_ body: (SuiteSandbox) throws -> T) throws -> T {
    let sandbox = try SuiteSandbox()
    return try withExtendedLifetime(sandbox) { try body(sandbox) }
  }

  /// Writes three migrations and two fixtures that pass all checks, and their goldens.
  ///
  /// - Parameters:
  ///   - released: the version that is released.
  ///   - recorded: whether goldens are recorded now. It takes as long as a run, and many tests compare with none, or record later.
  func makeSound(released: Int? = nil, recorded: Bool = true) throws {
    try migration(
      "0001_start",
      """
        - defaults.set-default: {values: {theme: light, size: 10}}
      """)
    try migration(
      "0002_names",
      """
        - defaults.rename: {keys: {theme: look}}
        - sql: {database: notes, up: "UPDATE task SET title = upper(title) WHERE id = 1", down: "UPDATE task SET title = lower(title) WHERE id = 1"}
      """)
    try migration(
      "0003_notes",
      """
        - sql: {database: notes, up: ALTER TABLE task ADD COLUMN note TEXT, down: ALTER TABLE task DROP COLUMN note}
        - files.move: {from: Documents/note.md, to: Documents/Notes/note.md}
      """)
    try fixture("new", version: 0, settings: "")
    try fixture("one")
    if let released { try release(released) }
    if recorded { try record() }
  }

  func write(_ path: String, _ text: String) throws {
    let full = directory(path)
    let parent = String(full[..<(full.lastIndex(of: "/") ?? full.startIndex)])
    try RawFiles.createDirectories(parent)
    try RawFiles.write(Array(text.utf8), to: Array(full.utf8))
  }

  /// A migration by its name with the number, from its steps.
  func migration(_ name: String, _ steps: String, more: String = "") throws {
    try write("Migrations/\(name).yaml", "steps:\n\(steps)\n\(more)\n")
  }

  /// A fixture; what it has is what version 1 of the app has.
  func fixture(
    _ name: String, version: Int = 1, more: String = "", settings: String = "theme: dark\nsize: 12\n",
    sql: String? = nil
  ) throws {
    try write("Fixtures/\(name)/fixture.yaml", "version: \(version)\n\(more)\n")
    try write("Fixtures/\(name)/container/\(Self.settings).yaml", "schema: \(version)\n\(settings)")
    try write(
      "Fixtures/\(name)/container/\(Self.database).sql",
      sql
        ?? "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, done INTEGER);\n"
        + "INSERT INTO task VALUES (1, 'a', 0), (2, 'b', 1), (3, 'c', 1);\n")
    try write("Fixtures/\(name)/container/Documents/note.md", "A note.\n")
  }

  /// Says that the migrations up to a version are released, without freezing their files.
  func release(_ version: Int) throws {
    try write(
      "Migrations/releases.yaml",
      (1...version).map { "- release: \"1.\($0)\"\n  version: \($0)\n  migrations: []\n" }.joined())
  }

  func record() throws { try suite().record() }

  func catalog() throws -> MigrationCatalog { try MigrationCatalog.load(directory("Migrations")) }

  func suite(_ catalog: MigrationCatalog? = nil) throws -> FixtureSuite {
    try FixtureSuite(
      catalog ?? self.catalog(), fixtures: directory("Fixtures"), configuration: configuration,
      options: options)
  }

  func run() throws -> FixtureSuite.Report { try suite().run() }

  /// What is found, in short: `fixture: check place: message: expected / found (migration) file:line`.
  func found(_ catalog: MigrationCatalog? = nil) throws -> [String] {
    let result = try suite(catalog).run()
    let own = result.fixtures.flatMap { fixture in
      fixture.findings.map { "\(fixture.name): \(text($0))" }
    }
    return own + result.findings.map { "all: \(text($0))" }
  }

  /// The findings about losses by the number of the case whose names they have, of which each is a letter, the number and `x`;
  /// all others at -1.
  func losses() throws -> [Int: [String]] {
    var losses: [Int: [String]] = [:]
    for line in try found() where !line.contains("golden") && !line.contains("coverage") {
      let number = line.contains("lost-") ? line.firstMatch(of: /\b[tk]([0-9]+)x/).flatMap { Int($0.1) } : nil
      losses[number ?? -1, default: []].append(line)
    }
    return losses
  }

  private func text(_ finding: FixtureResult.Finding) -> String {
    let place = finding.place.map { " \($0)" } ?? ""
    let values =
      finding.expected == nil && finding.found == nil
      ? "" : ": \(finding.expected ?? "-") / \(finding.found ?? "-")"
    let migration = finding.migration.map { " (\($0))" } ?? ""
    let file = finding.file.map { " \($0):\(finding.line ?? 0)" } ?? ""
    return "\(finding.check.rawValue)\(place): \(finding.message)\(values)\(migration)\(file)"
      .replacing(directory.path + "/", with: "")
  }
}
