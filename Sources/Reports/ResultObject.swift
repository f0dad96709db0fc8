/// An object of a JSON result, with the documented keys; a nil value is left out.
package struct ResultObject: Encodable, Sendable, ExpressibleByDictionaryLiteral {
  private var members: [String: any Encodable & Sendable]

  package init(dictionaryLiteral elements: (String, (any Encodable & Sendable)?)...) {
    members = Dictionary(uniqueKeysWithValues: elements.compactMap { key, value in value.map { (key, $0) } })
  }

  package subscript(_ key: String) -> (any Encodable & Sendable)? {
    get { members[key] }
    set { members[key] = newValue }
  }

  package func adding(_ other: ResultObject) -> ResultObject {
    var all = self
    all.members.merge(other.members) { $1 }
    return all
  }

  package func encode(to encoder: any Encoder) throws {
    struct Key: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
    var object = encoder.container(keyedBy: Key.self)
    for (key, value) in members { try object.encode(value, forKey: Key(stringValue: key)) }
  }
}
