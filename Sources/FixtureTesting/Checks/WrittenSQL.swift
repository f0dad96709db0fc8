/// SQL as it stands in a schema. Where SQLite renames something, it writes the name in quotes: the same schema may be written in
/// two ways, and a person writes it in a third.
enum WrittenSQL {
  /// Whether two texts are the same but for quotes around names, and for white space.
  static func isSame(_ one: String?, _ other: String?) -> Bool {
    guard let one, let other else { return one == other }
    return plain(one) == plain(other)
  }

  private static func plain(_ sql: String) -> String {
    var words = sql.filter { !"\"`[]".contains($0) }.split(whereSeparator: \.isWhitespace).joined(
      separator: " ")
    for sign in ["(", ")", ","] {
      words.replace(" \(sign)", with: sign)
      words.replace("\(sign) ", with: sign)
    }
    return words
  }
}
