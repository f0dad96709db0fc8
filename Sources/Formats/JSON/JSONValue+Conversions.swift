extension JSONValue {
  /// A setting's value as JSON has it, with sorted keys; nil for what JSON has no form for: a date, data, an infinity.
  package init?(_ value: PropertyListValue) {
    switch value {
    case .string(let text): self = .string(JSONString(text))
    case .boolean(let bool): self = .boolean(bool)
    case .integer(let number): self = .number(JSONNumber(number))
    case .unsigned(let number): self = .number(JSONNumber(number))
    case .real(let real):
      guard let number = JSONNumber(real) else { return nil }
      self = .number(number)
    case .single(let real):
      // The shortest text of a 32-bit real, not all digits of the 64-bit one.
      guard real.isFinite else { return nil }
      self = .number(JSONNumber(checked: real.description))
    case .array(let values):
      let elements = values.compactMap { JSONValue($0) }
      guard elements.count == values.count else { return nil }
      self = .array(JSONArray(elements))
    case .dictionary(let values):
      let members = values.sorted().compactMap { key, value in
        JSONValue(value).map { (key: key, value: $0) }
      }
      guard members.count == values.count else { return nil }
      self = .object(JSONObject(members))
    case .date, .data, .unknown: return nil
    }
  }

  /// The value as settings have it; nil for null, which they have not.
  package var propertyListValue: PropertyListValue? {
    switch self {
    case .null: return nil
    case .boolean(let bool): return .boolean(bool)
    case .string(let string): return .string(string.text)
    case .number(let number): return number.propertyListValue
    case .array(let array):
      let values = array.elements.compactMap(\.propertyListValue)
      return values.count == array.elements.count ? .array(values) : nil
    case .object(let object):
      var values: PropertyListDictionary = [:]
      for member in object.members { values[member.key.text] = member.value.propertyListValue }
      return values.count == object.members.count ? .dictionary(values) : nil
    }
  }
}

extension JSONNumber {
  /// An integer where it is written as one and fits, else a real.
  fileprivate var propertyListValue: PropertyListValue? {
    if let number = Int64(text) { return .integer(number) }
    if let number = UInt64(text) { return .unsigned(number) }
    return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
  }
}

extension YAMLNode {
  /// The value as JSON has it, with its keys in the order of the file.
  ///
  /// - Throws: `DrydockError` for dates, data and numbers that JSON has no form for, and for keys that are not text.
  package func jsonValue() throws -> JSONValue {
    switch content {
    case .sequence(let nodes): return .array(JSONArray(try nodes.map { try $0.jsonValue() }))
    case .mapping(let mapping):
      return .object(
        JSONObject(
          try mapping.pairs.map { pair in
            guard case .text(let key) = pair.key.value else {
              throw pair.keyPosition.error("a key of JSON is text, not \(pair.key.value.summary): quote it")
            }
            return (key, try pair.value.jsonValue())
          }))
    case .scalar(let scalar): return try jsonValue(scalar)
    }
  }

  private func jsonValue(_ scalar: YAMLScalar) throws -> JSONValue {
    switch scalar.value {
    case .null: return .null
    case .boolean(let bool): return .boolean(bool)
    case .integer(let number): return .number(JSONNumber(number))
    case .unsigned(let number): return .number(JSONNumber(number))
    case .real(let real):
      // As the author wrote it, where JSON writes numbers so: `1.50` keeps its zero.
      if case .number(let number) = try? JSONDocument(bytes: Array(scalar.source.utf8)).value {
        return .number(number)
      }
      guard let number = JSONNumber(real) else {
        throw position.error("JSON has no number `\(scalar.source)`")
      }
      return .number(number)
    case .text(let text): return .string(JSONString(text))
    case .date, .data:
      throw position.error("JSON has no form for \(summary): write it as text, as the app reads it")
    }
  }
}
