import ContainerDiff

/// Where the objects and rows of a database are in a golden's SQL, as far as it is written as Drydock writes it.
struct GoldenSQLPlaces {
  private let file: String
  private let lines: [Substring]
  /// The statements that fill each table: the columns' names with their literals, and the line.
  private let rows: [String: [(values: [String: String], line: Int)]]

  init(_ sql: String, file: String) {
    self.file = file
    lines = sql.split(separator: "\n", omittingEmptySubsequences: false)
    var rows: [String: [(values: [String: String], line: Int)]] = [:]
    var at = 0
    while at < lines.count {
      let start = at
      var statement = String(lines[at])
      at += 1
      guard statement.hasPrefix("INSERT INTO ") else { continue }
      // A text may have lines of its own.
      while at < lines.count, statement.utf8.count(where: { $0 == UInt8(ascii: "'") }) % 2 == 1 {
        statement += "\n" + lines[at]
        at += 1
      }
      guard let row = Self.row(statement) else { continue }
      rows[row.table, default: []].append((row.values, start + 1))
    }
    self.rows = rows
  }

  /// The line that makes an object; the file alone for one that is not there.
  func object(_ kind: String, _ name: String) -> GoldenPlace {
    if kind == "pragma" {
      return GoldenPlace(file: file, line: number { $0.hasPrefix("PRAGMA \(name) ") })
    }
    let modifiers: Set<String> = ["UNIQUE", "VIRTUAL", "TEMP", "TEMPORARY"]
    let line = number { line in
      guard line.hasPrefix("CREATE ") else { return false }
      var scanner = SQLWords(line.dropFirst("CREATE ".count))
      var word = scanner.next()
      while let modifier = word, modifiers.contains(modifier.uppercased()) { word = scanner.next() }
      return word?.lowercased() == kind && scanner.next() == name
    }
    return GoldenPlace(file: file, line: line)
  }

  /// The line of a row; that of its table where it is not there, or cannot be told.
  func row(_ row: ContainerDifference.Row, of table: String) -> GoldenPlace {
    guard row.change != .added else { return object("table", table) }
    let found = rows[table]?.first { candidate in
      row.key.allSatisfy { field in
        candidate.values[field.name].map { Self.shown($0) == field.before } ?? false
      }
    }
    return found.map { GoldenPlace(file: file, line: $0.line) } ?? object("table", table)
  }

  private func number(_ matches: (Substring) -> Bool) -> Int? {
    lines.firstIndex(where: matches).map { $0 + 1 }
  }

  /// A literal as a comparison shows the value, unless that hides it.
  private static func shown(_ literal: String) -> String {
    guard literal.hasPrefix("'") else { return literal == "NULL" ? "null" : literal }
    return "\"\(literal.dropFirst().dropLast().replacing("''", with: "'"))\""
  }

  /// The parts of `INSERT INTO "t" ("a", b) VALUES (1, 'x');`.
  private static func row(_ statement: String) -> (table: String, values: [String: String])? {
    var words = SQLWords(statement.dropFirst("INSERT INTO ".count))
    guard let table = words.next(), let columns = words.list(), words.next()?.uppercased() == "VALUES",
      let literals = words.list(), columns.count == literals.count
    else { return nil }
    let names = columns.map { column -> String in
      var name = SQLWords(column[...])
      return name.next() ?? column
    }
    return (table, Dictionary(zip(names, literals), uniquingKeysWith: { first, _ in first }))
  }
}

/// Takes the words of a statement one by one.
struct SQLWords {
  private var rest: Substring

  init(_ text: Substring) { rest = text }

  /// The next name without its quotes, or the next word; nil at the end.
  mutating func next() -> String? {
    rest = rest.drop { $0.isWhitespace }
    guard let first = rest.first else { return nil }
    let closing: Character? = first == "\"" ? "\"" : first == "`" ? "`" : first == "[" ? "]" : nil
    guard let closing else {
      let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "$" }
      rest = rest.dropFirst(word.count)
      return word.isEmpty ? nil : String(word)
    }
    var name = ""
    rest = rest.dropFirst()
    while let character = rest.popFirst() {
      guard character == closing else {
        name.append(character)
        continue
      }
      // A quote that stands twice is one of the name.
      guard closing != "]", rest.first == closing else { return name }
      name.append(character)
      rest = rest.dropFirst()
    }
    return nil
  }

  /// The elements of a list in parentheses, as they are written; nil when none starts here.
  mutating func list() -> [String]? {
    rest = rest.drop { $0.isWhitespace }
    guard rest.popFirst() == "(" else { return nil }
    var elements: [String] = []
    var (element, depth, quote) = ("", 0, nil as Character?)
    func trimmed() -> String { String(element.drop { $0.isWhitespace }) }
    while let character = rest.popFirst() {
      if let open = quote {
        if character == open { quote = nil }
      } else if character == "'" || character == "\"" {
        quote = character
      } else if character == "(" {
        depth += 1
      } else if character == ")" {
        if depth == 0 { return elements + [trimmed()] }
        depth -= 1
      } else if character == ",", depth == 0 {
        elements.append(trimmed())
        element = ""
        continue
      }
      element.append(character)
    }
    return nil
  }
}
