import AppContainer
import FixtureTesting
import Foundation
import MigrationEngine
import TestSupport

/// Migrations and fixtures of a small app, for one test. Version 1 has a database of tasks and two settings.
struct SuiteLab {
  let directory: TemporaryDirectory
  var configuration = AppContainer.Configuration()
  var options = SuiteOptions()

  static let settings = "Library/Preferences/app.notes.plist"
  static let database = "Documents/notes.sqlite"

  /// Runs a test with a lab that is removed afterwards.
  static func with<T>(_ body: (inout SuiteLab) throws -> T) throws -> T {
    try TemporaryDirectory.with { directory in
      var lab = SuiteLab(directory: directory)
      lab.configuration.app = "app.notes"
      lab.configuration.layout = .ios
      lab.configuration.databases = ["notes": ["Documents/notes.sqlite"]]
      lab.configuration.versionMarkers = [.init(place: .defaults(key: "schema"))]
      try FileManager.default.createDirectory(
        atPath: directory("Migrations"), withIntermediateDirectories: true)
      try FileManager.default.createDirectory(
        atPath: directory("Fixtures"), withIntermediateDirectories: true)
      return try body(&lab)
    }
  }

  // MARK: Making

  func write(_ path: String, _ text: String) throws {
    let full = directory(path)
    let parent = String(full[..<(full.lastIndex(of: "/") ?? full.startIndex)])
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    try RawFiles.write(Array(text.utf8), to: Array(full.utf8))
  }

  /// A migration by its name with the number, from its steps.
  func migration(_ name: String, _ steps: String, more: String = "") throws {
    try write("Migrations/\(name).yaml", "steps:\n\(steps)\n\(more)\n")
  }

  /// A fixture with a database of three tasks, `theme` and `size`.
  func fixture(
    _ name: String, version: Int = 1, more: String = "", settings: String = "theme: dark\nsize: 12\n",
    sql: String? = nil
  ) throws {
    try write("Fixtures/\(name)/fixture.yaml", "version: \(version)\n\(more)\n")
    try write(
      "Fixtures/\(name)/container/\(Self.settings).yaml", "schema: \(version)\n\(settings)")
    try write(
      "Fixtures/\(name)/container/\(Self.database).sql",
      sql
        ?? "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT, done INTEGER);\n"
        + "INSERT INTO task VALUES (1, 'a', 0), (2, 'b', 1), (3, 'c', 1);\n")
    try write("Fixtures/\(name)/container/Documents/note.md", "A note.\n")
  }

  // MARK: Running

  func catalog() throws -> MigrationCatalog { try MigrationCatalog.load(directory("Migrations")) }

  func suite() throws -> FixtureSuite {
    try FixtureSuite(
      catalog: catalog(), releases: Releases.read(directory("Migrations")), configuration: configuration,
      directory: directory("Fixtures"), options: options)
  }

  func run() throws -> SuiteResult { try suite().run() }

  /// What is found, in short, such as `golden Documents/notes.sqlite: task: … (0002_x)`; paths of the lab are left out.
  func found() throws -> [String] {
    let result = try run()
    let all = result.fixtures.flatMap(\.findings) + result.findings
    return all.map { finding in
      let place = finding.place.map { " \($0)" } ?? ""
      let values = [finding.expected, finding.found].map { $0 ?? "-" }.joined(separator: " / ")
      let migration = finding.migration.map { " (\($0))" } ?? ""
      return "\(finding.check.rawValue)\(place): \(finding.message): \(values)\(migration)"
        .replacing(directory.path + "/", with: "")
    }
  }
}
