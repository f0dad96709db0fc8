import AppStores
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

extension GoldenText {
  /// Where a container differs from a golden: one finding for each key, row, item or path.
  ///
  /// A broken golden (a file is missing or invalid) is a finding too, which names the file and the line.
  ///
  /// - Parameters:
  ///   - redactor: Hides secrets: one for the whole run, so that equal values look equal in all findings.
  ///   - rowLimit: So many rows of a column are listed, and the rest is counted.
  ///   - counts: Whether a difference is one.
  package func findings(
    against golden: String, volatile: VolatileValues = VolatileValues(), redactor: Redactor = Redactor(),
    rowLimit: Int = FixtureSuite.Options.rowLimit, where counts: (EntryDifference) -> Bool = { _ in true }
  ) throws -> [Finding] {
    if try isSame(as: golden) { return [] }
    do {
      let read = try Golden(golden)
      // As it would be written now, so that comments, the order of lines, and values that were declared volatile later
      // make no difference.
      let expected = try GoldenText(of: read, volatile: volatile)
      var report = try GoldenReport(
        expected, golden, redactor: redactor.knowing(read.settings.values.map { $0.values } + settings),
        rowLimit: rowLimit)
      for difference in EntryDifference.between(expected.entries, entries) where counts(difference) {
        report.add(difference)
      }
      return report.end()
    } catch let error as DrydockError {
      return [
        Finding(
          .golden, "the golden cannot be read: \(error.message)", file: error.path ?? golden, line: error.line
        )
      ]
    }
  }
}

/// One difference between two goldens: an entry that one of them lacks, or a field.
///
/// `Comparison` shows people what differs, and cuts long values and lists. A check must distinguish all values, name
/// the line of the text that was reviewed, and compare a container that is gone: it compares what the texts say.
package struct EntryDifference {
  var old: GoldenEntry?, new: GoldenEntry?
  /// The fields that differ, where both have the entry.
  var fields: (old: GoldenEntry.Field, new: GoldenEntry.Field)?

  var entry: GoldenEntry? { old ?? new }

  /// Compares the entries of two goldens by their identities.
  static func between(_ old: [GoldenEntry], _ new: [GoldenEntry]) -> [EntryDifference] {
    let oldByID = Dictionary(old.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    let newByID = Dictionary(new.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    func areOnBoth(_ id: [ExactText]) -> Bool { oldByID[id] != nil && newByID[id] != nil }
    // What one side could not list is not compared.
    let omitted = Set((old + new).filter { $0.noun == GoldenLine.excluded }.map(\.id))
    func isCompared(_ entry: GoldenEntry) -> Bool {
      guard entry.noun != nil, entry.noun != GoldenLine.excluded,
        omitted.isEmpty || !paths(of: entry).contains(where: omitted.contains)
      else { return false }
      return entry.group.map(areOnBoth) ?? true
    }
    var differences: [EntryDifference] = []
    for entry in old where isCompared(entry) {
      guard let other = newByID[entry.id] else {
        differences.append(EntryDifference(old: entry))
        continue
      }
      for field in entry.fields {
        guard let now = other[field.name], now.text != field.text else { continue }
        if field.name == GoldenLine.contentField, areOnBoth(entry.id + [ExactText(GoldenEntry.document)]) {
          continue
        }
        differences.append(EntryDifference(old: entry, new: other, fields: (field, now)))
        // What is another kind of thing has nothing to compare.
        if field.name == GoldenLine.typeField { break }
      }
    }
    for entry in new where isCompared(entry) && oldByID[entry.id] == nil {
      differences.append(EntryDifference(new: entry))
    }
    // Where columns differ, the table's definition is not reported besides.
    let altered = Set(differences.filter { $0.entry?.noun == "column" }.compactMap(\.entry?.group))
    return differences.filter {
      $0.fields == nil || $0.old?.noun != "table" || !altered.contains($0.old?.id ?? [])
    }
  }

  /// The ids of an entry's path and of the directories above.
  private static func paths(of entry: GoldenEntry) -> [[ExactText]] {
    guard let path = try? ContainerPath(entry.id[0].text) else { return [[entry.id[0]]] }
    return ([path] + path.ancestors).map { [ExactText($0.description)] }
  }
}

/// The differences as findings; of each column only so many rows, and the number of the others.
private struct GoldenReport {
  /// Where the entries of the golden are in its files as they were recorded, or edited.
  private var places: [[ExactText]: (file: ContainerPath, line: Int?)] = [:]
  private let directory: String
  private let redactor: Redactor
  private let rowLimit: Int
  private var findings: [Finding] = []
  private var rows: [RowDifferences] = []
  private var indices: [[ExactText]: Int] = [:]

  /// The rows of a table that differ in one way: they are absent, not expected, or differ in one column.
  private struct RowDifferences {
    var count = 0
    /// The first one above the limit, and whether all above it have the same values.
    var rest: EntryDifference?
    var isSame = true
  }

  /// - Parameter expected: the golden in the directory.
  init(_ expected: GoldenText, _ directory: String, redactor: Redactor, rowLimit: Int) throws {
    (self.directory, self.redactor, self.rowLimit) = (directory, redactor, rowLimit)
    // The lines of files that are not as they would be written now.
    var edited: [ContainerPath: [Substring]] = [:]
    if try !expected.isSame(as: directory) {
      let root = try Directory(directory)
      for file in expected.files.keys where try root.status(file) != nil {
        let text = String(decoding: try root.contents(file, limit: 1 << 30), as: UTF8.self)
        edited[file] = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
      }
    }
    for entry in expected.entries {
      var line = entry.line
      if let lines = edited[entry.file], line != nil, let first = entry.text.split(separator: "\n").first {
        let start = places[Array(entry.id.dropLast())]?.line ?? 1
        line = lines[(start - 1)...].firstIndex(of: first).map { $0 + 1 }
      }
      places[entry.id] = (entry.file, line)
    }
  }

  mutating func add(_ difference: EntryDifference) {
    guard let finding = listed(difference) ? finding(difference) : nil else { return }
    findings.append(finding)
  }

  private func finding(_ difference: EntryDifference) -> Finding? {
    guard let entry = difference.entry, let noun = entry.noun else { return nil }
    let name = entry.name(redactor)
    guard let (old, new) = difference.fields else {
      let isAbsent = difference.new == nil
      return finding(
        entry, name, isAbsent ? "the \(noun) is absent" : "the \(noun) exists, expected none",
        isAbsent ? entry.whole(redactor) : nil, isAbsent ? nil : entry.whole(redactor))
    }
    var found: Finding
    if let before = old.type, let after = new.type, before != after {
      found = finding(
        entry, name, "the \(noun) has another type", old.shown(redactor).map { "the \(before) \($0)" },
        new.shown(redactor).map { "the \(after) \($0)" })
    } else {
      found = finding(
        entry, noun == "row" ? "\(name): \(old.name)" : name, old.message, old.shown(redactor),
        new.shown(redactor))
    }
    if noun == "row" { found.pattern = entry.pattern.map { "\($0).\(old.name)" } }
    return found
  }

  private func finding(
    _ entry: GoldenEntry, _ name: String, _ message: String, _ expected: String?, _ found: String?
  ) -> Finding {
    // Where the entry is, or where the golden lacks it, what it would be in.
    let place = (1...entry.id.count).reversed().lazy.compactMap { places[Array(entry.id.prefix($0))] }.first
    var finding = Finding(
      .golden, message, place: name, expected: expected, found: found,
      file: "\(directory)/\(place?.file ?? Golden.list)", line: place?.line)
    (finding.noun, finding.pattern) = (entry.noun, entry.pattern)
    return finding
  }

  /// Whether a difference is listed; else it is counted.
  private mutating func listed(_ difference: EntryDifference) -> Bool {
    guard let entry = difference.entry, entry.noun == "row", let table = entry.group else { return true }
    let way = difference.fields.map { "column " + $0.old.name } ?? (difference.new == nil ? "absent" : "new")
    let index = indices[table + [ExactText(way)]] ?? rows.count
    if index == rows.count {
      rows.append(RowDifferences())
      indices[table + [ExactText(way)]] = index
    }
    rows[index].count += 1
    if rows[index].count <= rowLimit { return true }
    guard let first = rows[index].rest else {
      rows[index].rest = difference
      return false
    }
    if first.fields?.old.text != difference.fields?.old.text
      || first.fields?.new.text != difference.fields?.new.text || difference.fields == nil
    {
      rows[index].isSame = false
    }
    return false
  }

  mutating func end() -> [Finding] {
    for row in rows {
      guard let rest = row.rest, var finding = finding(rest) else { continue }
      finding.count = row.count - rowLimit
      let verb =
        rest.fields != nil
        ? (finding.count == 1 ? "row differs" : "rows differ")
        : (finding.count == 1 ? "row is " : "rows are ") + (rest.new == nil ? "absent" : "not expected")
      (finding.kind, finding.message) = (finding.message, "\(finding.count) more \(verb)")
      if finding.count > 1 {
        finding.place = finding.pattern
        if !row.isSame || rest.fields == nil { (finding.expected, finding.found) = (nil, nil) }
      }
      findings.append(finding)
    }
    return findings
  }
}
