import DrydockErrors

/// The file of Jetpack's Preferences DataStore, a protocol buffer:
/// `PreferenceMap {map<string, Value> preferences = 1}`, where a value has one of eight types.
///
/// Unknown fields are preserved byte for byte. Of equal keys the last entry counts, as protocol buffers define it.
package enum DataStorePreferences {
  /// The fields of a file that this version does not know.
  struct UnknownFields: Sendable, Equatable {
    var top: [UInt8] = []
    /// By key: beside key and value, and in the value.
    var entries: [ExactText: [UInt8]] = [:]
    var values: [ExactText: [UInt8]] = [:]

    /// The settings that have such fields.
    var keys: Set<ExactText> { Set(entries.keys).union(values.keys) }
  }

  static func read(_ bytes: [UInt8]) throws -> (PropertyListDictionary, UnknownFields) {
    var (settings, unknown) = (PropertyListDictionary(), UnknownFields())
    var reader = ProtobufReader(bytes[...])
    while let field = try reader.next() {
      guard field.number == 1, case .bytes(let content) = field.content else {
        unknown.top += field.source
        continue
      }
      var (key, value, rest) = (ExactText(""), Value(), [UInt8]())
      var entry = ProtobufReader(content)
      while let field = try entry.next() {
        switch (field.number, field.content) {
        case (1, .bytes(let text)): key = ExactText(try ProtobufReader.text(text))
        case (2, .bytes(let content)): try value.read(content)
        default: rest += field.source
        }
      }
      settings[key] = value.setting
      unknown.entries[key] = rest.isEmpty ? nil : rest
      unknown.values[key] = value.unknown.isEmpty ? nil : value.unknown
    }
    return (settings, unknown)
  }

  /// The file of settings in their order by key.
  static func write(_ settings: PropertyListDictionary, _ unknown: UnknownFields) -> [UInt8] {
    var file: [UInt8] = []
    for (key, setting) in settings.sorted() {
      var value = Value.encoded(setting)
      value += unknown.values[ExactText(key)] ?? []
      var entry: [UInt8] = []
      entry.append(field: 1, Array(key.utf8))
      entry.append(field: 2, value)
      entry += unknown.entries[ExactText(key)] ?? []
      file.append(field: 1, entry)
    }
    return file + unknown.top
  }

  static func damaged(_ what: String) -> DrydockError {
    DrydockError(.malformed, "the DataStore file is corrupt: \(what)")
  }

  /// A value: the last of the known fields counts.
  private struct Value {
    private var known: PropertyListValue?
    private(set) var unknown: [UInt8] = []
    /// The whole value, for one that is only preserved.
    private var source: [UInt8] = []
    private var isOpaque = false

    /// The setting. One without a known field is preserved.
    var setting: PropertyListValue {
      if let known, !isOpaque { return known }
      return .unknown(PropertyListValue.Opaque(marker: PropertyListValue.Opaque.message, payload: source))
    }

    mutating func read(_ bytes: ArraySlice<UInt8>) throws {
      source += bytes
      var reader = ProtobufReader(bytes)
      while let field = try reader.next() {
        switch (field.number, field.content) {
        case (1, .number(let number)): known = .boolean(number != 0)
        case (2, .fixed32(let bits)): known = .single(Float(bitPattern: bits))
        case (3, .number(let number)): known = .int(Int32(truncatingIfNeeded: number))
        case (4, .number(let number)): known = .long(Int64(bitPattern: number))
        case (5, .bytes(let text)): known = .string(try ProtobufReader.text(text))
        case (6, .bytes(let content)): try readSet(content)
        case (7, .fixed64(let bits)): known = .real(Double(bitPattern: bits))
        case (8, .bytes(let data)): known = .data(Array(data))
        default: unknown += field.source
        }
      }
      if known == nil || isOpaque { unknown = [] }
    }

    private mutating func readSet(_ bytes: ArraySlice<UInt8>) throws {
      var strings: [String] = []
      if case .set(let earlier) = known { strings = earlier.strings }
      var reader = ProtobufReader(bytes)
      while let field = try reader.next() {
        if field.number == 1, case .bytes(let text) = field.content {
          strings.append(try ProtobufReader.text(text))
        } else {
          isOpaque = true
        }
      }
      known = .set(StringSet(strings))
    }

    static func encoded(_ setting: PropertyListValue) -> [UInt8] {
      var bytes: [UInt8] = []
      switch setting {
      case .boolean(let value): bytes.append(field: 1, number: value ? 1 : 0)
      case .single(let value): bytes.append(field: 2, wireType: 5, littleEndian: value.bitPattern)
      case .int(let value): bytes.append(field: 3, number: UInt64(bitPattern: Int64(value)))
      case .long(let value): bytes.append(field: 4, number: UInt64(bitPattern: value))
      case .string(let text): bytes.append(field: 5, Array(text.utf8))
      case .set(let values):
        var content: [UInt8] = []
        for text in values.strings { content.append(field: 1, Array(text.utf8)) }
        bytes.append(field: 6, content)
      case .real(let value): bytes.append(field: 7, wireType: 1, littleEndian: value.bitPattern)
      case .data(let data): bytes.append(field: 8, data)
      case .unknown(let opaque): bytes = opaque.payload
      // `SettingsFile` has converted or refused these.
      case .integer, .unsigned, .date, .array, .dictionary: break
      }
      return bytes
    }
  }
}

/// Reads the fields of a message of protocol buffers.
private struct ProtobufReader {
  struct Field {
    enum Content {
      case number(UInt64)
      case fixed64(UInt64)
      case bytes(ArraySlice<UInt8>)
      case fixed32(UInt32)
    }

    var number: UInt64
    var content: Content
    /// The bytes of the whole field.
    var source: ArraySlice<UInt8>
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  mutating func next() throws -> Field? {
    guard !rest.isEmpty else { return nil }
    let start = rest
    let tag = try number()
    let content: Field.Content
    switch tag & 7 {
    case 0: content = .number(try number())
    case 1: content = .fixed64(try littleEndian(UInt64.self))
    case 2: content = .bytes(try take(try number()))
    case 5: content = .fixed32(try littleEndian(UInt32.self))
    default: throw DataStorePreferences.damaged("a field of the invalid type \(tag & 7)")
    }
    guard tag >> 3 > 0, tag >> 3 < 1 << 29 else {
      throw DataStorePreferences.damaged("an invalid field number")
    }
    return Field(number: tag >> 3, content: content, source: start[..<rest.startIndex])
  }

  static func text(_ bytes: ArraySlice<UInt8>) throws -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw DataStorePreferences.damaged("text that is not UTF-8")
    }
    return text
  }

  /// A number in groups of seven bits, the lowest first.
  private mutating func number() throws -> UInt64 {
    var result: UInt64 = 0
    for shift in stride(from: 0, to: 70, by: 7) {
      guard let byte = rest.popFirst() else { throw cut }
      result |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return result }
    }
    throw DataStorePreferences.damaged("a number of more than 64 bits")
  }

  private mutating func littleEndian<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
    try take(UInt64(Number.bitWidth / 8)).reversed().reduce(0) { $0 << 8 | Number($1) }
  }

  private mutating func take(_ count: UInt64) throws -> ArraySlice<UInt8> {
    guard count <= UInt64(rest.count) else { throw cut }
    defer { rest = rest.dropFirst(Int(count)) }
    return rest.prefix(Int(count))
  }

  private var cut: DrydockError { DataStorePreferences.damaged("unexpected end of the file") }
}

extension [UInt8] {
  fileprivate mutating func append(number: UInt64) {
    var number = number
    while number >= 0x80 {
      append(UInt8(truncatingIfNeeded: number) | 0x80)
      number >>= 7
    }
    append(UInt8(number))
  }

  fileprivate mutating func append(field: UInt64, number: UInt64) {
    append(number: field << 3)
    append(number: number)
  }

  fileprivate mutating func append(field: UInt64, _ bytes: [UInt8]) {
    append(number: field << 3 | 2)
    append(number: UInt64(bytes.count))
    self += bytes
  }

  fileprivate mutating func append(
    field: UInt64, wireType: UInt64, littleEndian number: some FixedWidthInteger
  ) {
    append(number: field << 3 | wireType)
    Swift.withUnsafeBytes(of: number.littleEndian) { self += $0 }
  }
}
