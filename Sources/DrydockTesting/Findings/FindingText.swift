import BackupRepository

/// A finding for people, in lines.
///
/// ```text
/// golden: Library/Preferences/com.example.notes.plist: theme: the setting has another value
///   expected  "light"
///   found     "dark"
///   first after 0002_rename_settings
///   Fixtures/v1/expected/6/defaults.yaml:12
/// ```
package struct FindingText: Sendable {
  private let finding: Finding
  private let root: String?

  /// - Parameter root: The directory that files are named from, an absolute path; nil to name them as they are.
  package init(_ finding: Finding, from root: String? = nil) {
    (self.finding, self.root) = (finding, root)
  }

  /// What was checked, where, and what is wrong.
  package var headline: String {
    let words = [finding.check.rawValue, finding.place, firstLine].compactMap { $0 }
    return words.filter { !$0.isEmpty }.joined(separator: ": ").printable
  }

  /// All lines, without line breaks and what else would act on a terminal; those after the first are indented.
  package var lines: [String] { [headline] + details.map { "  \($0)" } }

  /// Files are named in it, too.
  private var messageLines: [String] {
    finding.message.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).map { line in
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      return words.map { Self.path(String($0), from: root) }.joined(separator: " ")
    }
  }

  private var firstLine: String? { messageLines.first }

  /// The first line of what is wrong.
  package var message: String { firstLine ?? "" }

  /// Under a bar: what a script wrote must not be taken for a command by who reads the log, such as GitHub's runner.
  private var details: [String] {
    var details = messageLines.dropFirst().map { "| \($0.printable)" }
    if let values = ValuePair(finding) {
      details += ["expected  \(values.expected)", "found     \(values.found)"]
    }
    if let migration = finding.migration {
      // Of several it is not known which one: none of them changes the place, or nothing was kept of what is between.
      let words = migration.contains(" ") ? "somewhere in" : "first after"
      details.append("\(words) \(migration)".printable)
    }
    if let source { details.append(source.printable) }
    return details
  }

  /// The file and the line, such as `Fixtures/v1/expected/6/defaults.yaml:12`.
  package var source: String? {
    finding.file.map { file in
      Self.path(file, from: root) + (finding.line.map { ":\($0)" } ?? "")
    }
  }

  /// A path in a directory, named from there; other paths are unchanged.
  package static func path(_ path: String, from root: String?) -> String {
    guard let root, root != "/" else { return path }
    let prefix = root.hasSuffix("/") ? root : root + "/"
    return path.hasPrefix(prefix) ? String(path.dropFirst(prefix.count)) : path
  }
}

/// An expected value and the one that was found, each on one line; of long ones the part where they differ.
struct ValuePair: Equatable {
  var expected: String, found: String

  /// As much of a long value is shown.
  static let limit = 160
  /// As much of it before the first difference.
  static let context = 40

  /// Nil when the message says it all.
  init?(_ finding: Finding) {
    if finding.expected == nil && finding.found == nil { return nil }
    self.init(expected: finding.expected, found: finding.found)
  }

  init(expected: String?, found: String?) {
    let (left, right) = (Array((expected ?? "nothing").printable), Array((found ?? "nothing").printable))
    let same = zip(left, right).prefix { $0 == $1 }.count
    let start = max(left.count, right.count) <= Self.limit ? 0 : max(0, same - Self.context)
    (self.expected, self.found) = (Self.part(left, from: start), Self.part(right, from: start))
  }

  private static func part(_ text: [Character], from start: Int) -> String {
    let start = min(start, text.count)
    let shown = text[start...].prefix(limit)
    return (start > 0 ? "…" : "") + String(shown) + (start + shown.count < text.count ? "…" : "")
  }
}
