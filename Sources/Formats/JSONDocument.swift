import DrydockErrors

/// A JSON text. When it is written again, only modified parts differ.
package struct JSONDocument: Sendable {
  package var value: JSONValue
  private let leading: String
  private let trailing: String
  private let style: JSONStyle

  /// Reads UTF-8 text.
  ///
  /// - Parameters:
  ///   - depthLimit: the most levels of nesting.
  ///   - isLenient: whether keys need not be unique and a comma may follow the last part, in a document that is only read.
  /// - Throws: ``DrydockError`` (`.malformed`) with line and column; the message contains nothing of the text.
  package init(bytes: [UInt8], depthLimit: Int = 200, isLenient: Bool = false) throws {
    var parser = JSONParser(bytes, depthLimit: depthLimit, isLenient: isLenient)
    (leading, value, trailing) = try parser.document()
    style = JSONStyle(of: value)
  }

  /// A new text, indented with a final newline, or on one line.
  package init(_ value: JSONValue, isIndented: Bool) {
    self.value = value
    (leading, trailing) = ("", isIndented ? "\n" : "")
    var style = JSONStyle(of: .null)
    if isIndented { (style.newline, style.unit, style.colon) = ("\n", "  ", ": ") }
    self.style = style
  }

  package var bytes: [UInt8] { Array(text.utf8) }

  package var text: String {
    var text = leading
    write(value, depth: 0, to: &text)
    return text + trailing
  }

  private func write(_ value: JSONValue, depth: Int, to text: inout String) {
    switch value {
    case .null: text += "null"
    case .boolean(let bool): text += bool ? "true" : "false"
    case .number(let number): text += number.text
    case .string(let string): text += "\"" + string.source + "\""
    case .array(let array):
      text += "["
      write(array.elements, array.spacing, depth: depth, to: &text) { write($0, depth: depth + 1, to: &$1) }
      text += "]"
    case .object(let object):
      text += "{"
      write(object.members, object.spacing, depth: depth, to: &text) { member, text in
        text += "\"" + member.key.source + "\"" + (member.colon ?? style.colon)
        write(member.value, depth: depth + 1, to: &text)
      }
      text += "}"
    }
  }

  private func write<Part>(
    _ parts: [Part], _ spacing: JSONSpacing?, depth: Int, to text: inout String,
    _ body: (Part, inout String) -> Void
  ) {
    if let gaps = spacing?.gaps, gaps.count == parts.count + 1 {
      text += gaps[0] ?? ""
      for (part, gap) in zip(parts, gaps.dropFirst()) {
        body(part, &text)
        text += gap ?? style.comma
      }
      return
    }
    if parts.isEmpty { return }
    let line = style.newline.map { $0 + String(repeating: style.unit, count: depth) }
    for (number, part) in parts.enumerated() {
      if number > 0 { text += line == nil ? style.comma : "," }
      if let line { text += line + style.unit }
      body(part, &text)
    }
    if let line { text += line }
  }
}

/// Reads JSON strictly by RFC 8259: no comments, no trailing commas, no duplicate keys. The latter two may be allowed.
struct JSONParser {
  private static let endsEarly = "unexpected end of input"

  private let bytes: [UInt8]
  /// Deeper nesting would exhaust the stack.
  private let depthLimit: Int
  private let isLenient: Bool
  private var index = 0

  init(_ bytes: [UInt8], depthLimit: Int, isLenient: Bool) {
    (self.bytes, self.depthLimit, self.isLenient) = (bytes, depthLimit, isLenient)
  }

  /// The value with the white space before and after it.
  mutating func document() throws -> (leading: String, value: JSONValue, trailing: String) {
    try checkText()
    // JSON has no byte order mark, but some programs write one; it is preserved.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
    _ = space()
    let leading = text(from: 0)
    let value = try value(depth: 0)
    let end = index
    _ = space()
    guard index == bytes.count else { throw failure("data follows the value") }
    return (leading, value, text(from: end))
  }

  // MARK: Values

  private mutating func value(depth: Int) throws -> JSONValue {
    guard depth <= depthLimit else { throw failure("nested deeper than \(depthLimit) levels") }
    guard let first = peek else { throw failure(Self.endsEarly) }
    switch first {
    case UInt8(ascii: "{"): return .object(try object(depth: depth))
    case UInt8(ascii: "["): return .array(try array(depth: depth))
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
    case UInt8(ascii: "t"): return try word("true", .boolean(true))
    case UInt8(ascii: "f"): return try word("false", .boolean(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: throw failure("a value is expected here")
    }
  }

  private mutating func array(depth: Int) throws -> JSONArray {
    var elements: [JSONValue] = []
    let gaps = try parts(closing: UInt8(ascii: "]")) { elements.append(try $0.value(depth: depth + 1)) }
    return JSONArray(elements, JSONSpacing(gaps: gaps))
  }

  private mutating func object(depth: Int) throws -> JSONObject {
    var members: [JSONObject.Member] = []
    var keys: Set<[UInt8]> = []
    let gaps = try parts(closing: UInt8(ascii: "}")) { parser in
      let start = parser.index
      guard parser.peek == UInt8(ascii: "\"") else {
        throw parser.failure(parser.peek == nil ? Self.endsEarly : "a key in quotes is expected here")
      }
      let key = try parser.string()
      // Readers differ in which of the two counts.
      guard parser.isLenient || keys.insert(Array(key.text.utf8)).inserted else {
        throw parser.failure("duplicate key", at: start)
      }
      let gap = parser.space()
      guard parser.take(UInt8(ascii: ":")) else { throw parser.failure("a colon is expected here") }
      let colon = gap + ":" + parser.space()
      members.append(.init(key: key, value: try parser.value(depth: depth + 1), colon: colon))
    }
    return JSONObject(members, JSONSpacing(gaps: gaps))
  }

  /// Reads from one bracket to the other.
  ///
  /// - Returns: the spacing around and between the parts.
  private mutating func parts(
    closing: UInt8, _ part: (inout JSONParser) throws -> Void
  ) throws -> [String] {
    index += 1
    var gaps = [space()]
    if take(closing) { return gaps }
    while true {
      try part(&self)
      let start = index
      _ = space()
      if peek == closing {
        gaps.append(text(from: start))
        index += 1
        return gaps
      }
      guard take(UInt8(ascii: ",")) else {
        throw failure(peek == nil ? Self.endsEarly : "a comma or the closing bracket is expected here")
      }
      _ = space()
      gaps.append(text(from: start))
      if isLenient, take(closing) { return gaps }
    }
  }

  private mutating func string() throws -> JSONString {
    let start = index + 1
    index = start
    while let byte = peek {
      switch byte {
      case UInt8(ascii: "\""):
        index += 1
        return JSONString(checked: String(decoding: bytes[start..<index - 1], as: UTF8.self))
      case 0..<0x20: throw failure("an unescaped control character in a string")
      case UInt8(ascii: "\\"): try escape()
      default: index += 1
      }
    }
    throw failure("the string has no end", at: start - 1)
  }

  private mutating func escape() throws {
    let start = index
    index += 1
    guard let kind = peek, "\"\\/bfnrtu".utf8.contains(kind) else {
      throw failure("unknown escape", at: start)
    }
    index += 1
    guard kind == UInt8(ascii: "u") else { return }
    let digits = bytes[index..<min(index + 4, bytes.count)]
    guard digits.count == 4, digits.allSatisfy({ $0.hexDigitValue != nil }) else {
      throw failure("`\\u` needs four hexadecimal digits", at: start)
    }
    index += 4
  }

  private mutating func number() throws -> JSONNumber {
    let start = index
    _ = take(UInt8(ascii: "-"))
    let hasLeadingZero = peek == UInt8(ascii: "0")
    let whole = digits()
    guard whole > 0, !hasLeadingZero || whole == 1 else {
      throw failure("not a valid JSON number", at: start)
    }
    if take(UInt8(ascii: ".")), digits() == 0 { throw failure("digits are expected after the decimal point") }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      if digits() == 0 { throw failure("digits are expected in the exponent") }
    }
    return JSONNumber(checked: text(from: start))
  }

  private mutating func word(_ word: String, _ value: JSONValue) throws -> JSONValue {
    guard bytes[index...].starts(with: word.utf8) else { throw failure("a value is expected here") }
    index += word.utf8.count
    return value
  }

  // MARK: Bytes

  private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard peek == byte else { return false }
    index += 1
    return true
  }

  private mutating func digits() -> Int {
    let start = index
    while let byte = peek, byte.isDigit { index += 1 }
    return index - start
  }

  private mutating func space() -> String {
    let start = index
    while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    return text(from: start)
  }

  private func text(from start: Int) -> String { String(decoding: bytes[start..<index], as: UTF8.self) }

  // MARK: Errors

  private mutating func checkText() throws {
    guard String(validating: bytes, as: UTF8.self) == nil else { return }
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while case .scalarValue(let scalar) = decoder.decode(&iterator) { index += scalar.utf8.count }
    throw failure("this byte is not UTF-8")
  }

  /// The message has the place but not the content, which may be a secret.
  private func failure(_ message: String, at place: Int? = nil) -> DrydockError {
    let before = bytes[..<min(place ?? index, bytes.count)]
    let line = before.count { $0 == 0x0A } + 1
    let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    let column = String(decoding: before[start...], as: UTF8.self).unicodeScalars.count + 1
    return DrydockError(.malformed, "not valid JSON: line \(line), column \(column): \(message)")
  }
}
