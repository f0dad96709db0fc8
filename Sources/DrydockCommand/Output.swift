import Drydock
import Foundation
import Reports

/// Prints results to standard output, and everything else to standard error.
enum Output {
  /// A line of the result; its role has a colour on a terminal.
  static func line(_ text: String = "", _ role: TextRole? = nil) {
    var text = plain(text)
    if let role, StandardStreams.colorsResults { text = role.colored(text) }
    write(text + "\n")
  }

  /// A line of the result that names a command to run.
  static func advice(_ text: String) { line(Program.current.named(text)) }

  /// A line of a difference: its sign is its role.
  static func difference(_ difference: ContainerDifference, limit: Int? = nil) {
    for each in difference.lines(limit: limit) {
      let role = each.change.flatMap { TextRole(rawValue: $0.rawValue) }
      for text in each.texts { line(text, role) }
    }
  }

  /// A report, section by section.
  ///
  /// - Parameter isSpaced: whether an empty line is before each.
  static func report(_ report: Report, isSpaced: Bool = false) {
    write(report.opening)
    for section in report.sections {
      if isSpaced { line() }
      write(section)
    }
  }

  static func write(_ section: Report.Section) {
    write([section.heading])
    for block in section.blocks { write(block) }
  }

  private static func write(_ block: Report.Block) {
    switch block {
    case .lines(let lines): write(lines)
    case .list(let lines, let shown, let hint):
      write(Array(lines.prefix(shown)))
      if let more = String.more(lines.count - shown) {
        line(indent(lines[0].depth) + more + Program.current.named(hint))
      }
    case .table(let table):
      let rows = table.rows.prefix(table.limit)
      Self.table(
        rows.map { $0.cells.map(\.text) }, indent: indent(table.depth), roles: rows.map { _ in table.role })
      if let more = String.more(table.rows.count - rows.count) { line(indent(table.depth) + more) }
    case .difference(let difference): Output.difference(difference)
    case .fold(let line, let blocks):
      write([line])
      for block in blocks { write(block) }
    }
  }

  private static func write(_ lines: [Report.Line]) {
    for each in lines { line(indent(each.depth) + each.text, each.role) }
  }

  private static func indent(_ depth: Int) -> String { String(repeating: "  ", count: depth) }

  /// What a dry run would change, in full, and the counts.
  ///
  /// - Parameter heading: what is said of it.
  static func dryRun(_ difference: ContainerDifference, _ heading: String = "the difference would be") {
    line("dry run: nothing was changed; \(heading)")
    if difference.isEmpty { return line("  nothing would change") }
    Output.difference(difference)
    line(difference.summary)
  }

  static func error(_ text: String) { write(Notice(.error, text)) }
  static func warning(_ text: String) { write(Notice(.warning, text)) }
  static func note(_ text: String) { write(Notice(.note, text)) }

  /// Errors, warnings and notes have one form: `drydock: error: …`, with details on indented lines below.
  static func write(_ notice: Notice) {
    if notice.role == .note, isQuiet { return }
    let prefix = "\(Program.current.name): \(notice.role.rawValue):"
    let text = plain(Program.current.named(notice.text))
    StandardStreams.note(
      "\(StandardStreams.colorsNotices ? notice.role.colored(prefix) : prefix) \(text)\n")
  }

  /// A line on standard error that belongs to the command's conversation: a summary, a question, its answer.
  static func message(_ text: String) {
    if !isQuiet { StandardStreams.note(plain(Program.current.named(text)) + "\n") }
  }

  /// Whether a person wants to go on, after the lines that say what would happen.
  static func isConfirmed(_ lines: [String], _ text: String) -> Bool {
    StandardStreams.asking {
      for line in lines { message("  \(line)") }
      message("\(text) Continue? [y/N]")
      return ["y", "yes"].contains(readLine()?.lowercased())
    }
  }

  /// Whether only results, warnings and errors are printed.
  static var isQuiet: Bool { StandardStreams.isQuiet }

  /// Warnings, as notes: the first ones of each kind, and how many more there are.
  static func warn(_ warnings: [ContainerWarning]) {
    var shown: [ContainerWarning.Kind: Int] = [:]
    for warning in warnings {
      shown[warning.kind, default: 0] += 1
      if shown[warning.kind, default: 0] <= 5 { Self.warning("\(warning)") }
    }
    let rest = shown.values.reduce(0) { $0 + max(0, $1 - 5) }
    if let more = String.more(rest, "more of these; --json lists all") { Self.warning(more) }
  }

  /// Warnings about times of archives: the first ones, and how many more there are.
  static func warn(_ warnings: [ClockWarning]) {
    for text in warnings.lines(5, more: "more; `drydock list --json` lists all") {
      Self.warning(text.printable)
    }
  }

  /// One JSON document, keys in snake case and sorted.
  static func json(_ object: ResultObject) { json(encoding: object) }

  static func json(encoding value: some Encodable) { write(encoded(value, .prettyPrinted) + "\n") }

  /// A line of JSON Lines, as ``encodedLine(_:)`` gives it.
  static func line(encoded text: String) { write(text + "\n") }

  /// A line of JSON Lines: one document without line breaks.
  static func encodedLine(_ value: some Encodable) -> String { encoded(value, []) }

  private static func encoded(_ value: some Encodable, _ format: JSONEncoder.OutputFormatting) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = format.union([.sortedKeys, .withoutEscapingSlashes])
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.dateEncodingStrategy = .iso8601
    do { return String(decoding: try encoder.encode(value), as: UTF8.self) } catch {
      StandardStreams.fail("the result cannot be written as JSON: \(error)")
      return ""
    }
  }

  /// Names and link targets come from containers and archives: control characters are shown as text.
  private static func plain(_ text: String) -> String {
    let isControl = { (scalar: Unicode.Scalar) in
      scalar.value < 0x20 && scalar != "\n" && scalar != "\t" || (0x7F..<0xA0).contains(scalar.value)
    }
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    return text.unicodeScalars.map { isControl($0) ? "\\u{\(String($0.value, radix: 16))}" : String($0) }
      .joined()
  }

  /// Bytes of the result as they are.
  static func bytes(_ bytes: UnsafeRawBufferPointer) { StandardStreams.result(bytes) }

  private static func write(_ text: String) {
    var text = text
    text.withUTF8 { StandardStreams.result(UnsafeRawBufferPointer($0)) }
  }

  /// A word of a command line, in quotes where a shell would read it as something else.
  static func word(_ text: String) -> String {
    let isPlain = text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_./-+,:@%=".contains($0)) }
    return isPlain && !text.isEmpty ? text : "'\(text.replacing("'", with: "'\\''"))'"
  }

  /// Rows as columns, the last one ragged. On a terminal a last column that is too wide goes on below itself.
  static func table(_ rows: [[String]], indent: String = "  ", roles: [TextRole?] = []) {
    var columns = Columns(indent: indent)
    for row in rows { columns.measure(row) }
    for (number, row) in rows.enumerated() {
      columns.write(row, number < roles.count ? roles[number] : nil)
    }
  }

  /// A table whose rows need not be in memory: all are measured first, and then written.
  struct Columns {
    private let indent: String
    private var widths: [Int] = []

    init(indent: String = "  ") { self.indent = indent }

    mutating func measure(_ row: [String]) {
      for (number, cell) in row.enumerated() {
        if number == widths.count { widths.append(0) }
        widths[number] = max(widths[number], cell.count)
      }
    }

    func write(_ row: [String], _ role: TextRole? = nil) {
      let row = row.dropLast(row.reversed().prefix(while: \.isEmpty).count)
      guard let last = row.last else { return line() }
      let cells = zip(row.dropLast(), widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
      let beginning = indent + cells.map { $0 + "  " }.joined()
      for text in Self.fitting(beginning, last, indent.count, StandardStreams.outputWidth) {
        line(String(text.prefix(text.count - text.reversed().prefix { $0 == " " }.count)), role)
      }
    }

    /// The lines of a row: the last cell is broken between words, beside the others, or below them where that is too narrow.
    static func fitting(_ beginning: String, _ last: String, _ indent: Int, _ width: Int?) -> [String] {
      guard let width, beginning.count + last.count > width, beginning.count > indent else {
        return [beginning + last]
      }
      let isBeside = beginning.count + narrowest <= width
      let margin = String(repeating: " ", count: isBeside ? beginning.count : indent + 4)
      var lines = isBeside ? [] : [beginning]
      var line = ""
      for word in last.split(separator: " ", omittingEmptySubsequences: false) {
        if !line.isEmpty, margin.count + line.count + 1 + word.count > width {
          lines.append(margin + line)
          line = ""
        }
        line += (line.isEmpty ? "" : " ") + word
      }
      lines.append(margin + line)
      if isBeside { lines[0] = beginning + lines[0].dropFirst(margin.count) }
      return lines
    }

    private static let narrowest = 20
  }
}

// The commands name it without importing the module of reports.
typealias ResultObject = Reports.ResultObject
