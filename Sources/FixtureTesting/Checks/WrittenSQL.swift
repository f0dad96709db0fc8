/// SQL as it stands in a schema. Where SQLite renames something, it writes the name in quotes: the same schema may be written in
/// two ways, and a person writes it in a third.
enum WrittenSQL {
  /// Whether two texts are the same but for quotes around names, and for white space.
  static func isSame(_ one: String?, _ other: String?) -> Bool {
    guard let one, let other else { return one == other }
    return plain(one) == plain(other)
  }

  /// Whether two texts make the same table but for the order of its columns and constraints.
  static func isSameButForColumnOrder(_ one: String?, _ other: String?) -> Bool {
    guard let one = one.flatMap(columns), let other = other.flatMap(columns) else { return false }
    return one == other
  }

  private static func plain(_ sql: some StringProtocol) -> String {
    var words = String(sql).filter { !"\"`[]".contains($0) }.split(whereSeparator: \.isWhitespace).joined(
      separator: " ")
    for sign in ["(", ")", ","] {
      words.replace(" \(sign)", with: sign)
      words.replace("\(sign) ", with: sign)
    }
    return words
  }

  /// What stands before the columns, the columns in order of their text, and what stands behind them; nil for what is no
  /// plain `CREATE TABLE`, or has comments.
  private static func columns(_ sql: String) -> [String]? {
    guard plain(sql.prefix(20)).uppercased().hasPrefix("CREATE TABLE"), !sql.contains("--"),
      !sql.contains("/*")
    else { return nil }
    var parts: [Substring] = []
    var depth = 0
    var start = sql.startIndex
    var quote: Character?
    for index in sql.indices {
      let character = sql[index]
      if let open = quote {
        if character == (open == "[" ? "]" : open) { quote = nil }
        continue
      }
      switch character {
      case "'", "\"", "`", "[": quote = character
      case "(": depth += 1
      case ")": depth -= 1
      default: break
      }
      let isOpening = character == "(" && depth == 1 && parts.isEmpty
      let isEnd = character == ")" && depth == 0 || character == "," && depth == 1
      if isOpening || isEnd {
        parts.append(sql[start..<index])
        start = sql.index(after: index)
      }
    }
    guard parts.count > 1, depth == 0 else { return nil }
    return [plain(parts[0])] + parts.dropFirst().map(plain).sorted() + [plain(sql[start...])]
  }
}
