extension String {
  /// Whether a text has a fixed form, such as `0000-00-00T00:00:00Z`: `0` matches a decimal digit, `f` a hexadecimal one in
  /// lower case, and any other character itself. A regular expression would be parsed each time, which takes far longer.
  ///
  /// Not for any `StringProtocol`: from another module that would call a witness for each character, and a journal has
  /// thousands of times and names.
  package func hasForm(_ form: StaticString) -> Bool {
    guard utf8.count == form.utf8CodeUnitCount else { return false }
    return form.withUTF8Buffer { form in
      zip(utf8, form).allSatisfy { byte, form in
        switch form {
        case UInt8(ascii: "0"): byte.isDigit
        case UInt8(ascii: "f"): byte.isLowercaseHexDigit
        default: byte == form
        }
      }
    }
  }
}

extension Substring {
  /// Whether a text has a fixed form; see `String.hasForm`.
  package func hasForm(_ form: StaticString) -> Bool { String(self).hasForm(form) }
}

extension Decoder {
  /// A text of a certain form.
  package func text(_ meaning: String, _ isWellFormed: (String) -> Bool) throws -> String {
    let text = try String(from: self)
    guard isWellFormed(text) else {
      throw DecodingError.dataCorrupted(.init(codingPath: codingPath, debugDescription: "not \(meaning)"))
    }
    return text
  }
}
