/// Findings with one cause: the same migration, place and kind, in all fixtures.
///
/// What `expect`, the down migrations and fresh containers show at a place where a golden differs already is in the
/// golden's group.
package struct FindingGroup: Sendable {
  /// A finding and its fixture; without one it is about all fixtures.
  package struct Member: Sendable {
    package var fixture: String?
    package var finding: Finding
  }

  /// All findings, those of ``check`` first.
  package fileprivate(set) var members: [Member]
  /// Whether `fixture.yaml` declares the failure.
  package let isKnown: Bool

  private var first: Finding { members[0].finding }

  /// The check that the group is named by.
  package var check: Finding.Check { first.check }

  /// The checks that found it, ``check`` first.
  package var checks: [Finding.Check] {
    members.map(\.finding.check).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  /// The findings of ``check``: those of other checks repeat them.
  package var leading: [Member] { members.filter { $0.finding.check == check } }

  /// The number of rows, or of findings.
  package var count: Int { leading.reduce(0) { $0 + $1.finding.count } }

  /// The names of the fixtures, each with its number of rows or findings; empty if it is about all fixtures.
  package var fixtures: [(name: String, count: Int)] {
    members.reduce(into: []) { fixtures, member in
      guard let name = member.fixture else { return }
      let count = member.finding.check == check ? member.finding.count : 0
      if let index = fixtures.firstIndex(where: { $0.name == name }) {
        fixtures[index].count += count
      } else {
        fixtures.append((name, count))
      }
    }
  }

  /// Whether all findings are about the same row, key or path.
  package var isOnePlace: Bool {
    leading.allSatisfy { $0.finding.place == first.place && $0.finding.kind == nil }
  }

  /// The place, or the pattern of all places.
  package var place: String? { isOnePlace ? first.place : first.pattern ?? first.place }

  /// What is wrong, as in the first finding.
  package var message: String { first.kind ?? first.message }

  /// The expected and the found value, if all findings have the same.
  package var values: (expected: String?, found: String?)? {
    let isSame = leading.allSatisfy {
      $0.finding.expected == first.expected && $0.finding.found == first.found
    }
    return isSame && (first.expected != nil || first.found != nil) ? (first.expected, first.found) : nil
  }

  package var migration: String? { first.migration }

  /// The migration's file and the step's line, if they are known.
  package var cause: Finding.Cause? { leading.lazy.compactMap(\.finding.cause).first }

  /// What identifies the group in every run: the check, the migration and the place, without values.
  package var fingerprint: String {
    let step = first.place == nil ? cause.flatMap(\.line).map { "line \($0)" } : nil
    return [check.rawValue, migration, place, step].compactMap { $0 }.joined(separator: " | ")
  }
}

extension FixtureSuite.Report {
  /// Those that did not pass come first.
  package var sorted: [FixtureResult] {
    let order: [FixtureResult.State] = [.failed, .knownFailure, .notRun, .passed]
    return order.flatMap { state in fixtures.filter { $0.state == state } }
  }

  /// All notes. That of a fixture is there once, with the names of the fixtures that it is about: most are about the migrations,
  /// and the same for many.
  package var allNotes: [String] {
    var texts: [String] = []
    var names: [String: [String]] = [:]
    for fixture in fixtures {
      for note in fixture.notes {
        if names[note] == nil { texts.append(note) }
        names[note, default: []].append(fixture.name)
      }
    }
    return notes + texts.map { "\((names[$0] ?? []).listed(3)): \($0)" }
  }

  /// The fixtures by name.
  package var fixturesByName: [String: FixtureResult] {
    Dictionary(fixtures.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// The findings of all fixtures and about all of them, by cause; those of known failures last.
  package var groups: [FindingGroup] {
    let ofFixtures = fixtures.flatMap { fixture in
      fixture.findings.map {
        (FindingGroup.Member(fixture: fixture.name, finding: $0), fixture.state == .knownFailure)
      }
    }
    return Grouping.groups(ofFixtures + findings.map { (FindingGroup.Member(finding: $0), false) })
  }
}

/// Puts findings together; those that others may contain come after these.
private enum Grouping {
  /// The checks whose groups contain the findings of another check at the same place.
  private static let containing: [Finding.Check: Set<Finding.Check>] = [
    .golden: [.lostRows, .lostValues], .expectation: [.lostRows, .lostValues, .golden],
    .down: [.lostRows, .lostValues, .golden, .expectation],
    .fresh: [.lostRows, .lostValues, .golden],
  ]

  private static func rank(_ check: Finding.Check) -> Int { containing[check]?.count ?? 0 }

  static func groups(_ members: [(FindingGroup.Member, isKnown: Bool)]) -> [FindingGroup] {
    var groups: [(number: Int, group: FindingGroup)] = []
    var indices: [[String?]: Int] = [:]
    var places: [[String?]: [Int]] = [:]
    let ordered = members.enumerated().sorted {
      (rank($0.element.0.finding.check), $0.offset) < (rank($1.element.0.finding.check), $1.offset)
    }
    for (number, (member, isKnown)) in ordered {
      let place = place(of: member.finding, isKnown)
      if let index = places[place]?.first(where: { contains(groups[$0].group, member) }) {
        groups[index].group.members.append(member)
        continue
      }
      let key = key(of: member.finding, isKnown)
      if let index = indices[key] {
        groups[index].group.members.append(member)
        continue
      }
      indices[key] = groups.count
      places[place, default: []].append(groups.count)
      groups.append((number, FindingGroup(members: [member], isKnown: isKnown)))
    }
    return groups.sorted { ($0.group.isKnown ? 1 : 0, $0.number) < ($1.group.isKnown ? 1 : 0, $1.number) }
      .map(\.group)
  }

  /// Whether a finding at a group's place is another sign of its cause.
  private static func contains(_ group: FindingGroup, _ member: FindingGroup.Member) -> Bool {
    guard containing[member.finding.check]?.contains(group.check) == true, member.finding.place != nil else {
      return false
    }
    return switch member.finding.check {
    case .fresh: true
    case .golden:
      member.finding.migration == group.migration && group.members.contains { $0.fixture == member.fixture }
    default: group.members.contains { $0.fixture == member.fixture }
    }
  }

  /// The findings with one key have one cause.
  private static func key(of finding: Finding, _ isKnown: Bool) -> [String?] {
    let place = finding.pattern ?? finding.place
    // A step that fails names values of the fixture.
    let step =
      place == nil ? finding.cause.flatMap { cause in cause.line.map { "\(cause.file):\($0)" } } : nil
    return [
      "\(isKnown)", finding.check.rawValue, finding.migration, place, step,
      step == nil ? finding.kind ?? finding.message : nil,
    ]
  }

  /// A place also in a file that the migrations move.
  private static func place(of finding: Finding, _ isKnown: Bool) -> [String?] {
    ["\(isKnown)", (finding.pattern ?? finding.place)?.withoutFile]
  }
}

extension FindingGroup: Encodable {
  package func encode(to encoder: any Encoder) throws {
    struct Fixture: Encodable {
      var name: String, count: Int
    }
    struct Group: Encodable {
      var checks: [Finding.Check], place: String?, message: String, count: Int
      var expected: String?, found: String?, migration: String?, cause: Finding.Cause?
      var fixtures: [Fixture], known: Bool
    }
    try Group(
      checks: checks, place: place, message: message, count: count, expected: values?.expected,
      found: values?.found, migration: migration, cause: cause,
      fixtures: fixtures.map { Fixture(name: $0.name, count: $0.count) }, known: isKnown
    ).encode(to: encoder)
  }
}
