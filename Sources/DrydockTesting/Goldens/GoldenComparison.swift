import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

extension GoldenText {
  /// Where a container differs from a golden: one finding for each key, row, item or path.
  ///
  /// A broken golden (a file is missing or invalid) is a finding too, which names the file and the line.
  ///
  /// - Parameter redactor: Hides secrets: one for the whole run, so that equal values look equal in all findings.
  package func findings(
    against golden: String, volatile: VolatileValues = VolatileValues(), redactor: Redactor = Redactor()
  ) throws -> [FixtureResult.Finding] {
    if try isSame(as: golden) { return [] }
    do {
      let read = try Golden(golden)
      return try findings(
        against: GoldenText(of: read, volatile), recordedIn: read.directory,
        redactor.knowing(read.settings.values.map(\.values) + settings))
    } catch let error as DrydockError {
      var finding = FixtureResult.Finding(.golden, "the golden cannot be read: \(error.message)")
      (finding.file, finding.line) = (error.path ?? golden, error.line)
      return [finding]
    }
  }

  /// A golden as it would be written now, so that comments, the order of lines, and values that were declared volatile
  /// later make no difference.
  init(of golden: Golden, _ volatile: VolatileValues) throws {
    self = try GoldenText(of: GoldenSide(golden), volatile: volatile, document: golden.document)
  }

  /// Where this differs from the expected text.
  ///
  /// - Parameter directory: the golden's; nil for one that was never written.
  func findings(
    against expected: GoldenText, recordedIn directory: String?, _ redactor: Redactor
  ) throws -> [FixtureResult.Finding] {
    var report = GoldenReport(expected, try GoldenPlaces(expected, directory), redactor)
    for difference in EntryComparison(expected.entries, entries).differences { report.add(difference) }
    return report.end()
  }
}

/// One difference between two goldens: an entry that one of them lacks, or a field.
struct EntryDifference {
  var old: GoldenEntry?, new: GoldenEntry?
  /// The fields that differ, where both have the entry.
  var fields: (old: GoldenEntry.Field, new: GoldenEntry.Field)?

  var entry: GoldenEntry? { old ?? new }
}

/// Compares the entries of two goldens by their identities.
struct EntryComparison {
  private(set) var differences: [EntryDifference] = []
  private let old, new: [[ExactText]: GoldenEntry]

  init(_ old: [GoldenEntry], _ new: [GoldenEntry]) {
    let oldByID = Dictionary(old.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    let newByID = Dictionary(new.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    (self.old, self.new) = (oldByID, newByID)
    // What one side could not list is not compared.
    let omitted = Set((old + new).filter { $0.noun == GoldenLine.excluded }.map(\.id))
    let compared = { (entry: GoldenEntry) in
      guard entry.noun != nil, entry.noun != GoldenLine.excluded,
        omitted.isEmpty || !Self.paths(of: entry).contains(where: omitted.contains)
      else { return false }
      return entry.group.map { oldByID[$0] != nil && newByID[$0] != nil } ?? true
    }
    for entry in old where compared(entry) {
      if let other = self.new[entry.id] {
        compare(entry, other)
      } else {
        differences.append(EntryDifference(old: entry))
      }
    }
    for entry in new where compared(entry) && self.old[entry.id] == nil {
      differences.append(EntryDifference(new: entry))
    }
    // Where columns differ, the table's definition is not reported besides.
    let altered = Set(differences.filter { $0.entry?.noun == "column" }.compactMap(\.entry?.group))
    differences.removeAll {
      $0.fields != nil && $0.old?.noun == "table" && altered.contains($0.old?.id ?? [])
    }
  }

  /// The ids of an entry's path and of the directories above.
  private static func paths(of entry: GoldenEntry) -> [[ExactText]] {
    guard let path = try? ContainerPath(entry.id[0].text) else { return [[entry.id[0]]] }
    return ([path] + path.ancestors).map { [ExactText($0.description)] }
  }

  private mutating func compare(_ entry: GoldenEntry, _ other: GoldenEntry) {
    for field in entry.fields {
      guard let now = other[field.name], now.text != field.text else { continue }
      let document = entry.id + [ExactText(GoldenEntry.document)]
      if field.name == GoldenLine.contentField, old[document] != nil, new[document] != nil { continue }
      differences.append(EntryDifference(old: entry, new: other, fields: (field, now)))
      // What is another kind of thing has nothing to compare.
      if field.name == GoldenLine.typeField { return }
    }
  }
}

/// Where the entries of a golden are in its files as they were recorded, or edited.
private struct GoldenPlaces {
  private var places: [[ExactText]: (file: ContainerPath, line: Int?)] = [:]
  let directory: String?

  init(_ expected: GoldenText, _ directory: String?) throws {
    self.directory = directory
    // The lines of files that are not as they would be written now.
    var edited: [ContainerPath: [Substring]] = [:]
    if let directory, try !expected.isSame(as: directory) {
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

  /// Where an entry is, or where the golden lacks it, what it would be in.
  func place(of id: [ExactText]) -> (file: String, line: Int?)? {
    guard let directory else { return nil }
    let place = (1...id.count).reversed().lazy.compactMap { places[Array(id.prefix($0))] }.first
    return ("\(directory)/\(place?.file ?? Golden.list)", place?.line)
  }
}

/// The differences as findings; of each table only so many rows.
private struct GoldenReport {
  private static let rowLimit = 20

  private let places: GoldenPlaces
  private let redactor: Redactor
  private let tables: [[ExactText]: GoldenEntry]
  private var findings: [FixtureResult.Finding] = []
  /// How many rows of each table differ in which way, and the last one.
  private var rows: [(table: [ExactText], words: String, count: Int, last: [ExactText])] = []

  init(_ expected: GoldenText, _ places: GoldenPlaces, _ redactor: Redactor) {
    (self.places, self.redactor) = (places, redactor)
    tables = Dictionary(
      expected.entries.filter { $0.noun == "table" }.map { ($0.id, $0) },
      uniquingKeysWith: { first, _ in first })
  }

  mutating func add(_ difference: EntryDifference) {
    guard let entry = difference.entry, let noun = entry.noun else { return }
    let words = difference.new == nil ? "absent" : difference.old == nil ? "not expected" : "differ"
    guard isListed(entry, words) else { return }
    let name = entry.name(redactor)
    guard let (old, new) = difference.fields else {
      let isAbsent = difference.new == nil
      return report(
        entry, name, isAbsent ? "the \(noun) is absent" : "the \(noun) exists, expected none",
        isAbsent ? entry.whole(redactor) : nil, isAbsent ? nil : entry.whole(redactor))
    }
    if let before = old.type, let after = new.type, before != after {
      report(
        entry, name, "the \(noun) has another type", old.shown(redactor).map { "the \(before) \($0)" },
        new.shown(redactor).map { "the \(after) \($0)" })
    } else {
      report(
        entry, noun == "row" ? "\(name): \(old.name)" : name, old.message, old.shown(redactor),
        new.shown(redactor))
    }
  }

  private mutating func isListed(_ entry: GoldenEntry, _ words: String) -> Bool {
    guard entry.noun == "row", let table = entry.group else { return true }
    guard let index = rows.firstIndex(where: { $0.table == table && $0.words == words }) else {
      rows.append((table, words, 1, entry.id))
      return true
    }
    if rows[index].last != entry.id { rows[index].count += 1 }
    rows[index].last = entry.id
    return rows[index].count <= Self.rowLimit
  }

  private mutating func report(
    _ entry: GoldenEntry, _ name: String, _ message: String, _ expected: String?, _ found: String?
  ) {
    var finding = FixtureResult.Finding(.golden, message, place: name)
    (finding.expected, finding.found) = (expected, found)
    if let place = places.place(of: entry.id) { (finding.file, finding.line) = place }
    findings.append(finding)
  }

  mutating func end() -> [FixtureResult.Finding] {
    for (table, words, count, _) in rows where count > Self.rowLimit {
      guard let table = tables[table] else { continue }
      let more = count - Self.rowLimit
      let verb =
        words == "differ"
        ? (more == 1 ? "row differs" : "rows differ") : more == 1 ? "row is \(words)" : "rows are \(words)"
      report(table, table.name(redactor), "\(more) more \(verb)", nil, nil)
    }
    return findings
  }
}
