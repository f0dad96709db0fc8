import DrydockErrors
import Foundation

/// Reads the text form of property lists of OpenStep, which `defaults` prints on macOS and strings files have:
/// `{ key = value; }`. Its values are texts, data, lists and dictionaries. GNUstep's form has numbers, Bools and dates too:
/// `<*I5>`.
struct OpenStepReader: ByteScanner {
  let bytes: [UInt8]
  var index = 0
  private var form = PropertyListText()

  /// - Parameter bytes: valid UTF-8.
  /// - Returns: nil for text of another kind: empty, or one word, as any text without spaces would be.
  /// - Throws: `DrydockError` (`.malformed`).
  static func read(_ bytes: [UInt8]) throws -> (value: PropertyListValue, form: PropertyListText)? {
    var reader = OpenStepReader(bytes: bytes)
    reader.form.isPlain = bytes.contains { $0 >= 0x80 }
    try reader.skipSpace()
    guard let first = reader.next, isWord(first) || "{(\"'".utf8.contains(first) else { return nil }
    let start = reader.index
    var value = try reader.value(depth: 0)
    try reader.skipSpace()
    if case .string = value, reader.isAt("=") || reader.isAt(";") {
      reader.index = start
      reader.form.isStringsFile = true
      value = .dictionary(try reader.pairs(depth: 0))
    } else if isWord(first) {
      return nil
    }
    guard reader.index == bytes.count else { throw reader.damaged("more than one value") }
    return (value, reader.form)
  }

  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func value(depth: Int) throws -> PropertyListValue {
    guard depth <= PropertyListValue.depthLimit else { throw damaged("nested too deeply") }
    try skipSpace()
    guard let byte = next else { throw cut }
    switch byte {
    case UInt8(ascii: "{"):
      index += 1
      let values = try pairs(depth: depth + 1)
      try take("}")
      return .dictionary(values)
    case UInt8(ascii: "("):
      index += 1
      return .array(try elements(depth: depth + 1))
    case UInt8(ascii: "<"):
      index += 1
      return try angled()
    default: return .string(try text())
    }
  }

  /// Pairs up to a closing brace, or the end of a strings file.
  private mutating func pairs(depth: Int) throws -> PropertyListDictionary {
    var values = PropertyListDictionary()
    try skipSpace()
    while let byte = next, byte != UInt8(ascii: "}") {
      let key = try text()
      try skipSpace()
      // A key alone is its own value, as in strings files.
      var value = PropertyListValue.string(key)
      if isAt("=") {
        index += 1
        value = try self.value(depth: depth)
      }
      // Readers differ in which of the two counts.
      guard values.updateValue(value, forKey: key) == nil else {
        throw damaged("a dictionary has a key twice")
      }
      try skipSpace()
      try take(";")
      try skipSpace()
    }
    return values
  }

  private mutating func elements(depth: Int) throws -> [PropertyListValue] {
    var values: [PropertyListValue] = []
    while true {
      try skipSpace()
      // Also after the last comma.
      if isAt(")") { break }
      values.append(try value(depth: depth))
      try skipSpace()
      if !isAt(",") { break }
      index += 1
    }
    try take(")")
    return values
  }

  // MARK: Data and GNUstep's values

  /// What is between `<` and `>`: data in hexadecimal digits, or GNUstep's base64 in brackets or a typed value.
  private mutating func angled() throws -> PropertyListValue {
    let start = index
    guard let end = bytes[start...].firstIndex(of: UInt8(ascii: ">")) else { throw cut }
    let content = bytes[start..<end]
    defer { index = end + 1 }
    if content.first == UInt8(ascii: "*") {
      form.isTyped = true
      return try typed(String(decoding: content.dropFirst(), as: UTF8.self))
    }
    if content.first == UInt8(ascii: "["), content.last == UInt8(ascii: "]"), content.count > 1 {
      form.isTyped = true
      let digits = content.dropFirst().dropLast().filter { !Self.isSpace($0) }
      guard let data = Data(base64Encoded: Data(digits)) else { throw damaged("data that is not base64") }
      return .data([UInt8](data))
    }
    guard let data = [UInt8](hex: content.filter { !Self.isSpace($0) }) else {
      throw damaged("data that is not hexadecimal")
    }
    return .data(data)
  }

  /// A value of GNUstep, without `<*` and `>`.
  private func typed(_ text: String) throws -> PropertyListValue {
    var word = String(text.dropFirst())
    // Newer versions put the value in quotes.
    if word.utf8.count > 1, word.hasPrefix("\""), word.hasSuffix("\"") {
      word = String(word.dropFirst().dropLast())
    }
    switch text.utf8.first {
    case UInt8(ascii: "B") where word == "Y": return .boolean(true)
    case UInt8(ascii: "B") where word == "N": return .boolean(false)
    case UInt8(ascii: "I"):
      if let number = Int64(word) { return .integer(number) }
      if let number = UInt64(word) { return .unsigned(number) }
    case UInt8(ascii: "R"):
      if !word.lowercased().contains("x"), let number = Double(word) { return .real(number) }
    case UInt8(ascii: "D"):
      // `2026-11-20 10:15:00 +0000`, but for the colon in the zone.
      let parts = word.split(separator: " ")
      if parts.count == 3, parts[1].utf8.count == 8, parts[2].utf8.count == 5,
        let date = YAMLDate.parse("\(parts[0])T\(parts[1])\(parts[2].prefix(3)):\(parts[2].suffix(2))")
      {
        return .date(date)
      }
    default: break
    }
    throw damaged("an invalid typed value")
  }

  // MARK: Texts

  private mutating func text() throws -> String {
    try skipSpace()
    guard let byte = next else { throw cut }
    if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
      index += 1
      return try quoted(until: byte)
    }
    let start = index
    while let byte = next, Self.isWord(byte) { index += 1 }
    guard index > start else { throw damaged("a character that must be in quotes") }
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  private mutating func quoted(until quote: UInt8) throws -> String {
    var text: [UInt8] = []
    var start = index
    while let byte = next, byte != quote {
      guard byte == UInt8(ascii: "\\") else {
        index += 1
        continue
      }
      text += bytes[start..<index]
      index += 1
      text += try escaped()
      start = index
    }
    guard next == quote else { throw cut }
    text += bytes[start..<index]
    index += 1
    return String(decoding: text, as: UTF8.self)
  }

  /// What follows a backslash, as UTF-8.
  private mutating func escaped() throws -> [UInt8] {
    guard let byte = next else { throw cut }
    index += 1
    switch byte {
    case UInt8(ascii: "a"): return [0x07]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "v"): return [0x0B]
    case UInt8(ascii: "U"): return try unicode()
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      index -= 1
      let digits = bytes[index...].prefix(3).prefix { (0x30...0x37).contains($0) }
      index += digits.count
      let number = digits.reduce(0) { $0 << 3 | Int($1 - 0x30) }
      // Above ASCII it means a character of NeXTSTEP's own encoding.
      guard number < 0x80 else { throw damaged("an octal character beyond ASCII: write it as `\\Uxxxx`") }
      return [UInt8(number)]
    default:
      // The character itself, such as a quote, with all of its bytes.
      var character = [byte]
      while let byte = next, byte & 0xC0 == 0x80 {
        character.append(byte)
        index += 1
      }
      return character
    }
  }

  /// A character by its UTF-16 code units, after `\U`; a second one follows after another `\U`.
  private mutating func unicode() throws -> [UInt8] {
    var units = [try unit()]
    if UTF16.isLeadSurrogate(units[0]), isAt("\\U") {
      index += 2
      units.append(try unit())
    }
    guard let text = String(validating: units, as: UTF16.self) else { throw damaged("half a surrogate pair") }
    return Array(text.utf8)
  }

  private mutating func unit() throws -> UInt16 {
    let digits = bytes[index...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ $0.hexDigitValue != nil }),
      let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw damaged("`\\U` without four hexadecimal digits") }
    index += 4
    return unit
  }

  // MARK: Between values

  /// White space and comments.
  private mutating func skipSpace() throws {
    while let byte = next {
      if Self.isSpace(byte) {
        index += 1
      } else if isAt("//") {
        index = bytes[index...].firstIndex { $0 == 0x0A || $0 == 0x0D } ?? bytes.count
      } else if isAt("/*") {
        try skip(past: "*/", from: 2)
      } else {
        return
      }
    }
  }

  private mutating func take(_ character: StaticString) throws {
    guard isAt(character) else {
      if index == bytes.count { throw cut }
      throw damaged("`\(character)` is missing")
    }
    index += character.utf8CodeUnitCount
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  /// Characters that Apple's reader accepts without quotes.
  private static func isWord(_ byte: UInt8) -> Bool {
    isPlainWord(byte) || "-./:$".utf8.contains(byte)
  }

  /// Whether a character needs no quotes for any reader. Some also accept `-`, `.`, `/`, `:` and `$`.
  fileprivate static func isPlainWord(_ byte: UInt8) -> Bool {
    byte.isLetter || byte.isDigit || byte == UInt8(ascii: "_")
  }

  static func corrupt(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the OpenStep property list is corrupt: \(what)")
  }
}

struct OpenStepWriter {
  private let form: PropertyListText
  private var text: [UInt8] = []

  /// The text in UTF-8. The same value gives the same text.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the form cannot represent.
  static func write(_ value: PropertyListValue, _ form: PropertyListText) throws -> [UInt8] {
    var form = form
    // A text alone is taken for a property list only in quotes.
    if case .string = value { form.isStringsFile = true }
    var writer = OpenStepWriter(form: form)
    // A strings file without pairs would be no property list at all.
    if form.isStringsFile, case .dictionary(let values) = value, !values.isEmpty {
      for (key, value) in values.sorted() { try writer.add(key, value, depth: 0) }
    } else {
      try writer.add(value, depth: 0)
      writer.text.append(UInt8(ascii: "\n"))
    }
    return writer.text
  }

  private mutating func add(_ value: PropertyListValue, depth: Int) throws {
    switch value {
    case .string(let text): add(text)
    case .data(let bytes) where form.isTyped: text += "<[\(Data(bytes).base64EncodedString())]>".utf8
    case .data(let bytes): text += "<\(bytes.hex)>".utf8
    case .array(let values):
      text += "(".utf8
      for (number, value) in values.enumerated() {
        text += (number == 0 ? "\n" : ",\n").utf8
        indent(depth + 1)
        try add(value, depth: depth + 1)
      }
      if !values.isEmpty { endLine(depth) }
      text += ")".utf8
    case .dictionary(let values):
      text += "{\n".utf8
      for (key, value) in values.sorted() { try add(key, value, depth: depth + 1) }
      indent(depth)
      text += "}".utf8
    case .boolean(let value) where form.isTyped: text += "<*B\(value ? "Y" : "N")>".utf8
    case .integer(let value) where form.isTyped, .long(let value) where form.isTyped:
      text += "<*I\(value)>".utf8
    case .int(let value) where form.isTyped: text += "<*I\(value)>".utf8
    case .unsigned(let value) where form.isTyped: text += "<*I\(value)>".utf8
    case .real(let value) where form.isTyped && value.isFinite: text += "<*R\(value)>".utf8
    case .single(let value) where form.isTyped && value.isFinite: text += "<*R\(Double(value))>".utf8
    case .date(let date) where form.isTyped: text += "<*D\(try Self.text(date))>".utf8
    default: throw Self.unsupported(value, form)
    }
  }

  private mutating func add(_ key: String, _ value: PropertyListValue, depth: Int) throws {
    indent(depth)
    add(key)
    text += " = ".utf8
    try add(value, depth: depth)
    text += ";\n".utf8
  }

  /// A text, in quotes unless it is a word.
  private mutating func add(_ string: String) {
    if !form.isStringsFile, !string.isEmpty, string.utf8.allSatisfy(OpenStepReader.isPlainWord) {
      text += string.utf8
      return
    }
    text.append(UInt8(ascii: "\""))
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\"".utf8
      case "\\": text += "\\\\".utf8
      case "\n": text += "\\n".utf8
      case "\t": text += "\\t".utf8
      case "\r": text += "\\r".utf8
      case _ where scalar.value < 0x20 || scalar.value == 0x7F || !scalar.isASCII && !form.isPlain:
        for unit in String(scalar).utf16 { text += String(format: "\\U%04x", Int(unit)).utf8 }
      default: text += String(scalar).utf8
      }
    }
    text.append(UInt8(ascii: "\""))
  }

  private mutating func endLine(_ depth: Int) {
    text.append(UInt8(ascii: "\n"))
    indent(depth)
  }

  private mutating func indent(_ depth: Int) {
    for _ in 0..<depth { text += "    ".utf8 }
  }

  private static func text(_ date: Date) throws -> String {
    guard let text = YAMLDate.wholeText(date) else {
      throw DrydockError(
        .unsupported, "an OpenStep property list cannot represent a date before the year 1 or after 9999")
    }
    return text.replacing("T", with: " ").replacing("Z", with: " +0000")
  }

  private static func unsupported(
    _ value: PropertyListValue, _ form: PropertyListText
  ) -> DrydockError {
    let what = form.isTyped ? "this value of the type" : "a value of the type"
    let types = form.isTyped ? "" : ", only text, data, lists and dictionaries"
    return DrydockError(
      .unsupported,
      "an OpenStep property list cannot represent \(what) \(value.typeName)\(types); "
        + "write it as text, or convert the file to XML or binary"
    )
  }
}
