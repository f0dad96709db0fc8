import DrydockErrors

/// Reads JSON as RFC 8259 has it, and nothing else: no comments, no comma too many, no key twice.
struct JSONParser {
  /// Deeper nesting is not written by anybody, and would exhaust the stack.
  static let depthLimit = 200

  private static let endsEarly = "it ends too early"

  private let bytes: [UInt8]
  private var index = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The white space before the value, the value, and what stands after it.
  static func parse(_ bytes: [UInt8]) throws -> (leading: String, value: JSONValue, trailing: String) {
    var parser = JSONParser(bytes)
    try parser.checkText()
    // A byte order mark is not JSON's, but written by some, and stays.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { parser.index = 3 }
    _ = parser.space()
    let leading = parser.text(from: 0)
    let value = try parser.value(depth: 0)
    let end = parser.index
    _ = parser.space()
    guard parser.index == bytes.count else { throw parser.failure("something stands after the end") }
    return (leading, value, parser.text(from: end))
  }

  // MARK: Values

  private mutating func value(depth: Int) throws -> JSONValue {
    guard depth <= Self.depthLimit else { throw failure("nested deeper than \(Self.depthLimit) levels") }
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
      // Which of two counts, each reader decides in another way.
      guard keys.insert(Array(key.text.utf8)).inserted else {
        throw parser.failure("this key is in the object twice", at: start)
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
  /// - Returns: what stands around and between the parts.
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
      case 0..<0x20: throw failure("a control character stands in the text: it must be escaped")
      case UInt8(ascii: "\\"): try escape()
      default: index += 1
      }
    }
    throw failure("the text has no end", at: start - 1)
  }

  private mutating func escape() throws {
    let start = index
    index += 1
    guard let kind = peek, "\"\\/bfnrtu".utf8.contains(kind) else {
      throw failure("there is no such escape", at: start)
    }
    index += 1
    guard kind == UInt8(ascii: "u") else { return }
    let digits = bytes[index..<min(index + 4, bytes.count)]
    guard digits.count == 4, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit }) else {
      throw failure("four hexadecimal digits follow `\\u`", at: start)
    }
    index += 4
  }

  private mutating func number() throws -> JSONNumber {
    let start = index
    _ = take(UInt8(ascii: "-"))
    let hasLeadingZero = peek == UInt8(ascii: "0")
    let whole = digits()
    guard whole > 0, !hasLeadingZero || whole == 1 else {
      throw failure("this is no number of JSON's", at: start)
    }
    if take(UInt8(ascii: ".")), digits() == 0 { throw failure("digits follow the point of a number") }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      if digits() == 0 { throw failure("digits follow the `e` of a number") }
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
    while let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
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

  /// What is wrong, and where; never what stands there, which may be a secret.
  private func failure(_ message: String, at place: Int? = nil) -> DrydockError {
    let before = bytes[..<min(place ?? index, bytes.count)]
    let line = before.count { $0 == 0x0A } + 1
    let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    let column = String(decoding: before[start...], as: UTF8.self).unicodeScalars.count + 1
    return DrydockError(.malformed, "not valid JSON: line \(line), column \(column): \(message)")
  }
}
