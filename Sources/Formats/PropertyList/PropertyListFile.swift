import DrydockErrors

/// A property list on disk: a dictionary of settings, in the format that its file has.
package struct PropertyListFile: Sendable, Equatable {
  /// How the file is written; kept when it is written again.
  package enum Format: String, Sendable {
    /// Apple's binary format.
    case binary
    /// XML. Dates have whole seconds.
    case xml
  }

  /// How the file is written.
  package var format: Format
  /// The settings.
  package var root: PropertyListDictionary

  /// A new property list; binary, as Apple's systems write settings.
  package init(format: Format = .binary, root: PropertyListDictionary = [:]) {
    self.format = format
    self.root = root
  }

  /// Reads a file's content.
  ///
  /// - Throws: `DrydockError` (`.malformed`) when it is neither format, cut, damaged, or not a dictionary.
  package init(bytes: [UInt8]) throws {
    let document = try PropertyListDocument(bytes: bytes)
    guard case .dictionary(let values) = document.value else {
      throw DrydockError(
        .malformed, "the property list holds one \(document.value.typeName) where settings are a dictionary")
    }
    (format, root) = (document.format, values)
  }

  /// The file's content. The same settings give the same bytes.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the XML format cannot hold.
  package func encoded() throws -> [UInt8] {
    try PropertyListDocument(format: format, value: .dictionary(root)).encoded()
  }

  /// Whether writing `value` here loses something: XML has no fractions of a second.
  package func rounds(_ value: PropertyListValue) -> Bool { format.rounds(value) }
}

extension PropertyListFile.Format {
  /// Whether writing `value` in this format loses something: XML has no fractions of a second.
  package func rounds(_ value: PropertyListValue) -> Bool {
    guard self == .xml else { return false }
    switch value {
    case .date(let date):
      let seconds = date.timeIntervalSinceReferenceDate
      return seconds.rounded(.down) != seconds
    case .array(let values): return values.contains(where: rounds)
    case .dictionary(let values): return values.values.contains(where: rounds)
    default: return false
    }
  }
}
