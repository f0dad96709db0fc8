// Values of one format as those of another.

extension JSONValue {
  /// A property list value as JSON, with sorted keys; nil for what JSON cannot represent: dates, data, infinity, NaN.
  package init?(_ value: PropertyListValue) { self.init(value) { _ in nil } }

  /// - Parameter form: makes JSON of what it has no type for, null included; nil where it cannot.
  init?(_ value: PropertyListValue, form: (PropertyListValue) throws -> JSONValue?) rethrows {
    switch value {
    case .string(let text): self = .string(JSONString(text))
    case .boolean(let bool): self = .boolean(bool)
    case .integer(let number), .long(let number): self = .number(JSONNumber(number))
    case .int(let number): self = .number(JSONNumber(Int64(number)))
    case .unsigned(let number): self = .number(JSONNumber(number))
    case .set(let values): self = .array(JSONArray(values.strings.map { .string(JSONString($0)) }))
    case .real(let real):
      guard let number = JSONNumber(real) else { return nil }
      self = .number(number)
    case .single(let real):
      // The shortest text of the 32-bit real, not of the 64-bit one.
      guard real.isFinite else { return nil }
      self = .number(JSONNumber(checked: real.description))
    case .array(let values):
      let elements = try values.compactMap { try JSONValue($0, form: form) }
      guard elements.count == values.count else { return nil }
      self = .array(JSONArray(elements))
    case .dictionary(let values):
      let members = try values.sorted().compactMap { key, value in
        try JSONValue(value, form: form).map { (key: key, value: $0) }
      }
      guard members.count == values.count else { return nil }
      self = .object(JSONObject(members))
    case .date, .data, .unknown:
      guard let value = try form(value) else { return nil }
      self = value
    }
  }

  /// The value as in a property list; nil for null, and for a number out of range.
  package var propertyListValue: PropertyListValue? { propertyListValue(null: nil) }

  /// - Parameter null: what null and a number out of range become.
  package func propertyListValue(null: PropertyListValue?) -> PropertyListValue? {
    switch self {
    case .null: return null
    case .boolean(let bool): return .boolean(bool)
    case .string(let string): return .string(string.text)
    case .number(let number): return number.propertyListValue ?? null
    case .array(let array):
      let values = array.elements.compactMap { $0.propertyListValue(null: null) }
      return values.count == array.elements.count ? .array(values) : nil
    case .object(let object):
      var values: PropertyListDictionary = [:]
      for member in object.members {
        guard let value = member.value.propertyListValue(null: null) else { return nil }
        values[member.key.text] = value
      }
      return .dictionary(values)
    }
  }
}

extension JSONNumber {
  /// An integer if it is written as one and fits, else a real.
  fileprivate var propertyListValue: PropertyListValue? {
    if let number = Int64(text) { return .integer(number) }
    if let number = UInt64(text) { return .unsigned(number) }
    return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
  }
}

extension YAMLNode {
  /// The value as JSON, with its keys in the order of the file. Dates, data, other numbers than JSON's and keys that are not
  /// text are errors.
  package func jsonValue() throws -> JSONValue {
    switch content {
    case .sequence(let nodes): return .array(JSONArray(try nodes.map { try $0.jsonValue() }))
    case .mapping(let mapping):
      return .object(
        JSONObject(
          try mapping.pairs.map { pair in
            guard case .string(let key) = pair.key.value else {
              throw pair.keyPosition.error("a JSON key is text, not \(pair.key.value.summary): quote it")
            }
            return (key, try pair.value.jsonValue())
          }))
    case .scalar(let scalar): return try jsonValue(scalar)
    }
  }

  private func jsonValue(_ scalar: YAMLScalar) throws -> JSONValue {
    if isNull { return .null }
    if case .real = scalar.value {
      // As written, if that is a JSON number: `1.50` keeps its zero.
      if case .number(let number) = try? JSONDocument(bytes: Array(scalar.source.utf8)).value {
        return .number(number)
      }
      guard let value = JSONValue(scalar.value) else {
        throw position.error("JSON has no number `\(scalar.source)`")
      }
      return value
    }
    if case .single = scalar.value {} else if let value = JSONValue(scalar.value) { return value }
    throw position.error("JSON cannot represent \(summary): write it as text, as the app reads it")
  }
}

extension YAMLNode {
  /// The value as in a property list. Null and keys that are not text are errors.
  package func propertyListValue() throws -> PropertyListValue {
    switch content {
    case .scalar(let scalar):
      if isNull {
        throw position.error(
          "a setting cannot be null: quote it if it is text, or delete the key instead")
      }
      return scalar.value
    case .sequence(let nodes):
      let values = try nodes.map { try $0.propertyListValue() }
      guard isSet else { return .array(values) }
      guard let set = StringSet(array: values) else { throw position.error("`!set` needs different texts") }
      return .set(set)
    case .mapping(let mapping): return .dictionary(try mapping.propertyListValues())
    }
  }
}

extension YAMLMapping {
  /// The pairs as in a property list.
  package func propertyListValues() throws -> PropertyListDictionary {
    var values = PropertyListDictionary()
    for pair in pairs {
      guard case .string(let key) = pair.key.value else {
        throw pair.keyPosition.error("a setting's name is text, not \(pair.key.value.summary): quote it")
      }
      values[key] = try pair.value.propertyListValue()
    }
    return values
  }
}
