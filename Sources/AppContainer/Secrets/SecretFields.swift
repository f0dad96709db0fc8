import Formats

/// What the names of fields that belong together say about their values: by the names themselves, and by a text beside
/// them, as in `{name: auth_token, value: …}`. Fields are those of a dictionary, or the columns of a row.
package struct SecretFields {
  private static let nameKeys: Set<String> = [
    "name", "key", "id", "identifier", "field", "header", "title", "account",
  ]
  private static let valueKeys: Set<String> = [
    "value", "data", "content", "text", "string", "blob", "body", "payload", "val", "v",
  ]

  private var outer: SecretName
  private let hasValue: Bool
  private var beside = SecretName.plain

  /// Judges the fields of a dictionary that has a name itself.
  package init(_ values: PropertyListDictionary, inside outer: SecretName) {
    self.init(keys: values.keys.lazy.map(\.text), inside: outer)
    for (key, value) in values {
      if case .string(let text) = value { note(text, in: key) }
    }
  }

  /// The columns of a table. What its name says is about those that hold a value; a table of sessions also says when
  /// they were.
  package init(columns: some Sequence<String>, of table: SecretName) {
    self.init(keys: columns, inside: min(table, .suspicious))
    if table > .suspicious { beside = table }
  }

  private init(keys: some Sequence<String>, inside outer: SecretName) {
    self.outer = outer
    hasValue = keys.contains { Self.valueKeys.contains($0.lowercased()) }
  }

  /// Takes the text of a field into account, which may be the name of what stands beside it.
  ///
  /// - Parameters:
  ///   - isKey: whether it tells one row from others: then it names all that the row has.
  /// - Returns: whether it changes anything.
  @discardableResult
  package mutating func note(_ text: String, in key: String, isKey: Bool = false) -> Bool {
    guard text.utf8.count < 100, isKey || Self.nameKeys.contains(key.lowercased()) else { return false }
    let name = SecretName(text)
    guard name > .suspicious else { return false }
    beside = max(beside, name)
    if isKey { outer = max(outer, name) }
    return true
  }

  /// What is known about a field's value.
  package subscript(_ key: String) -> SecretName {
    let own = SecretName(key)
    let word = key.lowercased()
    if Self.valueKeys.contains(word) { return max(own.inside(outer, name: key), beside) }
    // Beside a value, a key or a name is no secret.
    if hasValue, Self.nameKeys.contains(word) { return outer == .secret ? .suspicious : .plain }
    return own.inside(outer, name: key)
  }

  /// Whether a key itself is a secret: a token, or in a list of sessions what looks like one.
  package func isSecret(key: String) -> Bool {
    SecretText.isSecret(key)
      || outer == .secret && SecretName(key) == .plain && SecretToken.isLikely(key)
  }
}
