import AppContainer
import MigrationEngine

/// Finds the first migration after which something differs: by the goldens of earlier versions, and between those by
/// migrating once more, one migration at a time.
struct FirstMigration {
  /// What a finding comes from, and so what it is looked for in again.
  enum Source: Hashable {
    case golden(Int)
    /// `expect` of `fixture.yaml`.
    case expectation
  }

  private let work: FixtureWork
  /// What was found at each version of the second run; it is made when it is needed first.
  private var found: [Int: [Source: [Finding]]] = [:]
  private var runs = 0

  init(_ work: FixtureWork) { self.work = work }

  /// Names the migration in each finding.
  ///
  /// - Parameter lower: the last version at which a finding's place was as it must be; the fixture's when none is known.
  mutating func name(
    _ findings: inout [Finding], from source: Source, at upper: Int,
    lower: (Finding) -> Int
  ) {
    // No migration causes an unreadable golden, which is a finding without a place.
    for index in findings.indices
    where findings[index].migration == nil && (findings[index].place != nil || source == .expectation) {
      let low = lower(findings[index])
      var span = work.migrations(above: low, upTo: upper)
      if span.count > 1 {
        // One at a time it may fail where all together do not: then all of them are named.
        if (try? replay(source, from: low, to: upper)) != nil {
          span = narrowed(span, findings[index], source, low)
        }
      }
      findings[index].migration = Self.text(span.compactMap(work.catalog.migration))
    }
  }

  /// The one migration after which the place has what was found; all of them when it had it before.
  private func narrowed(_ span: [Int], _ finding: Finding, _ source: Source, _ low: Int) -> [Int] {
    var last = span.count - 1
    while last >= 0 {
      let before = last == 0 ? low : span[last - 1]
      let isThere = found[before]?[source]?.contains { Self.isSame($0, finding) } ?? false
      if !isThere { return [span[last]] }
      last -= 1
    }
    return span
  }

  private static func isSame(_ a: Finding, _ b: Finding) -> Bool {
    a.place == b.place && a.found == b.found && a.message == b.message
  }

  /// The name of one migration, or of those of which it is one; nil for none.
  static func text(_ span: [Migration]) -> String? {
    guard let first = span.first, let last = span.last else { return nil }
    switch span.count {
    case 1: return first.identifier
    case 2: return "\(first.identifier) or \(last.identifier)"
    default: return "\(first.identifier) to \(last.identifier)"
    }
  }

  /// Migrates a new container one migration at a time, and checks each version.
  private mutating func replay(_ source: Source, from low: Int, to high: Int) throws {
    let versions = ([low] + work.migrations(above: low, upTo: high).dropLast())
      .filter { found[$0]?[source] == nil }
    guard let last = versions.last else { return }
    runs += 1
    let all = [work.fixture.version] + work.migrations(above: work.fixture.version, upTo: last)
    try work.migrating("replay-\(runs)", to: all) { version, container in
      guard versions.contains(version) else { return }
      found[version, default: [:]][source] = try findings(container, source)
    }
  }

  /// An expectation of the newest schema may not even be asked of an older one.
  private func findings(_ container: Container, _ source: Source) throws -> [Finding] {
    switch source {
    case .golden(let version):
      guard let golden = work.fixture.goldens[version] else { return [] }
      return try work.findings(container, against: golden)
    case .expectation: return (try? work.expectationFindings(container)) ?? []
    }
  }
}

extension FixtureResult.Finding {
  /// What differs, also in a database that was moved.
  var difference: [String?] { [place?.withoutFile, expected, found] }
}

extension String {
  /// A finding's place without the file that it is in, which the migrations may move.
  var withoutFile: String { firstRange(of: ": ").map { String(self[$0.upperBound...]) } ?? self }
}
