import DrydockErrors

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
  /// None where the format gives them no meaning.
  var attributes: [(name: String, value: String)] = []
  var isEnd = false
  var isEmpty = false

  subscript(_ name: String) -> String? { attributes.first { $0.name == name }?.value }
}

/// What all XML has besides its elements.
protocol XMLScanner: ByteScanner {}

extension XMLScanner {
  /// Skips the beginning of a tag, at which the scanner must be.
  ///
  /// - Returns: whether it ends an element.
  mutating func beginTag() throws -> Bool {
    guard index < bytes.count else { throw cut }
    guard bytes[index] == UInt8(ascii: "<") else { throw damaged("text where an element is expected") }
    index += 1
    let isEnd = isAt("/")
    if isEnd { index += 1 }
    return isEnd
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

  /// The characters of a reference such as `&lt;` or `&#10;`; `what` names it in the error. Some writers escape a character
  /// of more than 16 bits as two surrogates.
  mutating func reference(_ what: String) throws -> [UInt8] {
    let name = try entity(what)
    if let character = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"][name] {
      return Array(character.utf8)
    }
    guard let code = Self.code(name) else { throw damaged("an unknown entity") }
    if let scalar = Unicode.Scalar(code) { return Array(String(scalar).utf8) }
    guard let high = UInt16(exactly: code), isAt("&#"), let low = Self.code(try entity(what)),
      let low = UInt16(exactly: low), let text = String(validating: [high, low], as: UTF16.self)
    else { throw damaged("an unknown entity: half a surrogate pair") }
    return Array(text.utf8)
  }

  private mutating func entity(_ what: String) throws -> String {
    let start = index + 1
    guard let end = bytes[start..<min(start + 12, bytes.count)].firstIndex(of: UInt8(ascii: ";")) else {
      throw damaged("\(what) without end")
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
