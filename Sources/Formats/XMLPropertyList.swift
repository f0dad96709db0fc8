import DrydockErrors
import Foundation

/// Decodes the XML property list format as Apple's systems do: its elements, the five entities of XML and numeric
/// characters only, so that nothing in a file expands. Not Foundation's implementation: of two keys that Unicode considers
/// equal it keeps one, and it has no negative zero.
struct XMLPropertyListReader: XMLScanner {
  /// The key of a reference in a keyed archive.
  static let reference = "CF$UID"

  static let isFullXML = false

  let bytes: [UInt8]
  var index = 0

  /// The value in a file, and the encoding in which it is written again.
  static func read(_ bytes: [UInt8]) throws -> (value: PropertyListValue, encoding: TextEncoding) {
    let encoding = TextEncoding(of: bytes)
    var reader = XMLPropertyListReader(bytes: try utf8(bytes, encoding))
    try reader.skipProlog()
    var tag = try reader.tag()
    let isWrapped = tag.name == "plist" && !tag.isEnd
    if isWrapped {
      if tag.isEmpty { throw reader.damaged("it has no value") }
      tag = try reader.nextTag()
      if tag.isEnd { throw reader.damaged("it has no value") }
    }
    let value = try reader.value(tag, depth: 0)
    try reader.skipBetween()
    if isWrapped {
      try reader.end("plist")
      try reader.skipBetween()
    }
    guard reader.index == reader.bytes.count else { throw reader.damaged("more than one value") }
    return (value, encoding)
  }

  /// The text as UTF-8.
  private static func utf8(_ bytes: [UInt8], _ encoding: TextEncoding) throws -> [UInt8] {
    if encoding == .plain, let name = Self.encoding(declaredIn: bytes[...]),
      !["utf-8", "us-ascii", "ascii"].contains(name)
    {
      guard ["iso-8859-1", "latin1"].contains(name) else {
        throw corrupt("the encoding is not UTF-8, UTF-16 or ISO-8859-1")
      }
      return bytes.flatMap { Array(String(UnicodeScalar($0)).utf8) }
    }
    guard let text = encoding.decode(bytes) else { throw corrupt("not valid \(encoding.xmlName)") }
    guard !text.contains(0) else { throw corrupt("a zero character") }
    return text
  }

  private mutating func value(_ tag: XMLTag, depth: Int) throws -> PropertyListValue {
    guard depth <= PropertyListValue.depthLimit else { throw damaged("nested too deeply") }
    if tag.isEnd { throw damaged("an end without a start") }
    switch tag.name {
    case "true", "false":
      if !tag.isEmpty {
        try skipBetween()
        try end(tag.name)
      }
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
    case "string", "key": return .string(tag.isEmpty ? "" : try text(in: tag.name).text)
    case "integer": return try integer(try word(in: tag))
    case "real":
      let word = try word(in: tag)
      guard !word.lowercased().contains("x"), let real = Double(word) else {
        throw damaged("not a valid real")
      }
      return .real(real)
    case "date":
      let word = try word(in: tag)
      guard word.utf8.count == 20, word.hasSuffix("Z"), word.contains("T"), let date = YAMLDate.parse(word)
      else {
        throw damaged("not a valid date")
      }
      return .date(date)
    case "data":
      let word = try word(in: tag).utf8.filter { !Self.isSpace($0) }
      guard let data = Data(base64Encoded: Data(word)) else { throw damaged("data that is not base64") }
      return .data([UInt8](data))
    // The message omits the name: in a corrupt file it may be a value.
    default: throw damaged("an unknown element")
    }
  }

  private mutating func dictionary(depth: Int) throws -> PropertyListValue {
    var values = PropertyListDictionary()
    while true {
      let next = try nextTag()
      if next.isEnd, next.name == "dict" { break }
      guard next.name == "key", !next.isEnd else { throw damaged("a value without a key") }
      let key = next.isEmpty ? "" : try text(in: "key").text
      let tag = try nextTag()
      if tag.isEnd || tag.name == "key" { throw damaged("a key without a value") }
      // Readers differ in which of the two counts.
      guard values.updateValue(try value(tag, depth: depth + 1), forKey: key) == nil else {
        throw damaged("a dictionary has a key twice")
      }
    }
    if values.count == 1, case .integer(let number) = values[Self.reference],
      let reference = UInt32(exactly: number)
    {
      return .unknown(PropertyListValue.Opaque(keyedArchiveReference: reference))
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
    else { throw damaged("not a valid integer of 64 bits") }
    if !isNegative { return Int64(exactly: number).map { .integer($0) } ?? .unsigned(number) }
    guard number <= 1 << 63 else { throw damaged("not a valid integer of 64 bits") }
    return .integer(Int64(truncatingIfNeeded: 0 &- number))
  }

  /// The content of an element, without white space around it.
  private mutating func word(in tag: XMLTag) throws -> String {
    let text = tag.isEmpty ? "" : try text(in: tag.name).text
    guard let first = text.utf8.first, let last = text.utf8.last, Self.isSpace(first) || Self.isSpace(last)
    else { return text }
    return String(text.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }

  /// The next tag, after white space and comments.
  private mutating func nextTag() throws -> XMLTag {
    try skipBetween()
    return try tag()
  }

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
        try skipBetween()
        return
      case UInt8(ascii: "\""):
        try skip(past: "\"", from: 1)
        continue
      default: break
      }
      index += 1
    }
    throw cut
  }

  static func corrupt(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the XML property list is corrupt: \(what)")
  }
}

/// Encodes the format as Apple's systems do: keys in order, indented with tabs.
struct XMLPropertyListWriter {
  private static let lineLength = 76
  private var text: [UInt8] = []

  /// - Throws: `DrydockError` (`.unsupported`) for values that the format cannot represent.
  static func write(_ value: PropertyListValue, _ encoding: TextEncoding = .plain) throws -> [UInt8] {
    var writer = XMLPropertyListWriter()
    writer.text = Array(
      """
      <?xml version="1.0" encoding="\(encoding.xmlName)"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """.utf8)
    try writer.add(value, depth: 0)
    writer.text += "</plist>\n".utf8
    return encoding.encode(writer.text)
  }

  private mutating func add(_ value: PropertyListValue, depth: Int, isIndented: Bool = false) throws {
    if !isIndented { indent(depth) }
    switch value {
    case .string(let text): try element("string", text)
    case .boolean(let value): text += (value ? "<true/>\n" : "<false/>\n").utf8
    case .integer(let value), .long(let value): try element("integer", "\(value)")
    case .int(let value): try element("integer", "\(value)")
    case .unsigned(let value): try element("integer", "\(value)")
    case .real(let value): try element("real", Self.text(value))
    case .single(let value): try element("real", Self.text(Double(value)))
    case .date(let date): try element("date", Self.text(date))
    case .data(let bytes): data(bytes, depth)
    case .array(let values):
      try group("array", isEmpty: values.isEmpty, depth) { writer in
        for value in values { try writer.add(value, depth: depth + 1) }
      }
    case .set(let values): try add(.array(values.strings.map { .string($0) }), depth: depth, isIndented: true)
    case .dictionary(let values):
      try group("dict", isEmpty: values.isEmpty, depth) { writer in
        for (key, value) in values.sorted() {
          writer.indent(depth + 1)
          try writer.element("key", key)
          try writer.add(value, depth: depth + 1)
        }
      }
    case .unknown(let opaque):
      guard let reference = opaque.keyedArchiveReference, reference <= UInt32.max else {
        throw Self.unsupported("a value of unknown kind")
      }
      try group("dict", isEmpty: false, depth) { writer in
        writer.indent(depth + 1)
        try writer.element("key", XMLPropertyListReader.reference)
        writer.indent(depth + 1)
        try writer.element("integer", "\(reference)")
      }
    }
  }

  private mutating func group(
    _ name: String, isEmpty: Bool, _ depth: Int, _ body: (inout Self) throws -> Void
  ) rethrows {
    if isEmpty { return text += "<\(name)/>\n".utf8 }
    text += "<\(name)>\n".utf8
    try body(&self)
    indent(depth)
    text += "</\(name)>\n".utf8
  }

  private mutating func indent(_ depth: Int) {
    for _ in 0..<depth { text.append(UInt8(ascii: "\t")) }
  }

  private mutating func element(_ name: String, _ content: String) throws {
    // Readers refuse the whole file for one of them.
    if let character = content.unicodeScalars.first(where: Self.isMissingInXML) {
      throw Self.unsupported("a text with the character U+" + String(format: "%04X", character.value))
    }
    text += "<\(name)>".utf8
    for byte in content.utf8 {
      switch byte {
      case UInt8(ascii: "<"): text += "&lt;".utf8
      case UInt8(ascii: ">"): text += "&gt;".utf8
      case UInt8(ascii: "&"): text += "&amp;".utf8
      default: text.append(byte)
      }
    }
    text += "</\(name)>\n".utf8
  }

  /// Whether XML 1.0 has no such character, not even escaped.
  private static func isMissingInXML(_ character: Unicode.Scalar) -> Bool {
    switch character.value {
    case 0x09, 0x0A, 0x0D: false
    case 0..<0x20, 0xFFFE, 0xFFFF: true
    default: false
    }
  }

  private mutating func data(_ bytes: [UInt8], _ depth: Int) {
    text += "<data>\n".utf8
    let indent = min(depth, 8)
    let encoded = Array(Data(bytes).base64EncodedString().utf8)
    let length = Self.lineLength - 8 * indent
    for start in stride(from: 0, to: encoded.count, by: length) {
      self.indent(indent)
      text += encoded[start..<min(start + length, encoded.count)]
      text.append(UInt8(ascii: "\n"))
    }
    self.indent(depth)
    text += "</data>\n".utf8
  }

  private static func text(_ real: Double) -> String {
    if real.isNaN { return "nan" }
    if real.isInfinite { return real < 0 ? "-infinity" : "+infinity" }
    if real == 0 { return real.sign == .minus ? "-0.0" : "0.0" }
    return String(format: "%.17g", real)
  }

  private static func text(_ date: Date) throws -> String {
    guard let text = YAMLDate.wholeText(date) else {
      throw unsupported("a date before the year 1 or after 9999")
    }
    return text
  }

  private static func unsupported(_ what: String) -> DrydockError {
    DrydockError(
      .unsupported, "an XML property list cannot represent a value of the settings: \(what)")
  }
}
