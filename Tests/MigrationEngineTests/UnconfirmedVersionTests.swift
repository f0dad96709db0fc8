import AppContainer
import MigrationEngine
import Testing

/// An app that counted its own schema before it had migrations of Drydock's.
@Suite struct UnconfirmedVersionTests {
  private let lab: Lab

  init() throws { lab = try Lab() }

  private typealias Marker = ContainerConfiguration.VersionMarker

  /// Three migrations, and a container of the app's own version 3.
  private func prepared(_ lab: Lab, at: [Int: Int] = [:]) throws {
    try lab.migrations(3)
    try lab.set(["v": .integer(3)])
    lab.configuration.versionMarkers = [Marker(place: .defaults(key: "v"), at: at)]
  }

  @Test func believesWhatWasReleased() throws {
    try Lab.with { lab in
      try prepared(lab)
      try lab.release()
      #expect(try lab.migrate().appliedExternally == [1, 2, 3])
    }
    try Lab.with { lab in
      try prepared(lab)
      try lab.removeMigration("0003_m.yaml")
      try lab.release()
      try lab.migration("0003_m.yaml", "steps: []\n")
      #expect(try lab.plan().problems.map(\.code) == [.unconfirmedVersion], "the third was never released")
      try lab.set(["v": .integer(2)])
      #expect(try lab.migrate().migrations.map(\.number) == [3])
    }
  }

  @Test func theNumberBeforeTheFirstIsTheOther() throws {
    try Lab.with { lab in
      try prepared(lab, at: [0: 3])
      let plan = try lab.plan()
      #expect(plan.detected.version == 0 && plan.problems.isEmpty)
      #expect(try lab.migrate().migrations.map(\.number) == [1, 2, 3])
      #expect(try lab.settings()?["v"] == .integer(3), "the app's number stays as it was")
      #expect(try lab.plan().detected.version == 3 && lab.plan().problems.isEmpty)
      for other in [0, 2, 4] as [Int64] {
        try lab.app(sets: "v", .integer(other))
        #expect(failure { try lab.plan() }.code == .unknownVersion, "\(other)")
      }
    }
    try Lab.with { lab in
      try prepared(lab, at: [0: 3, 2: 4])
      try lab.migrate()
      #expect(try lab.settings()?["v"] == .integer(4))
      try lab.rollback(to: 0, down: true)
      #expect(try lab.settings()?["v"] == .integer(3))
      #expect(try lab.plan().detected.version == 0)
    }
  }

  @Test func absenceMeansAVersion() throws {
    try Lab.with { lab in
      try prepared(lab)
      try lab.set(["x": .integer(1)])
      expectFailure("`absent: 0`", code: .unknownVersion) { try lab.plan() }
      lab.configuration.versionMarkers[0].absent = 0
      #expect(try lab.plan().detected.source.description == "the absence of the setting `v`")
      #expect(try lab.migrate().migrations.map(\.number) == [1, 2, 3])
      // From then on the history says it, and where there is a number, that.
      try lab.app(sets: "v", nil)
      #expect(try lab.plan().detected.version == 3 && lab.plan().problems.isEmpty)
    }
    try Lab.with { lab in
      try prepared(lab)
      try lab.set([:])
      lab.configuration.versionMarkers[0].absent = 2
      #expect(try lab.migrate().migrations.map(\.number) == [3])
      #expect(try lab.history()?.records.map(\.origin) == [.app, .app, .applied])
    }
  }

  @Test func configured() throws {
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
