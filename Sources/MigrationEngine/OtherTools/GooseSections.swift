import Formats

/// What goose's annotations say about a file, and what goose would not read.
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
  /// The line of a `StatementBegin` that is not ended yet.
  private var begin: Int?
  /// The line that a statement starts in that is not ended yet.
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
      if let early { throw place(early).error("statements stand before `-- +goose Up`") }
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
