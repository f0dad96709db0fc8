/// A property list on disk: a dictionary of settings, in the format that its file has.
public struct PropertyListFile: Sendable, Equatable {
  /// How the file is written; kept when it is written again.
  public enum Format: String, Sendable {
    /// Apple's binary format.
    case binary
    /// XML. Dates have whole seconds.
    case xml
  }

  /// How the file is written.
  public var format: Format
  /// The settings.
  public var root: [String: PropertyListValue]

  /// A new property list; binary, as Apple's systems write settings.
  public init(format: Format = .binary, root: [String: PropertyListValue] = [:]) {
    self.format = format
    self.root = root
  }

  /// Reads a file's content.
  ///
  /// - Throws: `ContainerError` (`.malformed`) when it is neither format, cut, damaged, or not a dictionary.
  public init(bytes: [UInt8]) throws {
    let value: PropertyListValue
    if bytes.starts(with: BinaryPropertyList.magic) {
      format = .binary
      value = try BinaryPropertyListReader.read(bytes)
    } else {
      format = .xml
      value = try XMLPropertyList.read(bytes)
    }
    guard case .dictionary(let values) = value else {
      throw ContainerError(
        .malformed, "the property list holds one \(value.typeName) where settings are a dictionary")
    }
    root = values
  }

  /// The file's content. The same settings give the same bytes.
  ///
  /// - Throws: `ContainerError` (`.unsupported`) for values that the XML format cannot hold.
  public func encoded() throws -> [UInt8] { try Self.encode(.dictionary(root), as: format) }

  /// The content of a property list whose top may be any value; see ``encoded()``.
  public static func encode(_ top: PropertyListValue, as format: Format) throws -> [UInt8] {
    switch format {
    case .binary: BinaryPropertyListWriter.write(top)
    case .xml: try XMLPropertyList.write(top)
    }
  }

  /// Whether writing `value` here loses something: XML has no fractions of a second.
  public func rounds(_ value: PropertyListValue) -> Bool {
    guard format == .xml else { return false }
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
