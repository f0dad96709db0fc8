/// SQL taken apart into names, texts, comments and signs, which together are the same text again.
struct SQLText {
  struct Token {
    enum Kind {
      case word, quotedName, text, comment, space, sign
    }

    var kind: Kind
    /// A name or a text without its quotes; for other tokens, the source text.
    var content: String
    /// As it is in the SQL.
    var source: String

    var isName: Bool { kind == .word || kind == .quotedName }
    /// Whether it is neither white space nor a comment.
    var counts: Bool { kind != .space && kind != .comment }

    func isWord(_ word: String) -> Bool { kind == .word && content.uppercased() == word }
    func isSign(_ sign: String) -> Bool { kind == .sign && content == sign }
  }

  private(set) var tokens: [Token] = []
  private let bytes: [UInt8]
  private var index = 0

  init(_ sql: some StringProtocol) {
    bytes = Array(sql.utf8)
    while index < bytes.count { tokens.append(next()) }
  }

  private mutating func next() -> Token {
    let rest = bytes[index...]
    switch bytes[index] {
    case UInt8(ascii: "'"): return quoted("'", .text)
    case UInt8(ascii: "\""): return quoted("\"", .quotedName)
    case UInt8(ascii: "`"): return quoted("`", .quotedName)
    case UInt8(ascii: "["):
      let source = take(rest.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 - index } ?? rest.count)
      return Token(kind: .quotedName, content: String(source.dropFirst().dropLast()), source: source)
    case UInt8(ascii: "-") where rest.starts(with: "--".utf8):
      return token(.comment, (rest.firstIndex(of: 0x0A) ?? bytes.count) - index)
    case UInt8(ascii: "/") where rest.starts(with: "/*".utf8):
      var end = index + 2
      while end < bytes.count, !bytes[end...].starts(with: "*/".utf8) { end += 1 }
      return token(.comment, min(end + 2, bytes.count) - index)
    case let byte where Self.isSpace(byte): return token(.space, rest.prefix(while: Self.isSpace).count)
    case let byte where Self.isWord(byte): return token(.word, rest.prefix(while: Self.isWord).count)
    default: return token(.sign, 1)
    }
  }

  private mutating func token(_ kind: Token.Kind, _ count: Int) -> Token {
    let source = take(count)
    return Token(kind: kind, content: source, source: source)
  }

  private mutating func quoted(_ quote: String, _ kind: Token.Kind) -> Token {
    let mark = bytes[index]
    var end = index + 1
    while end < bytes.count {
      if bytes[end] == mark {
        guard end + 1 < bytes.count, bytes[end + 1] == mark else { break }
        end += 1
      }
      end += 1
    }
    let content = String(decoding: bytes[(index + 1)..<min(end, bytes.count)], as: UTF8.self)
    let source = take(min(end + 1, bytes.count) - index)
    return Token(kind: kind, content: content.replacing(quote + quote, with: quote), source: source)
  }

  private mutating func take(_ count: Int) -> String {
    defer { index += count }
    return String(decoding: bytes[index..<(index + count)], as: UTF8.self)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte >= 0x80 || (byte >= 0x30 && byte <= 0x39)
      || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A)
  }

  /// The first word, in capitals; comments are skipped.
  var firstWord: String {
    tokens.first(where: \.counts).flatMap { $0.isName ? $0.content.uppercased() : nil } ?? ""
  }

  /// Tokens as text without comments, white space and the quotes of names: where SQLite renames something, it writes
  /// the name in quotes.
  static func words(_ tokens: [Token]) -> String {
    tokens.filter(\.counts).map { $0.kind == .text ? $0.source : $0.content }.joined(separator: " ")
  }
}

/// A `CREATE TABLE` statement: what is before its columns, the columns and constraints, and what is behind them.
struct TableSQL {
  private(set) var head: [SQLText.Token] = []
  /// Empty for any other statement.
  private(set) var parts: [[SQLText.Token]] = []
  private(set) var tail: [SQLText.Token] = []

  init(_ tokens: [SQLText.Token]) {
    guard tokens.first?.isWord("CREATE") == true, tokens.prefix(3).contains(where: { $0.isWord("TABLE") }),
      let open = tokens.firstIndex(where: { $0.isSign("(") })
    else { return }
    let (parts, end) = SQLText.list(tokens[open...])
    (head, self.parts, tail) = (Array(tokens[..<open]), parts, Array(tokens[end...]))
  }

  var columns: [(name: String, definition: [SQLText.Token])] {
    parts.compactMap { part in
      guard let first = part.first, first.isName || first.kind == .text, !Self.isConstraint(part) else {
        return nil
      }
      return (first.content, Array(part.dropFirst()))
    }
  }

  var isVirtual: Bool { head.contains { $0.isWord("VIRTUAL") } }

  /// The statement with its columns and constraints in the order of their text; nil for anything but a plain table.
  var unordered: String? {
    if parts.isEmpty || isVirtual { return nil }
    return ([SQLText.words(head)] + parts.map(SQLText.words).sorted() + [SQLText.words(tail)]).joined(
      separator: "\n")
  }

  private static func isConstraint(_ part: [SQLText.Token]) -> Bool {
    ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"].contains { part.first?.isWord($0) == true }
  }
}

extension SQLText {
  /// The elements of a list in parentheses that begins here, and the index behind it.
  static func list(_ tokens: ArraySlice<Token>) -> (elements: [[Token]], end: Int) {
    var elements: [[Token]] = [[]]
    var depth = 0
    for index in tokens.indices {
      let token = tokens[index]
      if token.isSign("(") { depth += 1 } else if token.isSign(")") { depth -= 1 }
      if depth == 0 { return (elements, index + 1) }
      if depth == 1, token.isSign(",") {
        elements.append([])
      } else if depth > 1 || index > tokens.startIndex {
        elements[elements.count - 1].append(token)
      }
    }
    return (elements, tokens.endIndex)
  }
}
