import AppContainer
import AppFrameworks
import Formats

/// The statements and down statements of another tool's migration. Lines keep their numbers.
struct ToolScript: Sendable {
  private(set) var up: SQLScript
  private(set) var down: SQLScript?
  private(set) var upInTransaction = true
  private(set) var downInTransaction = true

  init(up: SQLScript) { self.up = up }

  init(_ format: MigrationTool.Format, ways: [ToolFile.Way: String], _ files: MigrationFiles) throws {
    func script(_ way: ToolFile.Way) throws -> SQLScript? {
      guard let name = ways[way] else { return nil }
      let file = files.display(name)
      guard let text = TextFile.utf8(files.contents[name] ?? []) else {
        throw YAMLPosition(file: file, line: 1, column: 1).error("the file is not UTF-8")
      }
      return SQLScript(bytes: text, file: file, firstLine: 1)
    }
    let nothing = SQLScript(text: "", file: files.directory, firstLine: 1)
    up = try script(.whole) ?? script(.up) ?? nothing
    switch format {
    case .dbmate: try splitDbmate()
    case .goose: try splitGoose()
    case .golangMigrate:
      down = try script(.down)
      // With x-no-tx-wrap, which is not in the files, they have their own BEGIN and COMMIT.
      upInTransaction = !Self.hasTransaction(up)
      downInTransaction = down.map { !Self.hasTransaction($0) } ?? true
    case .room: break
    case .sqldelight:
      up = SQLScript(bytes: SQLDelightText.stripped(up.bytes), file: up.file, firstLine: up.firstLine)
    }
  }

  private static func hasTransaction(_ script: SQLScript) -> Bool {
    script.statements().contains(where: \.isAboutTransactions)
  }

  /// `-- migrate:up` and `-- migrate:down`, each once, at the start of a line, with options such as `transaction:false`.
  private mutating func splitDbmate() throws {
    var sections: [(way: String, options: String, line: Int)] = []
    let lines = Self.lines(of: up)
    for (index, line) in lines.enumerated() where line.hasPrefix("--") {
      guard let match = line.prefixMatch(of: #/--\s*migrate:(up|down)(\s.*)?$/#) else { continue }
      let way = String(match.1)
      if sections.contains(where: { $0.way == way }) {
        throw place(index).error("a second `-- migrate:\(way)`: dbmate fails at several sections in one file")
      }
      let options = match.2.map { $0.split(whereSeparator: \.isWhitespace) } ?? []
      if way == "down", options.count > 1 {
        throw place(index).error("dbmate takes one option after `-- migrate:down`, and no section with more")
      }
      sections.append((way, String(match.2 ?? ""), index))
    }
    guard let first = sections.first, first.way == "up" else {
      throw place(0).error("dbmate wants `-- migrate:up` first")
    }
    // Line by line, as dbmate does: it does not know block comments.
    for (index, line) in lines[..<first.line].enumerated() {
      let text = line.drop(while: \.isWhitespace)
      if text.isEmpty || text.hasPrefix("--") { continue }
      throw place(index).error(
        "only comments with `--` may be before `-- migrate:up`: dbmate reads this as a statement")
    }
    guard sections.count == 2 else { throw place(0).error("dbmate wants `-- migrate:down`, too") }
    upInTransaction = !Self.isWithoutTransaction(first.options)
    downInTransaction = !Self.isWithoutTransaction(sections[1].options)
    let whole = up
    // With the line ends of the file, as dbmate runs it.
    let raw = whole.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    func part(from: Int, to end: Int) -> SQLScript {
      SQLScript(
        bytes: Array(raw[from..<end].joined(separator: [UInt8(ascii: "\n")])), file: whole.file,
        firstLine: whole.firstLine + from)
    }
    up = part(from: first.line + 1, to: sections[1].line)
    down = part(from: sections[1].line + 1, to: lines.count)
  }

  private static func isWithoutTransaction(_ options: String) -> Bool {
    options.split(whereSeparator: \.isWhitespace).last { $0.hasPrefix("transaction:") } == "transaction:false"
  }

  /// `-- +goose Up` and, maybe, `-- +goose Down`.
  private mutating func splitGoose() throws {
    let lines = Self.lines(of: up)
    let sections = try GooseSections(lines, file: up.file)
    (upInTransaction, downInTransaction) = (sections.inTransaction, sections.inTransaction)
    let (whole, turn) = (up, sections.down)
    up = Self.part(of: whole, lines, from: sections.up + 1, to: turn ?? lines.count)
    down = turn.map { Self.part(of: whole, lines, from: $0 + 1, to: lines.count) }
    for script in [up, down].compactMap(\.self) { try sections.refuseSplitStatements(in: script) }
  }

  private func place(_ line: Int) -> YAMLPosition { YAMLPosition(file: up.file, line: line + 1, column: 1) }

  private static func lines(of script: SQLScript) -> [String] {
    script.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      String(decoding: $0.last == 0x0D ? $0.dropLast() : $0, as: UTF8.self)
    }
  }

  private static func part(of script: SQLScript, _ lines: [String], from: Int, to end: Int) -> SQLScript {
    SQLScript(
      text: lines[from..<end].joined(separator: "\n"), file: script.file, firstLine: script.firstLine + from)
  }
}

/// The sections of a goose file by its annotations, and the errors that goose would report.
struct GooseSections {
  /// The lines of `-- +goose Up` and `-- +goose Down`, from 0.
  private(set) var up = 0
  private(set) var down: Int?
  private(set) var inTransaction = true

  private let file: String
  /// The lines that end a statement for goose, from 0, ascending.
  private var ends: [Int] = []
  private var isStarted = false
  /// The first line with statements before all annotations.
  private var early: Int?
  /// The line of an open `StatementBegin`.
  private var begin: Int?
  /// The first line of an open statement.
  private var open: Int?

  init(_ lines: [String], file: String) throws {
    self.file = file
    for (index, line) in lines.enumerated() {
      let text = line.drop(while: \.isWhitespace)
      if text.hasPrefix("--") {
        let words = text.dropFirst(2).split(whereSeparator: \.isWhitespace).map { $0.lowercased() }
        if words.first == "+goose" {
          guard line.hasPrefix("--") else {
            throw place(index).error(
              "goose refuses white space before an annotation: move it to the start of the line")
          }
          try read(words.dropFirst().joined(separator: " "), at: index)
          continue
        }
        if open == nil { continue }
      }
      if begin != nil || text.isEmpty { continue }
      guard isStarted else {
        early = early ?? index
        continue
      }
      if open == nil { open = index }
      if Self.endsStatement(text) {
        ends.append(index)
        open = nil
      }
    }
    guard isStarted else { throw place(0).error("goose wants a line `-- +goose Up`") }
    if let begin { throw place(begin).error("`-- +goose StatementEnd` is missing") }
    try refuseOpenStatement()
  }

  private mutating func read(_ annotation: String, at index: Int) throws {
    switch annotation {
    case "up":
      if isStarted { throw place(index).error("a second `-- +goose Up`") }
      if let early { throw place(early).error("the file has statements before `-- +goose Up`") }
      (isStarted, up) = (true, index)
    case "down":
      guard isStarted, down == nil else {
        throw place(index).error("`-- +goose Down` comes once, after `-- +goose Up`")
      }
      if let begin { throw place(begin).error("`-- +goose StatementEnd` is missing") }
      try refuseOpenStatement()
      down = index
    case "statementbegin":
      guard isStarted, begin == nil else {
        throw place(index).error("`-- +goose StatementBegin` comes after `-- +goose Up` or `-- +goose Down`")
      }
      (begin, open) = (index, nil)
    case "statementend":
      guard begin != nil else {
        throw place(index).error("`-- +goose StatementEnd` comes after `-- +goose StatementBegin`")
      }
      begin = nil
    case "no transaction": inTransaction = false
    case "envsub on", "envsubst on":
      throw place(index).error(
        "goose puts variables of the environment into this file; Drydock does not, since it would run another "
          + "migration each time: write the values out")
    case "envsub off", "envsubst off": break
    default:
      throw place(index).error(
        "goose knows no annotation `\(annotation)`: it is one of Up, Down, StatementBegin, StatementEnd, NO TRANSACTION"
      )
    }
  }

  private func refuseOpenStatement() throws {
    guard let open else { return }
    throw place(open).error("goose wants a semicolon at the end of each statement, and the one here has none")
  }

  /// Whether the last word of a line, comments aside, has a semicolon at its end.
  private static func endsStatement(_ line: Substring) -> Bool {
    var last: Substring?
    for word in line.split(whereSeparator: \.isWhitespace) {
      if word.hasPrefix("--") { break }
      last = word
    }
    return last?.hasSuffix(";") == true
  }

  /// Goose ends a statement wherever a line ends in a semicolon, in a trigger, too.
  func refuseSplitStatements(in script: SQLScript) throws {
    var places = SQLPlaces(script)
    var next = ends[...]
    var offset = 0
    while let statement = script.statement(from: offset) {
      offset = statement.end
      let start = places.position(at: statement.offset)
      let lines = statement.text.utf8.count { $0 == UInt8(ascii: "\n") }
      // Lines of the file, from 0.
      let (first, last) = (start.line - 1, start.line - 1 + lines)
      next = next.drop { $0 < first }
      guard let end = next.first, end < last else { continue }
      throw start.error(
        "goose ends a statement at each line that ends in a semicolon, as line \(end + 1) does: put "
          + "`-- +goose StatementBegin` and `-- +goose StatementEnd` around this one")
    }
  }

  private func place(_ line: Int) -> YAMLPosition { YAMLPosition(file: file, line: line + 1, column: 1) }
}
