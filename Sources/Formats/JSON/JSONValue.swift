/// A JSON value that keeps what nobody asked to change: the order of keys, the digits of numbers, the escapes of text,
/// and the white space between its parts.
package indirect enum JSONValue: Sendable {
  /// `null`.
  case null
  /// `true` or `false`.
  case boolean(Bool)
  /// A number, as it is written.
  case number(JSONNumber)
  /// Text, as it is written.
  case string(JSONString)
  /// Values in order.
  case array(JSONArray)
  /// Values by key, in the order of the text.
  case object(JSONObject)

  /// The name of the type, for messages.
  package var typeName: String {
    switch self {
    case .null: "null"
    case .boolean: "Bool"
    case .number: "number"
    case .string: "string"
    case .array: "array"
    case .object: "object"
    }
  }

  /// Whether both say the same, however they are written: `1.0` is `1e0`, and the order of keys means nothing.
  package func matches(_ other: JSONValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.number(let left), .number(let right)): left.matches(right)
    case (.string(let left), .string(let right)): left.matches(right.text)
    case (.array(let left), .array(let right)):
      left.elements.count == right.elements.count
        && zip(left.elements, right.elements).allSatisfy { $0.matches($1) }
    case (.object(let left), .object(let right)):
      left.members.count == right.members.count && left.matchesMembers(of: right)
    default: false
    }
  }
}

/// The elements of a JSON array, and the white space around them.
package struct JSONArray: Sendable {
  /// In order.
  package private(set) var elements: [JSONValue]
  /// Nil for one that was not read from a text.
  private(set) var spacing: JSONSpacing?

  /// An array that is laid out as its document is.
  package init(_ elements: [JSONValue]) { self.init(elements, nil) }

  init(_ elements: [JSONValue], _ spacing: JSONSpacing?) {
    (self.elements, self.spacing) = (elements, spacing)
  }

  /// Puts a value before the one with an index, or at the end.
  package mutating func insert(_ value: JSONValue, at index: Int) {
    elements.insert(value, at: index)
    spacing = spacing?.inserting(at: index)
  }

  /// Replaces the value with an index.
  package mutating func replace(_ index: Int, with value: JSONValue) { elements[index] = value }

  /// Removes the value with an index.
  package mutating func remove(at index: Int) {
    elements.remove(at: index)
    spacing = spacing?.removing(at: index)
  }
}

/// The members of a JSON object, and the white space around them. No key is there twice.
package struct JSONObject: Sendable {
  /// A key with its value.
  package struct Member: Sendable {
    /// The key.
    package var key: JSONString
    /// The value.
    package var value: JSONValue
    /// The colon with the white space around it; nil for a member that was not read from a text.
    var colon: String?
  }

  /// In the order of the text.
  package private(set) var members: [Member]
  /// Nil for one that was not read from a text.
  private(set) var spacing: JSONSpacing?

  /// An object that is laid out as its document is. No two keys may be the same.
  package init(_ members: [(key: String, value: JSONValue)]) {
    self.init(members.map { Member(key: JSONString($0.key), value: $0.value) }, nil)
  }

  init(_ members: [Member], _ spacing: JSONSpacing?) { (self.members, self.spacing) = (members, spacing) }

  /// Where a key is.
  package func index(of key: String) -> Int? { members.firstIndex { $0.key.matches(key) } }

  /// The value of a key.
  package subscript(_ key: String) -> JSONValue? { index(of: key).map { members[$0].value } }

  fileprivate func matchesMembers(of other: JSONObject) -> Bool {
    let others = Dictionary(
      other.members.map { (ExactText($0.key.text), $0.value) }, uniquingKeysWith: { first, _ in first })
    return members.allSatisfy { others[ExactText($0.key.text)]?.matches($0.value) == true }
  }

  /// Sets a key's value; a new member gets a place, else the end.
  package mutating func set(_ key: String, to value: JSONValue, at place: Int? = nil) {
    if let index = index(of: key) { return members[index].value = value }
    let place = min(place ?? members.count, members.count)
    members.insert(Member(key: JSONString(key), value: value, colon: members.last?.colon), at: place)
    spacing = spacing?.inserting(at: place)
  }

  /// Removes a key with its value.
  package mutating func remove(_ key: String) {
    guard let index = index(of: key) else { return }
    members.remove(at: index)
    spacing = spacing?.removing(at: index)
  }
}
