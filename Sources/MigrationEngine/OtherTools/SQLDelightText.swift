import Formats

/// What SQLDelight's files have that is not SQL: `import kotlin.…` lines, and the Kotlin type of a column after its SQL
/// type (`flag INTEGER AS Boolean NOT NULL`). SQLDelight strips both before SQLite sees the statement.
struct SQLDelightText {
  private var bytes: [UInt8]
  private let tokens: [SQLToken]

  /// The text with blanks in their place, so that lines and columns stay.
  static func stripped(_ bytes: [UInt8]) -> [UInt8] {
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
