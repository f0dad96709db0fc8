import DrydockErrors
import Foundation

/// Reads the bytes of a text from its start to its end.
protocol ByteScanner {
  var bytes: [UInt8] { get }
  /// The next byte that is read.
  var index: Int { get set }

  /// The error of a corrupt file.
  static func corrupt(_ what: String) -> DrydockError
}

extension ByteScanner {
  func isAt(_ text: StaticString) -> Bool {
    text.withUTF8Buffer { bytes[index...].starts(with: $0) }
  }

  mutating func skip(past end: StaticString, from start: Int) throws {
    index += start
    while index < bytes.count, !isAt(end) { index += 1 }
    guard index < bytes.count else { throw cut }
    index += end.utf8CodeUnitCount
  }

  var cut: DrydockError { damaged("unexpected end of the file") }

  /// The message has the line but not the content, which may be a secret.
  func damaged(_ what: String) -> DrydockError {
    let line = bytes[..<min(index, bytes.count)].count { $0 == 0x0A } + 1
    return Self.corrupt("line \(line): \(what)")
  }
}

/// The start or the end of an element.
struct XMLTag {
  var name: String
  var attributes: [(name: String, value: String)] = []
  var isEnd = false
  var isEmpty = false

  subscript(_ name: String) -> String? { attributes.first { $0.name == name }?.value }
}

/// What all XML has, whatever its elements mean.
protocol XMLScanner: ByteScanner {
  /// Whether attributes count, and a carriage return in a text, with a line feed or without, is a line feed. Readers of
  /// property lists skip what else is in a tag.
  static var isFullXML: Bool { get }
}

extension XMLScanner {
  private var byte: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard byte == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  /// Reads the start or the end of an element, at which the scanner must be.
  mutating func tag() throws -> XMLTag {
    guard take("<") else { throw byte == nil ? cut : damaged("text where an element is expected") }
    let isEnd = take("/")
    var tag = XMLTag(name: try name(), isEnd: isEnd)
    if !Self.isFullXML {
      guard byte.map({ Self.isSpace($0) || "/>".utf8.contains($0) }) ?? true else {
        throw damaged("an unknown element")
      }
      while let byte, byte != UInt8(ascii: ">") { index += 1 }
      guard take(">") else { throw cut }
      tag.isEmpty = !isEnd && bytes[index - 2] == UInt8(ascii: "/")
      return tag
    }
    while true {
      let isSeparated = skipSpace()
      if take(">") { return tag }
      if !isEnd, isAt("/>") {
        index += 2
        tag.isEmpty = true
        return tag
      }
      guard byte != nil else { throw cut }
      guard isSeparated, !isEnd else { throw damaged("an invalid element") }
      let name = try name()
      skipSpace()
      guard take("=") else { throw damaged("an attribute without value") }
      skipSpace()
      guard tag[name] == nil else { throw damaged("an attribute occurs twice") }
      tag.attributes.append((name, try attributeValue()))
      guard tag.attributes.count <= 16 else { throw damaged("too many attributes") }
    }
  }

  /// Reads the end of an element, at which the scanner must be.
  mutating func end(_ name: String) throws {
    let tag = try tag()
    guard tag.isEnd, tag.name == name else { throw damaged("an element does not end where it should") }
  }

  /// Reads the text of an element, and its end.
  mutating func text(in name: String) throws -> (text: String, hasComment: Bool) {
    var (text, start, hasComment): ([UInt8], Int, Bool) = ([], index, false)
    while let byte {
      switch byte {
      case UInt8(ascii: "&"):
        text += bytes[start..<index]
        text += try reference()
        start = index
      case UInt8(ascii: "\r") where Self.isFullXML:
        text += bytes[start..<index]
        index += 1
        if self.byte != 0x0A { text.append(0x0A) }
        start = index
      case UInt8(ascii: "<"):
        text += bytes[start..<index]
        start = index
        if isAt("<!--") {
          hasComment = true
          try skip(past: "-->", from: 4)
        } else if isAt("<![CDATA[") {
          try skip(past: "]]>", from: 9)
          text += bytes[(start + 9)..<(index - 3)]
        } else if isAt("<?"), !Self.isFullXML {
          try skip(past: "?>", from: 2)
        } else {
          try end(name)
          return (String(decoding: text, as: UTF8.self), hasComment)
        }
        start = index
      default: index += 1
      }
    }
    throw cut
  }

  private mutating func name() throws -> String {
    let start = index
    while let byte, Self.isName(byte) { index += 1 }
    guard index > start else { throw byte == nil ? cut : damaged("an element without name") }
    guard bytes[start] != UInt8(ascii: "!"), bytes[start] != UInt8(ascii: "?") else {
      throw damaged("an invalid declaration")
    }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  private static func isName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "/"), UInt8(ascii: ">"), UInt8(ascii: "="), UInt8(ascii: "<"), UInt8(ascii: "\""),
      UInt8(ascii: "'"), UInt8(ascii: "&"):
      false
    default: !isSpace(byte)
    }
  }

  private mutating func attributeValue() throws -> String {
    guard let quote = byte else { throw cut }
    guard take("\"") || take("'") else { throw damaged("an attribute without quotes") }
    var text: [UInt8] = []
    while let byte {
      switch byte {
      case quote:
        index += 1
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "&"): text += try reference()
      case UInt8(ascii: "<"): throw damaged("`<` in an attribute")
      default:
        text.append(Self.isSpace(byte) ? 0x20 : byte)
        index += 1
      }
    }
    throw cut
  }

  /// The encoding that the declaration at the start of a text names, in lower case.
  static func encoding(declaredIn text: ArraySlice<UInt8>) -> String? {
    let start = String(decoding: text.prefix(200), as: UTF8.self)
    guard start.hasPrefix("<?xml") else { return nil }
    // A longer declaration has no end here.
    let declaration = start[..<(start.range(of: "?>")?.lowerBound ?? start.endIndex)]
    return declaration.firstMatch(of: #/encoding\s*=\s*["']([^"']*)["']/#)?.1.lowercased()
  }

  /// Skips white space, comments and instructions.
  ///
  /// - Returns: whether there were others than white space.
  @discardableResult
  mutating func skipBetween() throws -> Bool {
    var hasComment = false
    while true {
      skipSpace()
      if isAt("<!--") {
        try skip(past: "-->", from: 4)
      } else if isAt("<?") {
        try skip(past: "?>", from: 2)
      } else {
        return hasComment
      }
      hasComment = true
    }
  }

  @discardableResult
  mutating func skipSpace() -> Bool {
    let start = index
    while index < bytes.count, Self.isSpace(bytes[index]) { index += 1 }
    return index > start
  }

  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  /// The characters of a reference such as `&lt;` or `&#10;`. Some writers escape a character of more than 16 bits as two
  /// surrogates.
  private mutating func reference() throws -> [UInt8] {
    let name = try entity()
    if let character = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"][name] {
      return Array(character.utf8)
    }
    guard let code = Self.code(name) else { throw damaged("an unknown entity") }
    if let scalar = Unicode.Scalar(code) { return Array(String(scalar).utf8) }
    guard let high = UInt16(exactly: code), isAt("&#"), let low = Self.code(try entity()),
      let low = UInt16(exactly: low), let text = String(validating: [high, low], as: UTF16.self)
    else { throw damaged("an unknown entity: half a surrogate pair") }
    return Array(text.utf8)
  }

  private mutating func entity() throws -> String {
    let start = index + 1
    guard let end = bytes[start..<min(start + 12, bytes.count)].firstIndex(of: UInt8(ascii: ";")) else {
      throw damaged("an entity without end")
    }
    index = end + 1
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  private static func code(_ name: String) -> UInt32? {
    let isHexadecimal = name.hasPrefix("#x")
    return name.hasPrefix("#")
      ? UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10) : nil
  }
}
