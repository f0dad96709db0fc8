import AppContainer
import DrydockErrors
import FileSystem
import Formats
import Foundation
import MigrationEngine
import Testing

@Suite struct VersionTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private typealias Marker = ContainerConfiguration.VersionMarker
  private static let setting = Marker(place: .defaults(key: "v"))

  private func detect(_ lab: Lab) throws -> DetectedVersion {
    try lab.look { try DetectedVersion.detect(in: $0) }
  }

  @Test func newContainers() throws {
    try Lab.with { lab in
      #expect(try detect(lab).source == .newContainer)
      for file in ["Library/Caches/x", "tmp/y", "Documents/.DS_Store"] as [ContainerPath] {
        try lab.write(file, "")
      }
      #expect(try detect(lab).version == 0)
      try lab.write("Documents/a.txt", "")
      expectFailure("set the version", code: .unknownVersion) { try detect(lab) }
    }
    try Lab.with { lab in
      try lab.set([:])
      #expect(failure { try detect(lab) }.code == .unknownVersion)
      lab.configuration.versionMarkers = [Self.setting]
      #expect(failure { try detect(lab) }.code == .unknownVersion)
    }
  }

  /// (value of the marker, history, `at`) → version or the error's code.
  @Test(
    arguments: [
      (0, nil, [:], 0, nil), (2, nil, [:], 2, nil),
      (2, 2, [:], 2, nil), (4, 2, [:], 4, nil),
      (1, 2, [:], nil, .contradiction),
      (nil, 2, [:], 2, nil), ("2", nil, [:], nil, .unknownVersion),
      (.real(2), nil, [:], nil, .unknownVersion),
      (true, nil, [:], nil, .unknownVersion), (-1, nil, [:], nil, .unknownVersion),
      (2, nil, [4: 2, 6: 3], 4, nil), (3, nil, [4: 2, 6: 3], 6, nil),
      (2, 5, [4: 2, 6: 3], 5, nil), (3, 5, [4: 2, 6: 3], 6, nil),
      (2, 6, [4: 2, 6: 3], nil, .contradiction), (0, nil, [4: 2, 6: 3], 0, nil),
      (0, 3, [4: 2, 6: 3], 3, nil), (1, nil, [4: 2, 6: 3], nil, .unknownVersion),
    ] as [(PropertyListValue?, Int?, [Int: Int], Int?, DrydockError.Code?)])
  func markers(
    _ value: PropertyListValue?, _ recorded: Int?, _ at: [Int: Int], _ version: Int?,
    _ code: DrydockError.Code?
  ) throws {
    try lab.migrations(6)
    try lab.set(["x": 1])
    if let recorded { try lab.baseline(recorded) }
    lab.configuration.versionMarkers = [Marker(place: .defaults(key: "v"), at: at)]
    if let value { try lab.set(["v": value]) }
    if let version {
      let detected = try detect(lab)
      #expect(detected.version == version)
      #expect((0...7).filter(detected.appliedExternally.contains) == Array((recorded ?? 0) + 1..<version + 1))
    } else {
      #expect(failure { try detect(lab) }.code == code)
    }
  }

  @Test func aMarkerFarBeyond() throws {
    try lab.migrations(1)
    lab.configuration.versionMarkers = [Self.setting]
    try lab.set(["v": .integer(.max)])
    let first = try lab.plan().problems
    #expect(first.map(\.code) == [.unconfirmedVersion])
    #expect(first.first?.message.contains("drydock baseline") == false, "there is no such version")
    try lab.release()
    let problems = try lab.plan().problems
    #expect(problems.map(\.code) == [.newer])
    #expect(problems.first?.message.contains("the migrations end with 1") == true)
  }

  /// Of a marker that a migration writes itself: the numbers of `at:`, the value of the migration, and whether it may.
  @Test(arguments: [
    ([0: 2], 3, false), ([0: 2, 1: 3], 3, true), ([:], 1, true), ([:], 7, false), ([0: 2], 2, true),
  ])
  func aNumberThatAMigrationWrites(_ at: [Int: Int], _ written: Int, _ isRight: Bool) throws {
    lab.configuration.versionMarkers = [
      Marker(place: .userVersion(database: "notes"), at: at), Marker(place: .defaults(key: "v"), at: at),
    ]
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); PRAGMA user_version = \(at[0] ?? 0)")
    try lab.set(["v": .integer(Int64(at[0] ?? 0))])
    try lab.migration(
      "0001_a.yaml",
      steps: [
        "sql: {database: notes, up: PRAGMA user_version = \(written), down: SELECT 1}",
        "defaults.set: {values: {v: \(written)}, if-exists: replace}",
      ], ["verify": ["sql: {database: notes, query: PRAGMA user_version, equals: \(written)}"]])
    let error = failure { try lab.migrate() }
    #expect(error.code == (isRight ? nil : .contradiction), "\(error.text)")
    if !isRight {
      #expect(
        error.text.contains("set the user_version of the database notes to \(written)")
          && error.text.contains("add `1: \(written)` to `at:`"), "\(error.text)")
    }
  }

  @Test("What is verified has the new version already")
  func verifyRunsLast() throws {
    lab.configuration.versionMarkers = [Marker(place: .userVersion(database: "notes"))]
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a)")
    for number in 1...2 {
      try lab.migration(
        "000\(number)_a.yaml",
        steps: ["sql: {database: notes, up: INSERT INTO t VALUES (1), down: SELECT 1}"],
        ["verify": ["sql: {database: notes, query: PRAGMA user_version, equals: \(number)}"]])
    }
    #expect(failure { try lab.migrate() }.text == "no error")
  }

  @Test func userVersionAndJSON() throws {
    lab.configuration.versionMarkers = [
      Marker(place: .userVersion(database: "notes")),
      Marker(place: .json(path: "Documents/s.json", pointer: "/a~1b/1")),
    ]
    try lab.migrations(6)
    try lab.release()
    try lab.database(Lab.oldDatabase, "CREATE TABLE t (a); PRAGMA user_version = 3;")
    #expect(try detect(lab).version == 3)
    try lab.write("Documents/s.json", #"{"a/b": [1, 3], "z": true}"#)
    #expect(try detect(lab).source == .marker("the user_version of the database notes"))
    #expect(try lab.migrate().to == 6)
    #expect(try detect(lab).version == 6)
    #expect(try lab.query(Lab.oldDatabase, "PRAGMA user_version") == [["user_version": 6]])
    let json = try lab.look { try $0.read("Documents/s.json") }
    #expect(
      try JSONSerialization.jsonObject(with: Data(json)) as? NSDictionary == ["a/b": [1, 6], "z": true])
    try lab.write("Documents/s.json", "{\"a/b\": [1, 7]}")
    #expect(failure { try detect(lab) }.code == .contradiction)
    try lab.write("Documents/s.json", "{\"a/b\": [1, true]}")
    #expect(failure { try detect(lab) }.code == .unknownVersion)
    try lab.write("Documents/s.json", "{")
    #expect(failure { try detect(lab) }.code == .unknownVersion)
  }

  @Test func markersAreKeptUpToDate() throws {
    try lab.migrations(6)
    lab.configuration.versionMarkers = [Marker(place: .defaults(key: "v"), at: [2: 10, 4: 20])]
    #expect(try lab.migrate(to: 1).to == 1)
    #expect(try lab.settings()?["v"] == nil)
    for (target, number) in [(2, 10), (3, 10), (6, 20)] as [(Int, Int64)] {
      try lab.migrate(to: target)
      #expect(try lab.settings()?["v"] == .integer(number))
      #expect(try detect(lab).version == target)
    }
    // Before the first number that is named the app's is 0: any other one would mean a later version.
    try lab.baseline(1)
    #expect(try lab.settings()?["v"] == 0)
    #expect(try detect(lab).version == 1)
  }

  @Test func theAppMigratedItself() throws {
    try lab.migrations(6)
    lab.configuration.versionMarkers = [Self.setting]
    try lab.migrate(to: 1)
    try lab.app(sets: "v", 6)
    let report = try lab.migrate()
    #expect(report.appliedExternally == [2, 3, 4, 5, 6] && report.migrations.isEmpty)
    #expect(try lab.history()?.records.map(\.origin) == [.applied] + Array(repeating: .app, count: 5))
    #expect(try lab.migrate().changedAnything == false)
    try lab.app(sets: "v", 7)
    expectFailure("the migrations end with 6") { try lab.migrate() }
  }

  @Test func baselines() throws {
    try lab.migrations(6)
    try lab.set(["x": 1])
    lab.configuration.versionMarkers = [Self.setting]
    #expect(try lab.baseline(3).isEmpty)
    #expect(try detect(lab).version == 3)
    #expect(try lab.settings() == ["x": 1, "v": 3])
    #expect(try lab.migrate(to: 4).from == 3)
    #expect(try lab.baseline(2).count == 1)
    #expect(try lab.history()?.records.map(\.number) == [1, 2])
    #expect(failure { try lab.baseline(7) }.code == .usage)
    #expect(failure { try lab.baseline(-1) }.code == .usage)
    try lab.write(lab.container.historyPath, "garbage")
    #expect(failure { try detect(lab) }.code == .damagedHistory)
    try lab.baseline(2)
    #expect(try detect(lab).version == 2)
  }

  /// Three migrations, and a container of version 3 of an app that counted before it had migrations of Drydock's.
  private func counted(at: [Int: Int] = [:], _ body: (Lab) throws -> Void) throws {
    try Lab.with { lab in
      try lab.migrations(3)
      try lab.set(["v": 3])
      lab.configuration.versionMarkers = [Marker(place: .defaults(key: "v"), at: at)]
      try body(lab)
    }
  }

  @Test func believesWhatWasReleased() throws {
    try counted { (lab: Lab) throws in
      try lab.release()
      #expect(try lab.migrate().appliedExternally == [1, 2, 3])
    }
    try counted { (lab: Lab) throws in
      try lab.removeMigration("0003_m.yaml")
      try lab.release()
      try lab.migration("0003_m.yaml", "steps: []\n")
      #expect(try lab.plan().problems.map(\.code) == [.unconfirmedVersion], "the third was never released")
      try lab.set(["v": 2])
      #expect(try lab.migrate().migrations.map(\.number) == [3])
    }
  }

  @Test func theNumberBeforeTheFirstIsTheOther() throws {
    try counted(at: [0: 3]) { (lab: Lab) throws in
      let plan = try lab.plan()
      #expect(plan.detected.version == 0 && plan.problems.isEmpty)
      #expect(try lab.migrate().migrations.map(\.number) == [1, 2, 3])
      #expect(try lab.settings()?["v"] == 3, "the app's number stays as it was")
      #expect(try lab.plan().detected.version == 3 && lab.plan().problems.isEmpty)
      for other in [0, 2, 4] as [Int64] {
        try lab.app(sets: "v", .integer(other))
        #expect(failure { try lab.plan() }.code == .unknownVersion, "\(other)")
      }
    }
    try counted(at: [0: 3, 2: 4]) { (lab: Lab) throws in
      try lab.migrate()
      #expect(try lab.settings()?["v"] == 4)
      try lab.rollback(to: 0, down: true)
      #expect(try lab.settings()?["v"] == 3)
      #expect(try lab.plan().detected.version == 0)
    }
  }

  @Test func absenceMeansAVersion() throws {
    try counted { (lab: Lab) throws in
      try lab.set(["x": 1])
      expectFailure("`absent: 0`", code: .unknownVersion) { try lab.plan() }
      lab.configuration.versionMarkers[0].absent = 0
      #expect(try lab.plan().detected.source.description == "the absence of the setting `v`")
      #expect(try lab.migrate().migrations.map(\.number) == [1, 2, 3])
      // From then on the history says it, and where there is a number, that.
      try lab.app(sets: "v", nil)
      #expect(try lab.plan().detected.version == 3 && lab.plan().problems.isEmpty)
    }
    try counted { (lab: Lab) throws in
      try lab.set([:])
      lab.configuration.versionMarkers[0].absent = 2
      #expect(try lab.migrate().migrations.map(\.number) == [3])
      #expect(try lab.history()?.records.map(\.origin) == [.app, .app, .applied])
    }
  }

  @Test func configuredMarkers() throws {
    func marker(_ text: String) throws -> Marker? {
      try lab.configuration("version-markers: [{defaults: v, \(text)}]\n").versionMarkers.first
    }
    let (absent, first) = (try marker("absent: 0"), try marker("at: {0: 7}"))
    #expect(absent == Marker(place: .defaults(key: "v"), absent: 0))
    #expect(first == Marker(place: .defaults(key: "v"), at: [0: 7]))
    for wrong in ["absent: -1", "absent: none"] {
      expectFailure("drydock.yaml:1:") { try marker(wrong) as Any }
    }
  }
}
