import Foundation

/// A value in a property list, with its exact type: Bool, integer and real are three types here, as they are in
/// the file.
package indirect enum PropertyListValue: Sendable {
  /// Text.
  case string(String)
  /// True or false.
  case boolean(Bool)
  /// An integer that fits a signed 64-bit number.
  case integer(Int64)
  /// An integer above `Int64.max`.
  case unsigned(UInt64)
  /// A 64-bit real.
  case real(Double)
  /// A 32-bit real (binary files only).
  case single(Float)
  /// A point in time; XML files keep whole seconds only.
  case date(Date)
  /// Bytes.
  case data([UInt8])
  /// Values in order.
  case array([PropertyListValue])
  /// Values by key.
  case dictionary(PropertyListDictionary)
  /// Something that has no meaning here and passes through unchanged, such as a keyed archiver's reference.
  case unknown(PropertyListOpaque)

  /// The name of the type, for messages.
  package var typeName: String {
    switch self {
    case .string: "string"
    case .boolean: "Bool"
    case .integer, .unsigned: "integer"
    case .real, .single: "real"
    case .date: "date"
    case .data: "data"
    case .array: "array"
    case .dictionary: "dictionary"
    case .unknown: "unknown"
    }
  }

  /// Whether both say the same with the same type; a 32-bit real equals the 64-bit real of the same number, since
  /// nothing outside a file can tell them apart.
  package func matches(_ other: PropertyListValue) -> Bool {
    switch (self, other) {
    case (.single(let left), .real(let right)): Double(left).bitPattern == right.bitPattern
    case (.real(let left), .single(let right)): left.bitPattern == Double(right).bitPattern
    case (.array(let left), .array(let right)):
      left.count == right.count && zip(left, right).allSatisfy { $0.matches($1) }
    case (.dictionary(let left), .dictionary(let right)):
      left.count == right.count && left.allSatisfy { key, value in right[key]?.matches(value) == true }
    default: self == other
    }
  }
}

extension PropertyListValue: Hashable {
  /// In every scalar of a text and every bit of a real: the negative zero is another one, and what is no number equals
  /// itself.
  package static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.string(let left), .string(let right)): left.isExactly(right)
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.unsigned(let left), .unsigned(let right)): left == right
    case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
    case (.single(let left), .single(let right)): left.bitPattern == right.bitPattern
    case (.date(let left), .date(let right)): left == right
    case (.data(let left), .data(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.dictionary(let left), .dictionary(let right)): left == right
    case (.unknown(let left), .unknown(let right)): left == right
    default: false
    }
  }

  /// See `Hashable`.
  package func hash(into hasher: inout Hasher) {
    switch self {
    case .string(let text): hasher.combine(ExactText(text))
    case .boolean(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .unsigned(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value.bitPattern)
    case .single(let value): hasher.combine(value.bitPattern)
    case .date(let date): hasher.combine(date)
    case .data(let bytes): hasher.combine(bytes)
    case .array(let values): hasher.combine(values)
    case .dictionary(let values): hasher.combine(values)
    case .unknown(let opaque): hasher.combine(opaque)
    }
  }
}

/// An object of a binary property list that is kept as its bytes: the marker and what follows it.
package struct PropertyListOpaque: Hashable, Sendable {
  /// The first byte, which says the kind and the size.
  let marker: UInt8
  /// The bytes after the marker (and after the count, where the kind has one).
  let payload: [UInt8]

  init(marker: UInt8, payload: [UInt8]) { (self.marker, self.payload) = (marker, payload) }

  /// A keyed archiver's reference, in as few bytes as its number needs.
  init(archiveReference number: UInt32) {
    let size = number < 0x100 ? 1 : number < 0x1_0000 ? 2 : 4
    payload = (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * (size - 1 - $0))) }
    marker = 0x80 | UInt8(size - 1)
  }

  /// Null, which property lists have no use for, and JSON has.
  package static let null = PropertyListOpaque(marker: 0, payload: [])

  /// The number of a keyed archiver's reference, when it is one.
  package var archiveReference: UInt64? {
    guard marker & 0xF0 == 0x80, payload.count <= 8 else { return nil }
    return payload.reduce(0) { $0 << 8 | UInt64($1) }
  }
}

extension PropertyListValue: CustomStringConvertible {
  /// A short form with visible types: text in quotes, dates as in `!date`, data by its size.
  package var description: String {
    switch self {
    case .string(let text): "\"\(text)\""
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .real(let value): "\(value)"
    case .single(let value): "\(value)"
    case .date(let date): YAMLDate.text(date)
    case .data(let bytes): "data (\(bytes.count) bytes)"
    case .array(let values): "[" + values.map(\.description).joined(separator: ", ") + "]"
    case .dictionary(let values):
      "{" + values.sorted().map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "}"
    case .unknown(.null): "null"
    case .unknown(let opaque): opaque.archiveReference.map { "reference \($0)" } ?? "unknown value"
    }
  }
}

extension YAMLNode {
  /// The value as a property list holds it.
  ///
  /// - Throws: `DrydockError` for null (property lists have none) and for keys that are not text.
  package func propertyListValue() throws -> PropertyListValue {
    switch content {
    case .scalar(let scalar):
      guard let value = scalar.value.propertyListValue else {
        throw position.error(
          "null is no value for a setting: quote it if it is text, or delete the key instead")
      }
      return value
    case .sequence(let nodes): return .array(try nodes.map { try $0.propertyListValue() })
    case .mapping(let mapping): return .dictionary(try mapping.propertyListValues())
    }
  }
}

extension YAMLMapping {
  /// The pairs as property lists hold them; every key must be text.
  package func propertyListValues() throws -> PropertyListDictionary {
    var values = PropertyListDictionary()
    for pair in pairs {
      guard case .text(let key) = pair.key.value else {
        throw pair.keyPosition.error("a setting's name is text, not \(pair.key.value.summary): quote it")
      }
      values[key] = try pair.value.propertyListValue()
    }
    return values
  }
}

extension YAMLScalar.Value {
  /// The value as a property list holds it; nil for null.
  package var propertyListValue: PropertyListValue? {
    switch self {
    case .null: nil
    case .boolean(let value): .boolean(value)
    case .integer(let value): .integer(value)
    case .unsigned(let value): .unsigned(value)
    case .real(let value): .real(value)
    case .text(let text): .string(text)
    case .date(let date): .date(date)
    case .data(let bytes): .data(bytes)
    }
  }
}
