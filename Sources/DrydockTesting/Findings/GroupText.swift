import BackupRepository
import DrydockErrors

/// A group of findings for people, in lines.
///
/// ```text
/// golden: Documents/database.sqlite: trip.status: 206 rows, "done" → "draft"; since 0007_trip_rebuild
///   caused by Migrations/0007_trip_rebuild.yaml:3
///   in v5 (100), v6 (106)
///   also found by down
///   trip, id 1: status  (v5, Fixtures/v5/expected/7/database.sqlite.sql:12)
/// ```
package struct GroupText: Sendable {
  /// So many findings of a group are shown as examples.
  package static let examples = 3

  private let group: FindingGroup
  private let root: String?

  package init(_ group: FindingGroup, from root: String? = nil) {
    (self.group, self.root) = (group, root)
  }

  private var first: FindingGroup.Member { group.members[0] }

  /// What was checked, where, and what is wrong.
  package var headline: String {
    if group.isOnePlace { return FindingText(first.finding, from: root).headline }
    let noun = (first.finding.noun ?? "place") + (group.count == 1 ? "" : "s")
    let what =
      "\(group.count) \(noun)" + (pair.map { ", \($0.expected) → \($0.found)" } ?? ": \(group.message)")
    let since = group.migration.map { $0.contains(" ") ? "; somewhere in \($0)" : "; since \($0)" } ?? ""
    return [group.check.rawValue, group.place, what].compactMap { $0 }.joined(separator: ": ").printable
      + since.printable
  }

  /// The value that all have, if both fit into a line.
  private var pair: ValuePair? {
    guard let (expected, found) = group.values else { return nil }
    let isShort = max(expected?.count ?? 0, found?.count ?? 0) <= 40
    return isShort ? ValuePair(expected: expected, found: found) : nil
  }

  /// All lines, with some of the findings; those after the headline are indented.
  package func lines(examples limit: Int = Self.examples) -> [String] {
    let own = group.isOnePlace ? Array(FindingText(first.finding, from: root).lines.dropFirst()) : []
    let facts = [causeLine, fixtureLine, checksLine].compactMap { $0?.printable }
    return [headline] + own + (facts + examples(limit)).map { "  \($0)" }
  }

  /// The number of rows or findings that the lines do not show.
  package func rest(examples limit: Int = Self.examples) -> Int {
    if isComplete { return 0 }
    return listed.dropFirst(limit).reduce(0) { $0 + $1.finding.count } + uncounted
  }

  /// All lines with that number.
  ///
  /// - Parameter hint: what lists the rest.
  package func linesWithRest(examples limit: Int = Self.examples, hint: String = "") -> [String] {
    lines(examples: limit) + (String.more(rest(examples: limit)).map { ["  \($0)\(hint)"] } ?? [])
  }

  /// Whether all findings are the same in several fixtures, so that there is no need for examples.
  private var isComplete: Bool {
    group.isOnePlace
      && group.leading.allSatisfy {
        $0.finding.message == first.finding.message && $0.finding.expected == first.finding.expected
          && $0.finding.found == first.finding.found
      }
  }

  /// The findings that can be examples: a number of rows is none.
  private var listed: [FindingGroup.Member] {
    group.leading.dropFirst(group.isOnePlace ? 1 : 0).filter { $0.finding.kind == nil }
  }

  /// The rows that are only counted.
  private var uncounted: Int {
    group.leading.filter { $0.finding.kind != nil }.reduce(0) { $0 + $1.finding.count }
  }

  /// A line for each of the first findings: its place, its values where they differ, its fixture and its file.
  private func examples(_ limit: Int) -> [String] {
    if isComplete { return [] }
    return listed.prefix(limit).map { member in
      let finding = member.finding
      var text = shortPlace(finding) ?? FindingText(finding, from: root).message
      if pair == nil, let values = ValuePair(finding) {
        text += ": \(values.expected) → \(values.found)"
      }
      let source = [member.fixture, FindingText(finding, from: root).source].compactMap { $0 }
      return (text + (source.isEmpty ? "" : "  (\(source.joined(separator: ", ")))")).printable
    }
  }

  /// A place in the file that the headline names, without it.
  private func shortPlace(_ finding: Finding) -> String? {
    guard let place = finding.place, let end = group.place?.firstRange(of: ": ")?.upperBound,
      let file = group.place?[..<end], place.hasPrefix(file)
    else { return finding.place }
    return String(place.dropFirst(file.count))
  }

  private var causeLine: String? {
    guard let cause = group.cause, cause.file != first.finding.file || cause.line != first.finding.line else {
      return nil
    }
    return "caused by " + FindingText.path(cause.file, from: root) + (cause.line.map { ":\($0)" } ?? "")
  }

  private var fixtureLine: String? {
    let fixtures = group.fixtures
    if fixtures.isEmpty { return nil }
    let names = fixtures.map {
      group.isOnePlace || fixtures.count == 1 || $0.count == 0 ? $0.name : "\($0.name) (\($0.count))"
    }
    return "in " + names.listed(10)
  }

  private var checksLine: String? {
    let others = group.checks.dropFirst().map(\.rawValue)
    return others.isEmpty ? nil : "also found by " + others.joined(separator: ", ")
  }
}
