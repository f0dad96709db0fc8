import DrydockErrors
import FileSystem
import Formats

/// The schema that SQLDelight creates in an empty database: the CREATE statements of its `.sq` files. Labelled statements are
/// queries, and INSERTs are rows.
package struct SQLDelightSources {
  private var tables: [SQLScript] = []
  private var views: [SQLScript] = []
  /// Indexes and triggers, which need the others.
  private var others: [SQLScript] = []
  /// The databases of old versions, `N.db`, that SQLDelight verifies its migrations with.
  package private(set) var databases: [(version: Int, path: String)] = []

  private static let sizeLimit = 4 << 20

  /// Reads a directory's `.sq` files at every depth.
  ///
  /// - Throws: ``DrydockError`` `catalog` when it has none with a CREATE statement.
  package init(_ path: String) throws {
    let folder: Directory
    do { folder = try Directory(path) } catch let error as DrydockError where error.code == .notFound {
      throw DrydockError(.catalog, "the directory of SQLDelight's .sq files does not exist", path: path)
    }
    try folder.walk { entry in
      let name = entry.name.nameString
      if entry.status.type == .directory { return name.hasPrefix(".") ? .over : .into }
      guard entry.status.type == .file else { return .over }
      if name.hasSuffix(".sq") {
        add(try folder.contents(entry.path, limit: Self.sizeLimit), file: "\(path)/\(entry.path)")
      } else if name.hasSuffix(".db"), let version = Int(name.dropLast(3)), version > 0 {
        databases.append((version, "\(path)/\(entry.path)"))
      }
      return .over
    }
    databases.sort { $0.version < $1.version }
    if tables.isEmpty {
      throw DrydockError(
        .catalog, "no .sq file creates a table: name the directory of `.sq` files", path: path)
    }
  }

  /// The statements in the order in which they can be run.
  package var statements: [SQLScript] { tables + views + others }

  private mutating func add(_ bytes: [UInt8], file: String) {
    let script = SQLScript(bytes: SQLDelightText.stripped(bytes), file: file, firstLine: 1)
    var places = SQLPlaces(script)
    var offset = 0
    while true {
      let start = script.word(from: offset)
      var tokens = SQLTokens(script.bytes, from: start)
      guard let first = tokens.next() else { return }
      if let second = tokens.next(), first.kind == .word, second.isSign("{") {
        offset = Self.end(of: &tokens) ?? script.bytes.count
        continue
      }
      guard let statement = script.statement(from: start) else { return }
      offset = statement.end
      guard statement.verb == "CREATE" else { continue }
      let words = SQLToken.all(in: statement.text).prefix(3).map { $0.text.uppercased() }
      let part = SQLScript(
        text: statement.text, file: file, firstLine: places.position(at: statement.offset).line)
      if words.contains("TABLE") {
        tables.append(part)
      } else if words.contains("VIEW") {
        views.append(part)
      } else {
        others.append(part)
      }
    }
  }

  /// Past the brace that closes a labelled group of statements.
  private static func end(of tokens: inout SQLTokens) -> Int? {
    var depth = 1
    while let token = tokens.next() {
      if token.isSign("{") { depth += 1 }
      if token.isSign("}") { depth -= 1 }
      if depth == 0 { return token.range.upperBound }
    }
    return nil
  }
}

/// What SQLDelight's files have that is not SQL: `import kotlin.…` lines, and the Kotlin type of a column after its SQL
/// type (`flag INTEGER AS Boolean NOT NULL`). SQLDelight strips both before SQLite sees the statement.
package struct SQLDelightText {
  private var bytes: [UInt8]
  private let tokens: [SQLToken]

  /// The text with blanks in their place, so that lines and columns stay.
  package static func stripped(_ bytes: [UInt8]) -> [UInt8] {
    var text = SQLDelightText(bytes: bytes, tokens: Array(SQLTokens(bytes)))
    text.strip()
    return text.bytes
  }

  /// A bare word or sign, in capitals.
  private func word(_ index: Int) -> String {
    guard tokens.indices.contains(index), !tokens[index].isQuoted else { return "" }
    return tokens[index].text.uppercased()
  }

  private mutating func blank(_ range: Range<Int>) {
    for index in tokens[range.lowerBound].range.lowerBound..<tokens[range.upperBound - 1].range.upperBound
    where bytes[index] > 0x20 {
      bytes[index] = 0x20
    }
  }

  private mutating func strip() {
    var blanks: [Range<Int>] = []
    var index = 0
    while index < tokens.count {
      if word(index) == "IMPORT" {
        let end = importEnd(index)
        blanks.append(index..<end)
        index = end
        continue
      }
      let isTable = word(index) == "CREATE" && ["TABLE", "TEMP", "TEMPORARY"].contains(word(index + 1))
      let isColumn = word(index) == "ALTER" && word(index + 1) == "TABLE"
      // Columns are inside of the parentheses of CREATE TABLE, and outside of any in ALTER TABLE … ADD COLUMN.
      let columnDepth = isTable ? 1 : isColumn ? 0 : -1
      var depth = 0
      while index < tokens.count, word(index) != ";" {
        switch word(index) {
        case "(": depth += 1
        case ")": depth -= 1
        // `GENERATED ALWAYS AS (…)` is SQL.
        case "AS" where depth == columnDepth && word(index + 1) != "(":
          let end = typeEnd(index + 1)
          blanks.append(index..<end)
          index = end - 1
        default: break
        }
        index += 1
      }
      index += 1
    }
    for range in blanks { blank(range) }
  }

  /// Past `import a.b.C;`; the semicolon goes, too.
  private func importEnd(_ start: Int) -> Int {
    var index = start + 1
    while index < tokens.count, word(index) != ";" {
      // Without a semicolon the line ends it.
      if bytes[tokens[index - 1].range.upperBound..<tokens[index].range.lowerBound].contains(0x0A) {
        return index
      }
      index += 1
    }
    return min(index + 1, tokens.count)
  }

  /// Past a Kotlin type with its annotations: `@Name(…) a.b.List<c.D?>?`.
  private func typeEnd(_ start: Int) -> Int {
    var index = start
    while word(index) == "@" {
      index = nameEnd(index + 1)
      if word(index) == "(" { index = closing("(", ")", index) }
    }
    index = nameEnd(index)
    if word(index) == "<" { index = closing("<", ">", index) }
    if word(index) == "?" { index += 1 }
    return min(max(index, start), tokens.count)
  }

  private func nameEnd(_ start: Int) -> Int {
    var index = start + 1
    while word(index) == "." { index += 2 }
    return index
  }

  private func closing(_ open: String, _ close: String, _ start: Int) -> Int {
    var (index, depth) = (start, 0)
    while index < tokens.count {
      if word(index) == open { depth += 1 }
      if word(index) == close { depth -= 1 }
      index += 1
      if depth == 0 { break }
    }
    return index
  }
}
