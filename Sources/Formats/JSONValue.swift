/// A JSON value that preserves the order of keys, the digits of numbers, the escapes of text, and white space.
package indirect enum JSONValue: Sendable {
  case null
  case boolean(Bool)
  case number(JSONNumber)
  case string(JSONString)
  case array(JSONArray)
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

  /// Whether both have the same value: `1.0` matches `1e0`, and the order of keys does not matter.
  package func matches(_ other: JSONValue) -> Bool {
    switch (self, other) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.number(let left), .number(let right)): left.matches(right)
    case (.string(let left), .string(let right)): left.matches(right)
    case (.array(let left), .array(let right)):
      left.elements.count == right.elements.count
        && zip(left.elements, right.elements).allSatisfy { $0.matches($1) }
    case (.object(let left), .object(let right)):
      left.members.count == right.members.count && left.matchesMembers(of: right)
    default: false
    }
  }
}

/// The elements of a JSON array and the white space around them.
package struct JSONArray: Sendable {
  package private(set) var elements: [JSONValue]
  /// Nil when it was not read from a text.
  private(set) var spacing: JSONSpacing?

  /// An array in the style of its document.
  package init(_ elements: [JSONValue]) { self.init(elements, nil) }

  init(_ elements: [JSONValue], _ spacing: JSONSpacing?) {
    (self.elements, self.spacing) = (elements, spacing)
  }

  package mutating func insert(_ value: JSONValue, at index: Int) {
    elements.insert(value, at: index)
    spacing = spacing?.inserting(at: index)
  }

  package mutating func replace(_ index: Int, with value: JSONValue) { elements[index] = value }

  package mutating func remove(at index: Int) {
    elements.remove(at: index)
    spacing = spacing?.removing(at: index)
  }
}

/// The members of a JSON object and the white space around them. Keys are unique.
package struct JSONObject: Sendable {
  package struct Member: Sendable {
    package var key: JSONString
    package var value: JSONValue
    /// The colon with the white space around it; nil when it was not read from a text.
    var colon: String?
  }

  /// In the order of the text.
  package private(set) var members: [Member]
  /// Nil when it was not read from a text.
  private(set) var spacing: JSONSpacing?

  /// An object in the style of its document. Keys must be unique.
  package init(_ members: [(key: String, value: JSONValue)]) {
    self.init(members.map { Member(key: JSONString($0.key), value: $0.value) }, nil)
  }

  init(_ members: [Member], _ spacing: JSONSpacing?) { (self.members, self.spacing) = (members, spacing) }

  package func index(of key: String) -> Int? { members.firstIndex { $0.key.matches(key) } }

  package subscript(_ key: String) -> JSONValue? { index(of: key).map { members[$0].value } }

  fileprivate func matchesMembers(of other: JSONObject) -> Bool {
    let others = Dictionary(
      other.members.map { (ExactText($0.key.text), $0.value) }, uniquingKeysWith: { first, _ in first })
    return members.allSatisfy { others[ExactText($0.key.text)]?.matches($0.value) == true }
  }

  /// Sets a key's value; a new member goes to a place, or to the end.
  package mutating func set(_ key: String, to value: JSONValue, at place: Int? = nil) {
    if let index = index(of: key) { return members[index].value = value }
    let place = min(place ?? members.count, members.count)
    members.insert(Member(key: JSONString(key), value: value, colon: members.last?.colon), at: place)
    spacing = spacing?.inserting(at: place)
  }

  package mutating func remove(_ key: String) {
    guard let index = index(of: key) else { return }
    members.remove(at: index)
    spacing = spacing?.removing(at: index)
  }
}

/// A JSON number as written, with all its digits.
package struct JSONNumber: Sendable {
  package let text: String

  package init(_ number: some BinaryInteger) { text = String(number) }

  /// A real; nil for infinity and NaN, which JSON cannot represent.
  package init?(_ real: Double) {
    guard real.isFinite else { return nil }
    text = real.description
  }

  /// A number that is written as JSON allows.
  package init(checked text: String) { self.text = text }

  /// The number if it is whole and fits, however it is written.
  package var integer: Int64? {
    guard let parts, parts.exponent >= 0, parts.digits.count + min(parts.exponent, 20) < 20 else {
      return nil
    }
    return Int64((parts.isNegative ? "-" : "") + parts.digits + String(repeating: "0", count: parts.exponent))
  }

  /// Whether both are the same number, without rounding.
  package func matches(_ other: JSONNumber) -> Bool {
    guard let left = parts, let right = other.parts else { return text == other.text }
    return left == right
  }

  /// The digits without zeros at either end, and the power of ten; nil when that is out of range. Zero has the digit 0.
  private var parts: (isNegative: Bool, digits: String, exponent: Int)? {
    var rest = text[...]
    let isNegative = rest.first == "-"
    if isNegative { rest = rest.dropFirst() }
    let end = rest.firstIndex { $0 == "e" || $0 == "E" } ?? rest.endIndex
    guard var exponent = end == rest.endIndex ? 0 : Int(rest[rest.index(after: end)...]),
      exponent.magnitude < 1 << 40
    else { return nil }
    let point = rest[..<end].firstIndex(of: ".") ?? end
    let fraction = point == end ? "" : rest[rest.index(after: point)..<end]
    exponent -= fraction.count
    var digits = Array((rest[..<point] + fraction).utf8.drop { $0 == UInt8(ascii: "0") })
    while digits.last == UInt8(ascii: "0") {
      digits.removeLast()
      exponent += 1
    }
    guard !digits.isEmpty else { return (false, "0", 0) }
    return (isNegative, String(decoding: digits, as: UTF8.self), exponent)
  }
}

/// A JSON string as written, with its escapes.
package struct JSONString: Sendable {
  /// The source between the quotation marks.
  let source: String

  /// Text with the escapes that JSON requires only.
  package init(_ text: String) {
    var source = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": source += "\\\""
      case "\\": source += "\\\\"
      case "\n": source += "\\n"
      case "\r": source += "\\r"
      case "\t": source += "\\t"
      case "\u{0}"..."\u{1F}":
        let digits = String(scalar.value, radix: 16)
        source += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: source.unicodeScalars.append(scalar)
      }
    }
    self.source = source
  }

  init(checked source: String) { self.source = source }

  /// Whether both have the same text, and the same lone surrogates in it.
  fileprivate func matches(_ other: JSONString) -> Bool {
    hasEscapes || other.hasEscapes ? units == other.units : source.isExactly(other.source)
  }

  package func matches(_ other: String) -> Bool { text.utf8.elementsEqual(other.utf8) }

  /// The text. A lone surrogate, which JSON allows and text does not, becomes U+FFFD.
  package var text: String { hasEscapes ? String(decoding: units, as: UTF16.self) : source }

  /// The text; nil when it has a lone surrogate.
  package var validText: String? { hasEscapes ? String(validating: units, as: UTF16.self) : source }

  private var hasEscapes: Bool { source.utf8.contains(UInt8(ascii: "\\")) }

  private var units: [UInt16] {
    var units: [UInt16] = []
    var rest = source.utf16.makeIterator()
    while let unit = rest.next() {
      guard unit == 0x5C, let escape = rest.next() else {
        units.append(unit)
        continue
      }
      switch UnicodeScalar(escape) {
      case "n": units.append(0x0A)
      case "r": units.append(0x0D)
      case "t": units.append(0x09)
      case "b": units.append(0x08)
      case "f": units.append(0x0C)
      case "u":
        let digits = (0..<4).compactMap { _ in rest.next() }
        units.append(UInt16(String(decoding: digits, as: UTF16.self), radix: 16) ?? 0xFFFD)
      default: units.append(escape)
      }
    }
    return units
  }
}

/// White space and commas around the parts of a JSON array or object. New parts are spaced like their neighbours.
struct JSONSpacing: Sendable {
  /// Before the first part, between two, and after the last one: n + 1 for n parts. Nil for the document's style.
  private(set) var gaps: [String?]
  /// The separator of parts, kept when only one part is left.
  private let comma: String?

  init(gaps: [String]) {
    self.gaps = gaps
    comma = gaps.count > 2 ? gaps[1] : nil
  }

  /// The spacing with an added part; nil when there is no example.
  func inserting(at index: Int) -> JSONSpacing? {
    guard gaps.count > 1, let first = gaps[0] else { return nil }
    var result = self
    let between =
      gaps.count > 2
      ? gaps[max(1, min(index, gaps.count - 2))]
      : comma ?? (first.contains(where: \.isNewline) ? "," + first : nil)
    result.gaps.insert(between, at: max(1, min(index, gaps.count - 1)))
    return result
  }

  func removing(at index: Int) -> JSONSpacing {
    guard gaps.count > 2 else { return JSONSpacing(gaps: [""]) }
    var result = self
    result.gaps.remove(at: max(1, min(index, gaps.count - 2)))
    return result
  }
}

/// The style of a document, for new parts.
struct JSONStyle: Sendable {
  /// The line break; nil for a document on one line.
  var newline: String?
  /// The indentation of a level.
  var unit = ""
  /// The colon with the white space around it.
  var colon = ":"
  /// The comma between parts on one line.
  var comma = ","

  init(of value: JSONValue) {
    let gaps: [String?]
    switch value {
    case .array(let array): gaps = array.spacing?.gaps ?? []
    case .object(let object): gaps = object.spacing?.gaps ?? []
    default: gaps = []
    }
    if let colon = Self.firstColon(in: value) { self.colon = colon }
    if colon.last?.isWhitespace == true { comma = ", " }
    guard gaps.count > 1, let first = gaps[0] else { return }
    if let end = first.lastIndex(where: \.isNewline) {
      newline = String(first[end])
      unit = String(first[first.index(after: end)...])
    } else if gaps.count > 2, let between = gaps[1] {
      comma = between
    }
  }

  private static func firstColon(in value: JSONValue) -> String? {
    switch value {
    case .object(let object): object.members.first?.colon
    case .array(let array): array.elements.first.flatMap(firstColon)
    default: nil
    }
  }
}
