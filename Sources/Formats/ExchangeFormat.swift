import DrydockErrors

/// The formats in which property lists are exported, imported and converted.
package enum ExchangeFormat: String, CaseIterable, Sendable {
  case xml, binary, json, openstep

  /// Reads a file in any of the formats, which is recognized by its content, or a settings file of Android.
  ///
  /// - Throws: `DrydockError` (`.malformed`), also for a null in JSON.
  package static func read(_ bytes: [UInt8], path: String) throws -> PropertyListValue {
    if SettingsFile.isDataStore(path) || SharedPreferences.isBegun(by: bytes) {
      return .dictionary(try SettingsFile(bytes: bytes, path: path).root)
    }
    let start = bytes.first { $0 > 0x20 && $0 < 0x80 }
    // Both JSON and OpenStep text start with a brace, and pairs of the latter have an equals sign.
    if start == UInt8(ascii: "[") || start == UInt8(ascii: "{"), !isOpenStep(bytes) {
      let json = try JSONDocument(bytes: bytes).value
      guard let value = json.propertyListValue else {
        throw DrydockError(.malformed, "the JSON contains a null, which settings cannot represent")
      }
      return value
    }
    return try PropertyListDocument(bytes: bytes).value
  }

  private static func isOpenStep(_ bytes: [UInt8]) -> Bool {
    (try? JSONDocument(bytes: bytes)) == nil && bytes.contains(UInt8(ascii: "="))
  }

  /// - Throws: `DrydockError` (`.unsupported`) for a value that the format cannot represent, with its place.
  package func encode(_ value: PropertyListValue) throws -> [UInt8] {
    let fails = { (part: PropertyListValue) in (try? written(part)) == nil }
    do { return try written(value) } catch let error as UnfitSetting {
      let key = Self.place(in: value, fails).place.first
      throw DrydockError(
        .unsupported, "\(key.map { "the setting `\($0)`" } ?? "a setting") \(error.problem)")
    } catch let error as DrydockError where error.code == .unsupported {
      let (place, type) = Self.place(in: value, fails)
      let at = place.isEmpty ? "" : ", at \(JSONPointer(tokens: place))"
      let what =
        switch self {
        case .json: "JSON cannot represent a value of the type \(type)\(at); choose XML or binary"
        case .openstep:
          "an OpenStep property list cannot represent a value of the type \(type)\(at); choose XML or binary"
        case .xml, .binary: "\(error.message)\(at); choose another format"
        }
      throw DrydockError(.unsupported, what)
    }
  }

  private func written(_ original: PropertyListValue) throws -> [UInt8] {
    let value = try original.inPropertyList()
    switch self {
    case .binary: return try PropertyListDocument(format: .binary, value: value).encoded()
    case .xml: return try PropertyListDocument(format: .xml, value: value).encoded()
    case .openstep: return try PropertyListDocument(format: .openStep, value: value).encoded()
    case .json:
      guard let json = JSONValue(value) else { throw DrydockError(.unsupported, "") }
      return JSONDocument(json, isIndented: true).bytes
    }
  }

  /// The place and the type of the first value in order that is not a container and fails.
  private static func place(
    in value: PropertyListValue, _ fails: (PropertyListValue) -> Bool
  ) -> (place: [String], type: String) {
    var inner: (token: String, value: PropertyListValue)?
    switch value {
    case .array(let values):
      inner = values.enumerated().first { fails($0.element) }.map { (String($0.offset), $0.element) }
    case .dictionary(let values): inner = values.sorted().first { fails($0.value) }.map { ($0.key, $0.value) }
    default: break
    }
    guard let inner else { return ([], value.typeName) }
    let (rest, type) = place(in: inner.value, fails)
    return ([inner.token] + rest, type)
  }
}
