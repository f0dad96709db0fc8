import DrydockErrors
import Foundation

/// Decodes the XML format, as Apple's systems read it: its own elements, the five entities of XML and characters by their
/// number, and no others, so that nothing in a file expands.
struct XMLPropertyListReader {
  /// Deeper nesting is not written by anybody, and would exhaust the stack.
  private static let depthLimit = 200

  private let bytes: [UInt8]
  private var index = 0

  private struct Tag {
    var name: String
    var isEnd = false
    var isEmpty = false
  }

  /// The value in a file of valid UTF-8.
  static func read(_ bytes: [UInt8]) throws -> PropertyListValue {
    var reader = XMLPropertyListReader(bytes: bytes)
    try reader.skipProlog()
    var tag = try reader.tag()
    let isWrapped = tag.name == "plist" && !tag.isEnd
    if isWrapped {
      if tag.isEmpty { throw reader.damaged("there is no value in it") }
      tag = try reader.nextTag()
      if tag.isEnd { throw reader.damaged("there is no value in it") }
    }
    let value = try reader.value(tag, depth: 0)
    if isWrapped { try reader.end("plist") }
    try reader.skipBetween()
    guard reader.index == bytes.count else { throw reader.damaged("more than one value") }
    return value
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  // MARK: Values

  private mutating func value(_ tag: Tag, depth: Int) throws -> PropertyListValue {
    guard depth <= Self.depthLimit else { throw damaged("nested too deeply") }
    if tag.isEnd { throw damaged("an end without a start") }
    switch tag.name {
    case "true", "false":
      if !tag.isEmpty { try end(tag.name) }
      return .boolean(tag.name == "true")
    case "dict": return tag.isEmpty ? .dictionary([:]) : try dictionary(depth: depth)
    case "array":
      var values: [PropertyListValue] = []
      while !tag.isEmpty {
        let next = try nextTag()
        if next.isEnd, next.name == "array" { break }
        values.append(try value(next, depth: depth + 1))
      }
      return .array(values)
    case "string", "key": return .string(tag.isEmpty ? "" : try text(in: tag.name))
    case "integer": return try integer(try word(in: tag))
    case "real":
      let word = try word(in: tag)
      guard !word.lowercased().contains("x"), let real = Double(word) else { throw damaged("no valid real") }
      return .real(real)
    case "date":
      let word = try word(in: tag)
      guard word.utf8.count == 20, UTCTime.isText(word), let date = YAMLDate.parse(word) else {
        throw damaged("no valid date")
      }
      return .date(date)
    case "data":
      let word = try word(in: tag).utf8.filter { !Self.isSpace($0) }
      guard let data = Data(base64Encoded: Data(word)) else { throw damaged("data that is not base64") }
      return .data([UInt8](data))
    // A tag's name may be anything in a damaged file, a value too.
    default: throw damaged("an unknown element")
    }
  }

  private mutating func dictionary(depth: Int) throws -> PropertyListValue {
    var values = PropertyListDictionary()
    while true {
      let next = try nextTag()
      if next.isEnd, next.name == "dict" { break }
      guard next.name == "key", !next.isEnd else { throw damaged("a value without a key") }
      let key = next.isEmpty ? "" : try text(in: "key")
      let tag = try nextTag()
      if tag.isEnd || tag.name == "key" { throw damaged("a key without a value") }
      // Which of two counts, each reader decides in another way.
      guard values.updateValue(try value(tag, depth: depth + 1), forKey: key) == nil else {
        throw damaged("a dictionary has a key twice")
      }
    }
    if values.count == 1, case .integer(let number) = values[XMLPropertyList.reference],
      let reference = UInt32(exactly: number)
    {
      return .unknown(PropertyListOpaque(archiveReference: reference))
    }
    return .dictionary(values)
  }

  private func integer(_ word: String) throws -> PropertyListValue {
    var digits = word[...]
    let isNegative = digits.first == "-"
    if let sign = digits.first, "+-".contains(sign) { digits.removeFirst() }
    let isHexadecimal = digits.lowercased().hasPrefix("0x")
    if isHexadecimal { digits = digits.dropFirst(2) }
    guard let first = digits.utf8.first, first != UInt8(ascii: "+"),
      let number = UInt64(digits, radix: isHexadecimal ? 16 : 10)
    else { throw damaged("no valid integer of 64 bits") }
    if !isNegative { return Int64(exactly: number).map { .integer($0) } ?? .unsigned(number) }
    guard number <= 1 << 63 else { throw damaged("no valid integer of 64 bits") }
    return .integer(Int64(truncatingIfNeeded: 0 &- number))
  }

  // MARK: Text

  /// The content of an element that is one word or number, without white space around it.
  private mutating func word(in tag: Tag) throws -> String {
    let text = tag.isEmpty ? "" : try text(in: tag.name)
    guard let first = text.utf8.first, let last = text.utf8.last, Self.isSpace(first) || Self.isSpace(last)
    else { return text }
    return String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }

  /// The text up to the end of an element.
  private mutating func text(in name: String) throws -> String {
    var text: [UInt8] = []
    var start = index
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "&"):
        text += bytes[start..<index]
        text += try entity().utf8
        start = index
      case UInt8(ascii: "<"):
        text += bytes[start..<index]
        guard isAt("<![CDATA[") else {
          try end(name)
          return String(decoding: text, as: UTF8.self)
        }
        start = index + 9
        try skip(past: "]]>")
        text += bytes[start..<index - 3]
        start = index
      default: index += 1
      }
    }
    throw cut
  }

  private mutating func entity() throws -> String {
    let start = index + 1
    guard let end = bytes[start..<min(start + 12, bytes.count)].firstIndex(of: UInt8(ascii: ";")) else {
      throw damaged("an entity without end")
    }
    index = end + 1
    let name = String(decoding: bytes[start..<end], as: UTF8.self)
    switch name {
    case "lt": return "<"
    case "gt": return ">"
    case "amp": return "&"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let isHexadecimal = name.hasPrefix("#x")
      guard name.hasPrefix("#"),
        let number = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10),
        let scalar = UnicodeScalar(number)
      else { throw damaged("an unknown entity") }
      return String(scalar)
    }
  }

  // MARK: Tags

  /// The next tag, with nothing but white space and remarks before it.
  private mutating func nextTag() throws -> Tag {
    try skipBetween()
    return try tag()
  }

  private mutating func tag() throws -> Tag {
    guard index < bytes.count else { throw cut }
    guard bytes[index] == UInt8(ascii: "<") else { throw damaged("text where an element is expected") }
    index += 1
    let isEnd = isAt("/")
    if isEnd { index += 1 }
    let start = index
    while index < bytes.count, Self.isLetter(bytes[index]) { index += 1 }
    let name = String(decoding: bytes[start..<index], as: UTF8.self)
    let rest = index
    while index < bytes.count, bytes[index] != UInt8(ascii: ">") { index += 1 }
    guard index < bytes.count else { throw cut }
    // What follows a name is attributes, which say nothing.
    guard !name.isEmpty, rest == index || bytes[rest] == UInt8(ascii: "/") || Self.isSpace(bytes[rest]) else {
      throw damaged("an unknown element")
    }
    index += 1
    return Tag(name: name, isEnd: isEnd, isEmpty: bytes[index - 2] == UInt8(ascii: "/") && !isEnd)
  }

  private mutating func end(_ name: String) throws {
    let tag = try nextTag()
    guard tag.isEnd, tag.name == name else { throw damaged("an element does not end where it should") }
  }

  // MARK: Between

  private mutating func skipProlog() throws {
    try skipBetween()
    guard isAt("<!DOCTYPE") else { return }
    var depth = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ">") where depth == 0:
        index += 1
        return try skipBetween()
      case UInt8(ascii: "\""):
        try skip(past: "\"", from: 1)
        continue
      default: break
      }
      index += 1
    }
    throw cut
  }

  /// White space, remarks and instructions.
  private mutating func skipBetween() throws {
    while index < bytes.count {
      if Self.isSpace(bytes[index]) {
        index += 1
      } else if isAt("<!--") {
        try skip(past: "-->", from: 4)
      } else if isAt("<?") {
        try skip(past: "?>", from: 2)
      } else {
        return
      }
    }
  }

  private mutating func skip(past end: String, from start: Int = 0) throws {
    index += start
    while index < bytes.count, !isAt(end) { index += 1 }
    guard index < bytes.count else { throw cut }
    index += end.utf8.count
  }

  private func isAt(_ text: String) -> Bool {
    guard bytes.count - index >= text.utf8.count else { return false }
    return zip(bytes[index...], text.utf8).allSatisfy { $0 == $1 }
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

  // MARK: Errors

  private var cut: DrydockError { damaged("unexpected end of the file") }

  /// What is wrong, and where; never what is there, which may be a secret.
  private func damaged(_ what: String) -> DrydockError {
    let line = bytes[..<min(index, bytes.count)].count { $0 == 0x0A } + 1
    return XMLPropertyList.damaged("line \(line): \(what)")
  }
}
