import AgeEncryption
import DrydockErrors

/// Reads JSON (RFC 8259) that holds secrets, in the wiped memory that it was decrypted into.
///
/// Foundation's readers make strings of every value, which nobody can wipe, and keep the last of two fields with one name.
/// This one hands a secret from its base64 text straight into `SecretBytes`, and refuses what JSON leaves open.
struct SecretJSONReader {
  /// How deep arrays and objects may be in each other.
  static let depthLimit = 32

  private let bytes: UnsafeRawBufferPointer
  private var position = 0
  private var depth = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  // MARK: Structure

  /// Reads an object: `field` gets each name, and has to read the value.
  mutating func object(_ field: (String, inout Self) throws -> Void) throws {
    try enter("{")
    var names: Set<String> = []
    if try isNext("}") { return leave() }
    while true {
      skipSpace()
      let name = try text()
      guard names.insert(name).inserted else { throw broken("a field is there twice") }
      try expect(":")
      try field(name, &self)
      if try isNext("}") { return leave() }
      try expect(",")
    }
  }

  /// Reads an array: `element` has to read each value.
  mutating func array(_ element: (inout Self) throws -> Void) throws {
    try enter("[")
    if try isNext("]") { return leave() }
    while true {
      try element(&self)
      if try isNext("]") { return leave() }
      try expect(",")
    }
  }

  /// Nothing but space may follow.
  mutating func end() throws {
    skipSpace()
    guard position == bytes.count else { throw broken("something follows its end") }
  }

  private mutating func enter(_ character: Unicode.Scalar) throws {
    try expect(character)
    depth += 1
    guard depth <= Self.depthLimit else { throw broken("it is nested too deeply") }
  }

  private mutating func leave() { depth -= 1 }

  // MARK: Values

  /// Whether a text comes next.
  mutating func isText() -> Bool {
    skipSpace()
    return peek() == "\""
  }

  /// Takes a null when one comes next.
  mutating func isNull() -> Bool {
    skipSpace()
    return takes("null")
  }

  /// Reads text.
  mutating func text() throws -> String {
    var decoded: [UInt8] = []
    try string { decoded.append($0) }
    guard let text = String(validating: decoded, as: UTF8.self) else { throw broken("a text is not UTF-8") }
    return text
  }

  /// Reads a truth value.
  mutating func bool() throws -> Bool {
    skipSpace()
    if takes("true") { return true }
    if takes("false") { return false }
    throw broken("true or false belongs here")
  }

  /// Reads a whole number.
  mutating func integer() throws -> Int {
    skipSpace()
    let start = position
    try number()
    guard let value = Int(String(decoding: bytes[start..<position], as: UTF8.self)) else {
      throw broken("a whole number belongs here")
    }
    return value
  }

  /// Reads bytes that are written as base64.
  mutating func base64() throws -> SecretBytes {
    let start = self
    var length = 0
    try string { _ in length += 1 }
    var decoder = Base64Decoder(length: length)
    var again = start
    let secret = try SecretBytes(count: decoder.capacity) { target in
      try again.string { decoder.take($0, into: target) }
    }
    guard let count = decoder.count else { throw start.broken("a value is no base64") }
    return count == secret.count ? secret : secret.withBytes { .init(copying: .init(rebasing: $0[..<count])) }
  }

  /// Passes over a value, and gives it as it stands there.
  mutating func raw() throws -> SecretBytes {
    skipSpace()
    let start = position
    try skip()
    return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[start..<position]))
  }

  private mutating func skip() throws {
    skipSpace()
    switch peek() {
    case "{": try object { try $1.skip() }
    case "[": try array { try $0.skip() }
    case "\"":
      var utf8 = UTF8Check()
      try string { utf8.take($0) }
      guard utf8.isWhole else { throw broken("a text is not UTF-8") }
    case "t", "f": _ = try bool()
    case "n": guard takes("null") else { throw broken("null belongs here") }
    default: try number()
    }
  }

  private mutating func number() throws {
    _ = takes("-")
    guard try takes("0") || digits() else { throw broken("a value belongs here") }
    if takes("."), try !digits() { throw broken("a number ends in its middle") }
    if takes("e") || takes("E") {
      _ = takes("+") || takes("-")
      guard try digits() else { throw broken("a number ends in its middle") }
    }
  }

  private mutating func digits() throws -> Bool {
    let start = position
    while let character = peek(), ("0"..."9").contains(character) { position += 1 }
    return position > start
  }

  // MARK: Strings

  /// Reads a string, and passes on the bytes of its UTF-8.
  private mutating func string(_ body: (UInt8) -> Void) throws {
    try expect("\"")
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return
      case UInt8(ascii: "\\"): try escape(body)
      case 0..<0x20: throw broken("a text has a control character in it")
      default: body(byte)
      }
    }
    throw broken("it ends in the middle of a text")
  }

  private mutating func escape(_ body: (UInt8) -> Void) throws {
    guard let character = peek() else { throw broken("it ends in the middle of a text") }
    position += 1
    switch character {
    case "\"", "\\", "/": body(UInt8(ascii: character))
    case "b": body(0x08)
    case "f": body(0x0C)
    case "n": body(0x0A)
    case "r": body(0x0D)
    case "t": body(0x09)
    case "u": for byte in String(try scalar()).utf8 { body(byte) }
    default: throw broken("a text has an escape that JSON does not know")
    }
  }

  /// The scalar of `\uXXXX`, or of two of these.
  private mutating func scalar() throws -> Unicode.Scalar {
    var value = try unit()
    if (0xD800..<0xDC00).contains(value), takes("\\u") {
      let low = try unit()
      guard (0xDC00..<0xE000).contains(low) else { throw broken("half of a character is missing") }
      value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(value) else { throw broken("half of a character is missing") }
    return scalar
  }

  private mutating func unit() throws -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = peek().flatMap({ Character($0).hexDigitValue }) else {
        throw broken("\\u wants four digits")
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }

  // MARK: Characters

  private func peek() -> Unicode.Scalar? {
    position < bytes.count ? Unicode.Scalar(bytes[position]) : nil
  }

  private mutating func takes(_ word: StaticString) -> Bool {
    let wanted = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    guard bytes.count - position >= wanted.count, bytes[position...].starts(with: wanted) else {
      return false
    }
    position += wanted.count
    return true
  }

  private mutating func isNext(_ character: Unicode.Scalar) throws -> Bool {
    skipSpace()
    guard peek() == character else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ character: Unicode.Scalar) throws {
    guard try isNext(character) else {
      throw broken(position == bytes.count ? "it ends in its middle" : "\(character) belongs here")
    }
  }

  private mutating func skipSpace() {
    while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
  }

  /// An error at this place; nothing of the document is in it.
  func broken(_ what: String) -> DrydockError {
    DrydockError(.badVault, "its document cannot be read: \(what) (byte \(position))")
  }
}
