import DrydockErrors

/// A property list file with a dictionary of settings, and its format.
package struct PropertyListFile: Sendable, Equatable {
  /// The format, which is preserved when the file is rewritten.
  package enum Format: String, Sendable {
    /// Apple's binary format.
    case binary
    /// XML. Dates have whole seconds.
    case xml
    /// The text form of OpenStep and GNUstep.
    case openStep = "openstep"
  }

  package var format: Format
  /// How the text is written, which is preserved as well.
  package var text = PropertyListText()
  package var root: PropertyListDictionary

  /// A new property list, binary by default, as Apple's systems write settings.
  package init(format: Format = .binary, root: PropertyListDictionary = [:]) {
    self.format = format
    self.root = root
  }

  /// Reads a file's content.
  ///
  /// - Throws: `DrydockError` (`.malformed`) when it is not a property list, corrupt, or not a dictionary.
  package init(bytes: [UInt8]) throws {
    let document = try PropertyListDocument(bytes: bytes)
    guard case .dictionary(let values) = document.value else {
      throw DrydockError(
        .malformed, "the property list is of type \(document.value.typeName), not a dictionary of settings")
    }
    (format, text, root) = (document.format, document.text, values)
  }

  /// The file's content. The same settings give the same bytes.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the format cannot represent.
  package func encoded() throws -> [UInt8] {
    try PropertyListDocument(format: format, value: .dictionary(root), text: text).encoded()
  }
}

extension PropertyListFile.Format {
  /// Whether writing `value` in this format is lossy: text has no fractions of a second.
  package func rounds(_ value: PropertyListValue) -> Bool {
    self != .binary
      && value.contains { part in
        guard case .date(let date) = part else { return false }
        let seconds = date.timeIntervalSinceReferenceDate
        return seconds.rounded(.down) != seconds
      }
  }
}

/// How a property list is written as text, which a file keeps when it is rewritten.
package struct PropertyListText: Sendable, Hashable {
  package var encoding = TextEncoding.plain

  // The text form of OpenStep; its comments are lost.

  /// Pairs without braces around them, as in a strings file.
  package var isStringsFile = false
  /// GNUstep's typed values.
  package var isTyped = false
  /// Other characters than ASCII as they are, not as `\U00e9`.
  package var isPlain = false

  package init() {}
}

/// A property list with any top value, and its format.
package struct PropertyListDocument: Sendable, Equatable {
  package var format: PropertyListFile.Format
  package var text: PropertyListText
  package var value: PropertyListValue

  package init(
    format: PropertyListFile.Format, value: PropertyListValue, text: PropertyListText = PropertyListText()
  ) {
    (self.format, self.value, self.text) = (format, value, text)
  }

  /// Reads a file's content.
  ///
  /// - Throws: `DrydockError` (`.malformed`) when it is not a property list or corrupt.
  package init(bytes: [UInt8]) throws {
    if Self.isBinary(bytes) {
      self.init(format: .binary, value: try BinaryPropertyListReader.read(bytes))
      return
    }
    if Self.isBegun(by: bytes) {
      self.init(format: .xml, value: .boolean(false))
      (value, text.encoding) = try XMLPropertyListReader.read(bytes)
    } else {
      let encoding = TextEncoding(of: bytes)
      let decoded = encoding.decode(bytes) ?? []
      guard !decoded.contains(0), let (value, form) = try OpenStepReader.read(decoded) else {
        let what = bytes.isEmpty ? "the file is empty" : "neither binary, XML nor OpenStep text"
        throw DrydockError(.malformed, "not a property list: \(what)")
      }
      self.init(format: .openStep, value: value, text: form)
      text.encoding = encoding
    }
  }

  /// The file's content. The same value gives the same bytes.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the format cannot represent.
  package func encoded() throws -> [UInt8] {
    switch format {
    case .binary: BinaryPropertyListWriter.write(value)
    case .xml: try XMLPropertyListWriter.write(value, text.encoding)
    case .openStep: text.encoding.encode(try OpenStepWriter.write(value, text))
    }
  }

  package static func isBinary(_ bytes: [UInt8]) -> Bool {
    bytes.starts(with: BinaryPropertyListReader.magic)
  }

  /// Whether the first bytes have the element `<plist>`.
  package static func isXML(_ bytes: [UInt8]) -> Bool {
    String(decoding: bytes.prefix(512), as: UTF8.self).contains("<plist")
  }

  /// Whether bytes start like a property list in binary or XML: with the binary format's magic, or with a `<`.
  package static func isBegun(by bytes: [UInt8]) -> Bool {
    if isBinary(bytes) { return true }
    return bytes.first { !($0 <= 0x20 || $0 >= 0x80) } == UInt8(ascii: "<")
  }
}

/// A value of a file in which values are shared, with what bounds the memory and the stack that it takes.
struct MeasuredValue {
  var value: PropertyListValue
  /// The bytes that it expands to, approximately; a shared value counts each time.
  var weight: Int
  /// Levels of nesting in it.
  var height = 0

  /// Counts a value in it.
  mutating func count(_ inner: MeasuredValue) {
    weight += inner.weight
    height = max(height, inner.height + 1)
  }
}
