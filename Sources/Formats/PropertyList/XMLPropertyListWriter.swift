import DrydockErrors
import Foundation

/// Encodes the XML format as Apple's systems do: keys in order, indented with tabs.
struct XMLPropertyListWriter {
  private static let lineLength = 76
  private var text = Array(
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """.utf8)

  /// The bytes of a whole file.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the format cannot hold.
  static func write(_ value: PropertyListValue) throws -> [UInt8] {
    var writer = XMLPropertyListWriter()
    try writer.add(value, depth: 0)
    writer.text += "</plist>\n".utf8
    return writer.text
  }

  private mutating func add(_ value: PropertyListValue, depth: Int) throws {
    indent(depth)
    switch value {
    case .string(let text): element("string", text)
    case .boolean(let value): text += (value ? "<true/>\n" : "<false/>\n").utf8
    case .integer(let value): element("integer", "\(value)")
    case .unsigned(let value): element("integer", "\(value)")
    case .real(let value): element("real", Self.text(value))
    case .single(let value): element("real", Self.text(Double(value)))
    case .date(let date): element("date", try Self.text(date))
    case .data(let bytes): data(bytes, depth)
    case .array(let values):
      try group("array", isEmpty: values.isEmpty, depth) { writer in
        for value in values { try writer.add(value, depth: depth + 1) }
      }
    case .dictionary(let values):
      try group("dict", isEmpty: values.isEmpty, depth) { writer in
        for (key, value) in values.sorted() {
          writer.indent(depth + 1)
          writer.element("key", key)
          try writer.add(value, depth: depth + 1)
        }
      }
    case .unknown(let opaque):
      guard let reference = opaque.archiveReference, reference <= UInt32.max else {
        throw Self.unsupported("a value of an unknown kind")
      }
      group("dict", isEmpty: false, depth) { writer in
        writer.indent(depth + 1)
        writer.element("key", XMLPropertyList.reference)
        writer.indent(depth + 1)
        writer.element("integer", "\(reference)")
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

  private mutating func element(_ name: String, _ content: String) {
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
    let second = date.timeIntervalSinceReferenceDate.rounded(.down)
    guard YAMLDate.hasText(second) else { throw unsupported("a date before the year 1 or after 9999") }
    return YAMLDate.text(Date(timeIntervalSinceReferenceDate: second))
  }

  private static func unsupported(_ what: String) -> DrydockError {
    DrydockError(
      .unsupported, "the settings hold a value that an XML property list cannot hold: \(what)")
  }
}
