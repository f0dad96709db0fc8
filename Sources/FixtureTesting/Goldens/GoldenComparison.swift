import AppContainer
import ContainerDiff
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// Compares a container with a golden.
package enum GoldenCheck {
  /// One finding for each key, row, item or path that differs; empty when the container equals the golden. The
  /// container is only read.
  ///
  /// A broken golden (a file is missing or invalid) is a finding too, which names
  /// the file and the line.
  ///
  /// - Parameters:
  ///   - golden: The golden's directory, also a state that was written in the
  ///     same run.
  ///   - volatile: What differs in each run: it is not compared.
  ///   - deviceKeys: What opens the container's vault; without it, the sealed files are compared.
  ///   - redactor: Hides secrets: one for the whole run, so that equal values look equal in all findings.
  /// - Throws: What reading the container throws.
  package static func findings(
    _ container: Container, against golden: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil, redactor: Redactor = Redactor()
  ) throws -> [FixtureFinding] {
    try ScratchDirectory.withTemporary { scratch in
      let found = scratch.full("found")
      try write(container, to: found, volatile: volatile, deviceKeys: deviceKeys)
      if try GoldenText.isSame(golden, found) { return [] }
      do {
        return try GoldenComparison(golden, found, volatile, redactor, in: scratch).findings()
      } catch let error as DrydockError {
        return [malformed(error.message, error.path ?? golden, error.line)]
      }
    }
  }

  /// Writes a container as a golden, with everything that belongs to the app: also what backups exclude.
  ///
  /// - Parameter directory: The directory to make; it must not exist, its parent must.
  /// - Throws: What reading the container throws; `DrydockError` with code `malformed` for an invalid pattern.
  package static func write(
    _ container: Container, to directory: String, volatile: VolatileValues = VolatileValues(),
    deviceKeys: DeviceKeys? = nil
  ) throws {
    let (parent, name) = try ContainerPath.split(directory)
    try Directory(parent).createDirectory(name, mode: 0o755)
    try Transaction.inspect(container) { stage in
      try GoldenWriter.write(
        ContentSide(live: stage, .whole), to: directory, volatile: volatile, deviceKeys: deviceKeys
      ) { try stage.live.contents($0) }
    }
  }

  private static func malformed(_ message: String, _ file: String, _ line: Int?) -> FixtureFinding {
    var finding = FixtureFinding(.golden, "the golden cannot be read: \(message)")
    (finding.file, finding.line) = (file, line)
    return finding
  }
}

extension ContainerPath {
  /// The directory and the name of a path of the file system.
  static func split(_ path: String) throws -> (String, ContainerPath) {
    guard let slash = path.lastIndex(of: "/") else { return (".", try ContainerPath(path)) }
    let parent = path[..<slash]
    return (
      parent.isEmpty ? "/" : String(parent), try ContainerPath(String(path[path.index(after: slash)...]))
    )
  }
}

/// Compares the text of a golden with the text of what was found.
///
/// The golden is rewritten first, so that comments, the order of lines and values that were declared volatile later
/// make no difference. Then both texts are compared line by line: each line is a path, a setting, an item of the vault, a
/// definition or a row, and a finding points to the golden's own line.
struct GoldenComparison {
  /// As it was recorded or edited.
  private let golden: Golden
  private let expected, found: Golden
  private let redactor: Redactor
  private let comparesColumnOrder: Bool
  /// Whether both texts are the same in every byte.
  let isSame: Bool

  /// Compares the goldens of two directories.
  ///
  /// - Throws: `DrydockError` with code `badFixture` for a golden that cannot be read.
  init(
    _ golden: String, _ found: String, _ volatile: VolatileValues, _ redactor: Redactor, in scratch: Directory
  ) throws {
    self.golden = try Golden(golden)
    self.found = try Golden(found)
    comparesColumnOrder = volatile.comparesColumnOrder
    try scratch.createDirectory("expected")
    let source = self.golden
    try GoldenWriter.write(
      GoldenSide(source), to: scratch.full("expected"), volatile: volatile, contents: source.document)
    expected = try Golden(scratch.full("expected"))
    isSame = try GoldenText.isSame(expected.directory, found)
    self.redactor = redactor.knowing([self.golden, self.found].flatMap { $0.settings.values.map(\.values) })
  }

  /// The difference store by store, as `drydock diff` shows it.
  func difference() throws -> ContainerDifference {
    var options = ComparisonOptions()
    (options.rowLimit, options.redactor) = (20, redactor)
    return try Comparison(of: GoldenSide(expected), with: GoldenSide(found), options: options).difference
  }

  func findings() throws -> [FixtureFinding] {
    if isSame { return [] }
    // What one side could not list is not compared.
    let omitted = (expected.lines + found.lines).filter { $0.type == GoldenLine.excluded }.map(\.path)
    func entries(_ golden: Golden) throws -> [GoldenEntry] {
      var reader = GoldenEntryReader(golden, omitting: omitted, redactor, comparesColumnOrder)
      return try reader.read()
    }
    let places = Dictionary(
      try entries(golden).map { ($0.id, $0.place) }, uniquingKeysWith: { first, _ in first })
    var comparison = EntryComparison(try entries(expected), try entries(found), places)
    comparison.run()
    let findings = comparison.findings.isEmpty ? try textFindings() : comparison.findings
    return findings.map { finding in
      var finding = finding
      finding.file = finding.file.map { "\(golden.directory)/\($0)" }
      return finding
    }
  }

  /// A difference that no entry shows is still one. The order of columns and the digests of documents may differ.
  private func textFindings() throws -> [FixtureFinding] {
    let (old, new) = (try Directory(expected.directory), try Directory(found.directory))
    let names = Set(try GoldenText.files(expected.directory)).union(try GoldenText.files(found.directory))
    return try names.sorted().compactMap { name in
      guard
        name == Golden.defaults || name == Golden.vault
          || comparesColumnOrder && name.nameString.hasSuffix(".sql"),
        try old.status(name) == nil || new.status(name) == nil
          || old.contents(name, limit: 1 << 30) != new.contents(name, limit: 1 << 30)
      else { return nil }
      var finding = FixtureFinding(.golden, "the text of \(name) differs")
      finding.file = name.description
      return finding
    }
  }
}

/// One thing that a golden says: a line of it, or the lines of a statement.
struct GoldenEntry {
  /// A value of an entry that both sides have.
  struct Field {
    var name: String
    /// As it is compared, and as it may be shown.
    var text: ExactText, shown: String?
    /// What is said of a difference.
    var message: String
    /// The value's type, where it has one.
    var type: String?

    init(_ name: String, _ text: String, shown: String?, _ message: String) {
      (self.name, self.text, self.shown, self.message) = (name, ExactText(text), shown, message)
    }
  }

  /// What it is in, without which it is not compared.
  var group: [ExactText]?
  /// Its identity, which begins with that of what it is in.
  var id: [ExactText]
  /// Where it is in the container, for people.
  var name: String
  /// What it is, such as `setting`; nil for what only has a place.
  var noun: String?
  var fields: [Field] = []
  /// What is shown where the other side lacks it.
  var whole: String?
  /// The golden's file and the line in it.
  var place: (file: String, line: Int?)

  init(_ id: [String], _ name: String, _ noun: String?, at file: String, _ line: Int?) {
    (self.id, self.name, self.noun, place) = (id.map { ExactText($0) }, name, noun, (file, line))
  }
}

/// Compares the entries of two goldens by their identities.
private struct EntryComparison {
  /// As many rows of a table are listed, of each kind of difference.
  private static let rowLimit = 20

  private let old, new: [GoldenEntry]
  private let oldByID, newByID: [[ExactText]: GoldenEntry]
  private let places: [[ExactText]: (file: String, line: Int?)]
  private(set) var findings: [FixtureFinding] = []
  /// How many rows of each table differ in which way.
  private var rows: [(table: GoldenEntry, words: String, count: Int)] = []

  init(_ old: [GoldenEntry], _ new: [GoldenEntry], _ places: [[ExactText]: (file: String, line: Int?)]) {
    (self.old, self.new, self.places) = (old, new, places)
    oldByID = Dictionary(old.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
    newByID = Dictionary(new.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
  }

  mutating func run() {
    // Where columns differ, the table's definition is not reported besides.
    let altered = Set((old + new).filter { $0.noun == "column" && differs($0) }.compactMap(\.group))
    for entry in old where isCompared(entry) {
      if let other = newByID[entry.id] {
        if !altered.contains(entry.id) { compare(entry, other) }
      } else if let noun = entry.noun, counts(entry, "absent") {
        report(entry, entry.name, "the \(noun) is absent", entry.whole, nil)
      }
    }
    for entry in new where isCompared(entry) && oldByID[entry.id] == nil {
      guard let noun = entry.noun, counts(entry, "not expected") else { continue }
      report(entry, entry.name, "the \(noun) exists, expected none", nil, entry.whole)
    }
    for (table, words, count) in rows where count > Self.rowLimit {
      let more = count - Self.rowLimit
      let verb =
        words == "differ"
        ? (more == 1 ? "row differs" : "rows differ") : more == 1 ? "row is \(words)" : "rows are \(words)"
      report(table, table.name, "\(more) more \(verb)", nil, nil)
    }
  }

  private mutating func compare(_ old: GoldenEntry, _ new: GoldenEntry) {
    var isCounted = false
    for field in old.fields {
      guard let now = new.fields.first(where: { $0.name == field.name }), now.text != field.text else {
        continue
      }
      if field.name == GoldenEntryReader.content, hasDocument(old) { continue }
      if !isCounted, !counts(old, "differ") { return }
      isCounted = true
      let name = old.noun == "row" ? "\(old.name): \(field.name)" : old.name
      if let before = field.type, let after = now.type, before != after {
        report(
          old, name, "the \(old.noun ?? "") has another type", field.shown.map { "the \(before) \($0)" },
          now.shown.map { "the \(after) \($0)" })
      } else {
        report(old, name, field.message, field.shown, now.shown)
      }
      // What is another kind of thing has nothing to compare.
      if field.name == GoldenEntryReader.type { return }
    }
  }

  /// Whether a path is compared value by value.
  private func hasDocument(_ path: GoldenEntry) -> Bool {
    let id = path.id + [ExactText(GoldenEntryReader.document)]
    return oldByID[id] != nil && newByID[id] != nil
  }

  private func isCompared(_ entry: GoldenEntry) -> Bool {
    guard entry.noun != nil else { return false }
    return entry.group.map { oldByID[$0] != nil && newByID[$0] != nil } ?? true
  }

  private func differs(_ entry: GoldenEntry) -> Bool {
    isCompared(entry) && oldByID[entry.id]?.fields.map(\.text) != newByID[entry.id]?.fields.map(\.text)
  }

  /// Whether a difference is listed: of a table only so many rows are.
  private mutating func counts(_ entry: GoldenEntry, _ words: String) -> Bool {
    guard entry.noun == "row", let group = entry.group, let table = oldByID[group] else { return true }
    guard let index = rows.firstIndex(where: { $0.table.id == table.id && $0.words == words }) else {
      rows.append((table, words, 1))
      return true
    }
    rows[index].count += 1
    return rows[index].count <= Self.rowLimit
  }

  private mutating func report(
    _ entry: GoldenEntry, _ name: String, _ message: String, _ expected: String?, _ found: String?
  ) {
    var finding = FixtureFinding(.golden, message, place: name)
    (finding.expected, finding.found) = (expected, found)
    // Where the golden lacks it: what it would be in.
    let place = (1...entry.id.count).reversed().compactMap { places[Array(entry.id.prefix($0))] }.first
    finding.file = place?.file ?? Golden.list.description
    finding.line = place?.line
    findings.append(finding)
  }
}
