/// What SQLDelight's files have that is not SQL: `import kotlin.…` lines, and the Kotlin type of a column after its SQL
/// type (`flag INTEGER AS Boolean NOT NULL`). SQLDelight strips both before SQLite sees the statement.
struct SQLDelightText {
  private var bytes: [UInt8]
  /// Where tokens are in the text; comments and white space between them are none.
  private var tokens: [Range<Int>] = []

  /// The text with blanks in their place, so that lines and columns stay.
  static func stripped(_ bytes: [UInt8]) -> [UInt8] {
    var text = SQLDelightText(bytes: bytes)
    text.readTokens()
    text.strip()
    return text.bytes
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private mutating func readTokens() {
    var index = 0
    func end(_ closing: UInt8, _ start: Int) -> Int {
      min((bytes[start...].firstIndex(of: closing) ?? bytes.count) + 1, bytes.count)
    }
    while index < bytes.count {
      let start = index
      let next = index + 1 < bytes.count ? bytes[index + 1] : 0
      switch bytes[index] {
      case ...0x20: index += 1
      case UInt8(ascii: "-") where next == UInt8(ascii: "-"): index = end(0x0A, index)
      case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
        index += 2
        while index + 1 < bytes.count,
          bytes[index] != UInt8(ascii: "*") || bytes[index + 1] != UInt8(ascii: "/")
        {
          index += 1
        }
        index = min(index + 2, bytes.count)
      case let byte where SQLWords.isWord(byte):
        while index < bytes.count, SQLWords.isWord(bytes[index]) { index += 1 }
        tokens.append(start..<index)
      case let byte:
        switch byte {
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): index = end(byte, index + 1)
        case UInt8(ascii: "["): index = end(UInt8(ascii: "]"), index + 1)
        default: index += 1
        }
        tokens.append(start..<index)
      }
    }
  }

  private func word(_ index: Int) -> String {
    guard tokens.indices.contains(index), tokens[index].count < 64 else { return "" }
    return String(decoding: bytes[tokens[index]], as: UTF8.self).uppercased()
  }

  private mutating func blank(_ range: Range<Int>) {
    for index in tokens[range.lowerBound].lowerBound..<tokens[range.upperBound - 1].upperBound
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
      if bytes[tokens[index - 1].upperBound..<tokens[index].lowerBound].contains(0x0A) { return index }
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
