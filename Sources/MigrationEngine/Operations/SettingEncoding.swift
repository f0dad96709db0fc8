import Formats

/// How a setting is written as bytes, to a file or a vault item.
enum SettingEncoding: String, Sendable {
  /// Text as UTF-8, data unchanged.
  case raw
  /// A number or Bool as text, as `defaults.convert` writes it.
  case text
  case json
  /// A binary property list, which keeps every type.
  case plist

  /// - Parameters:
  ///   - isIndented: whether JSON has a line for each value.
  ///   - argument: the name of the operation's argument for the encoding, with the encodings that it accepts, those for
  ///     more types last.
  /// - Throws: ``StepFailure`` when the encoding cannot represent the value.
  func bytes(
    of value: PropertyListValue, key: String, isIndented: Bool,
    argument: (name: String, encodings: [SettingEncoding])
  ) throws -> [UInt8] {
    let problem: String
    switch (self, value) {
    case (.raw, .string(let text)): return Array(text.utf8)
    case (.raw, .data(let bytes)): return bytes
    case (.raw, _): problem = "neither text nor data"
    case (.text, _):
      if case .string(let text) = SettingType.string.convert(value) { return Array(text.utf8) }
      problem = "which cannot be text"
    case (.json, _):
      if let json = JSONValue(value) { return JSONDocument(json, isIndented: isIndented).bytes }
      problem =
        "and contains a value that JSON cannot represent: a date, data or a number that is not finite"
    case (.plist, _): return try PropertyListDocument(format: .binary, value: value).encoded()
    }
    let others = argument.encodings.drop { $0 != self }.dropFirst()
      .map { "`\(argument.name): \($0.rawValue)`" }.joined(separator: " or ")
    throw StepFailure(
      message: "the setting `\(key)` is \(value.nounPhrase), \(problem)"
        + (others.isEmpty ? "" : ": say \(others)"))
  }

  /// The setting that was written.
  ///
  /// - Parameter type: a value of its type, which bytes in most encodings do not have; nil when that is unknown.
  /// - Returns: nil when the bytes are not of that type.
  func setting(of bytes: [UInt8], like type: PropertyListValue?) throws -> PropertyListValue? {
    let text = String(validating: bytes, as: UTF8.self)
    switch self {
    case .raw:
      if case .data = type { return .data(bytes) }
      return text.map { .string($0) }
    case .text:
      guard let text, let type else { return nil }
      // A real of 32 bits is written in the digits that it needs, and read as any real.
      let written = SettingType(of: type).map { $0 == .float ? .real : $0 }
      return written?.convert(.string(text))?.typed(like: type)
    case .json: return try JSONDocument(bytes: bytes).value.propertyListValue?.typed(like: type)
    case .plist: return try PropertyListDocument(bytes: bytes).value
    }
  }
}
