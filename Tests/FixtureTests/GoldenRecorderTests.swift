import DrydockErrors
import DrydockTesting
import Formats
import Foundation
import MigrationEngine
import TestSupport
import Testing

@Suite struct GoldenRecorderTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  /// A fixture of version 1 whose container a test changes, with migrations 1 to 4 of which 2 is released.
  private struct Recording {
    let folder: TemporaryDirectory
    let made: GoldenContainer
    var released = [1, 2]
    var latest = 4

    init(_ folder: TemporaryDirectory) throws {
      self.folder = folder
      made = try GoldenContainer(folder)
      try RawFiles.createDirectories(folder("f/container"))
      try RawFiles.createDirectories(folder("m"))
      try "version: 1\nvolatile: {settings: at}\n".write(
        toFile: folder("f/fixture.yaml"), atomically: true, encoding: .utf8)
    }

    func recorder() throws -> GoldenRecorder {
      let text = released.map { "- {release: \"\($0).0\", version: \($0), migrations: []}\n" }.joined()
      try text.write(toFile: folder("m/releases.yaml"), atomically: true, encoding: .utf8)
      return GoldenRecorder(
        try Fixture.load(folder("f")), latest: latest, releases: try Releases.read(folder("m")))
    }

    /// Records; the container says which version it is in.
    func record(_ more: PropertyListDictionary = [:]) throws -> [String] {
      try recorder().record { version in
        let own: PropertyListDictionary = [
          "v": .integer(Int64(version)), "at": .integer(.random(in: 1...9999)),
        ]
        try made.set(own.merging(more) { $1 })
        return made.container
      }.map {
        let shown = $0.base.map { " since \($0)" } ?? $0.difference.map { " \($0.settings.map(\.key))" } ?? ""
        return "\($0.version) \($0.change.rawValue)\(shown)"
      }
    }

    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: folder("f/expected")).sorted() }
    }
  }

  @Test func goldensAreWrittenUpdatedFrozenAndRemoved() throws {
    var recording = try Recording(folder)
    #expect(try recording.recorder().versions == [1, 2, 4])
    #expect(try recording.record() == ["1 written", "2 written since 1", "4 written since 2"])
    #expect(try recording.record() == ["4 unchanged"])
    #expect(try recording.record(["n": .integer(1)]) == ["4 updated [\"n\"]"])
    let text = try String(contentsOfFile: folder("f/expected/4/defaults.yaml"), encoding: .utf8)
    #expect(text.hasSuffix("  at: 0\n  \"n\": 1\n  v: 4\n"))
    // A new version: the one before was never released.
    recording.latest = 5
    #expect(try recording.record() == ["4 removed", "5 written since 4"])
    #expect(try recording.names == ["1", "2", "5"])
    // Released, and the same: nothing to do. Another result is refused, and nothing changes.
    recording.released.append(5)
    #expect(try recording.record() == ["5 unchanged"])
    let error = expectError(.frozen, "released with 5.0") { try recording.record(["n": .integer(1)]) }
    #expect(error?.path == folder("f") + "/expected/5")
    #expect(try recording.record() == ["5 unchanged"])
    // How a frozen one is written does not matter.
    let yaml = folder("f/expected/5/defaults.yaml")
    try (String(contentsOfFile: yaml, encoding: .utf8) + "# by hand\n").write(
      toFile: yaml, atomically: true, encoding: .utf8)
    #expect(try recording.record() == ["5 unchanged"])
    #expect(try String(contentsOfFile: yaml, encoding: .utf8).hasSuffix("# by hand\n"))
    let hidden = try FileManager.default.contentsOfDirectory(atPath: folder("f")).sorted()
    #expect(hidden == ["container", "expected", "fixture.yaml"])
  }

  @Test func allOrNothing() throws {
    let recording = try Recording(folder)
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try recording.recorder().record { version in
        if version == 4 { throw Stop() }
        return recording.made.container
      }
    }
    #expect(!FileManager.default.fileExists(atPath: folder("f/expected")))
    // A golden that cannot be read any more is replaced.
    #expect(try recording.record().count == 3)
    try "nonsense".write(toFile: folder("f/expected/4/files.txt"), atomically: true, encoding: .utf8)
    #expect(try recording.record() == ["4 updated"])
    #expect(try recording.record() == ["4 unchanged"])
  }

  @Test(arguments: [(nil, false), ("", false), ("false", false), ("true", true), ("1", true)])
  func pipelinesDoNotRecord(_ value: String?, _ refused: Bool) {
    let environment = value.map { ["CI": $0] } ?? [:]
    #expect((GoldenRecorder.refusal(in: environment) != nil) == refused)
  }
}
