/// A JSON text: one value, written again as it was but for what was changed.
package struct JSONDocument: Sendable {
  /// The value.
  package var value: JSONValue
  private let leading: String
  private let trailing: String
  private let style: JSONStyle

  /// Reads a text, UTF-8.
  ///
  /// - Throws: ``DrydockError`` (`.malformed`) with line and column; nothing of the text is in its message.
  package init(bytes: [UInt8]) throws {
    (leading, value, trailing) = try JSONParser.parse(bytes)
    style = JSONStyle(of: value)
  }

  /// A new text, indented and ending with a newline, or on one line.
  package init(_ value: JSONValue, isIndented: Bool) {
    self.value = value
    (leading, trailing) = ("", isIndented ? "\n" : "")
    var style = JSONStyle(of: .null)
    if isIndented { (style.newline, style.unit, style.colon) = ("\n", "  ", ": ") }
    self.style = style
  }

  /// The text, UTF-8.
  package var bytes: [UInt8] { Array(text.utf8) }

  /// The text.
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
