import AppStores
import DrydockErrors
import Formats
import Foundation

/// A value that a JSON pointer can navigate: of JSON or a property list.
protocol StructuredValue: Sendable {
  var shape: ValueShape { get }
  /// The member or element at a place. Setting nil removes it; setting a value replaces it, or adds a member at the end.
  subscript(_ place: ValuePlace) -> Self? { get set }
  /// Adds a member, or inserts an element before the one with the index.
  ///
  /// - Parameter order: the index of the member, for an ordered dictionary; at the end when nil.
  mutating func insert(_ value: Self, at place: ValuePlace, order: Int?)
  /// The index of a member; nil when members have no order.
  func order(of place: ValuePlace) -> Int?
  /// Whether both are equal, whatever their formatting.
  func matches(_ other: Self) -> Bool

  /// A value of a migration.
  init(_ node: YAMLNode) throws
  init(integer: Int64)
  /// A dictionary with one member.
  init(key: String, value: Self)
  /// A recorded value.
  init(stored: String) throws
  /// The exact value for the undo entry.
  var stored: String { get }
  var integer: Int64? { get }
  /// The value in a message; hidden when one of its names suggests a secret.
  func shown(_ redactor: Redactor, names: [String]) -> String
}

enum ValueShape: Equatable {
  case array(count: Int)
  case dictionary
  /// A simple value; with the type's name.
  case single(String)

  var nounPhrase: String {
    switch self {
    case .array: "an array"
    case .dictionary: "a dictionary"
    case .single(let name): name == "null" ? name : name.withArticle
    }
  }
}

/// A place directly inside a value.
enum ValuePlace: Equatable {
  case member(String)
  case element(Int)
}

extension StructuredValue {
  /// The value that a pointer leads to; nil when there is none.
  subscript(_ pointer: JSONPointer) -> Self? {
    var current = self
    for token in pointer.tokens {
      guard let place = try? current.place(token, of: pointer), let next = current[place] else {
        return nil
      }
      current = next
    }
    return current
  }

  /// The place that a token names. In an array `-` is the place after the last element.
  ///
  /// - Throws: ``StepFailure`` when it names none.
  func place(_ token: String, of pointer: JSONPointer) throws -> ValuePlace {
    switch shape {
    case .dictionary: return .member(token)
    case .array(let count):
      if token == "-" { return .element(count) }
      if let index = JSONPointer.index(token) { return .element(index) }
      throw StepFailure("`\(token)` of `\(pointer)` is not an index of an array")
    case .single:
      throw StepFailure("`\(token)` of `\(pointer)` leads into \(shape.nounPhrase), which has no members")
    }
  }

  /// Changes the value around the place that a pointer leads to.
  mutating func change(
    _ pointer: JSONPointer, from depth: Int = 0, _ body: (inout Self, ValuePlace) throws -> Void
  ) throws {
    let place = try place(pointer.tokens[depth], of: pointer)
    if depth == pointer.tokens.count - 1 { return try body(&self, place) }
    guard var inner = self[place] else {
      throw StepFailure("`\(JSONPointer(tokens: Array(pointer.tokens[...depth])))` does not exist")
    }
    try inner.change(pointer, from: depth + 1, body)
    self[place] = inner
  }

  /// Sets an existing value, or a new member.
  mutating func set(_ value: Self, at pointer: JSONPointer) throws {
    if pointer.tokens.isEmpty { return self = value }
    try change(pointer) { container, place in
      if container[place] == nil, case .element = place { throw StepFailure("`\(pointer)` does not exist") }
      container[place] = value
    }
  }
}

extension PropertyListValue {
  /// The part that a JSON pointer leads to; nil when there is none.
  package func value(at pointer: JSONPointer) -> PropertyListValue? { self[pointer] }

  /// Sets a part, which may be a new member or the one after the last element (`-`); nil removes it.
  ///
  /// - Throws: `DrydockError` with code `missing` when the pointer leads nowhere.
  package mutating func set(_ value: PropertyListValue?, at pointer: JSONPointer) throws {
    do {
      try change(pointer) { container, place in
        guard container[place] == nil else { return container[place] = value }
        let isNew = if case .array(let count) = container.shape { place == .element(count) } else { true }
        guard let value, isNew else { throw StepFailure("`\(pointer)` does not exist") }
        container.insert(value, at: place, order: nil)
      }
    } catch let failure as StepFailure { throw DrydockError(.missing, failure.message) }
  }
}

extension JSONValue: StructuredValue {
  var shape: ValueShape {
    switch self {
    case .array(let array): .array(count: array.elements.count)
    case .object: .dictionary
    case .null, .boolean, .number, .string: .single(typeName)
    }
  }

  subscript(_ place: ValuePlace) -> JSONValue? {
    get {
      switch (self, place) {
      case (.array(let array), .element(let index)):
        array.elements.indices.contains(index) ? array.elements[index] : nil
      case (.object(let object), .member(let key)): object[key]
      default: nil
      }
    }
    set {
      switch (self, place) {
      case (.array(var array), .element(let index)):
        if let newValue { array.replace(index, with: newValue) } else { array.remove(at: index) }
        self = .array(array)
      case (.object(var object), .member(let key)):
        if let newValue { object.set(key, to: newValue) } else { object.remove(key) }
        self = .object(object)
      default: break
      }
    }
  }

  mutating func insert(_ value: JSONValue, at place: ValuePlace, order: Int?) {
    switch (self, place) {
    case (.array(var array), .element(let index)):
      array.insert(value, at: index)
      self = .array(array)
    case (.object(var object), .member(let key)):
      object.set(key, to: value, at: order)
      self = .object(object)
    default: break
    }
  }

  func order(of place: ValuePlace) -> Int? {
    guard case .object(let object) = self, case .member(let key) = place else { return nil }
    return object.index(of: key)
  }

  init(_ node: YAMLNode) throws { self = try node.jsonValue() }
  init(integer: Int64) { self = .number(JSONNumber(integer)) }
  init(key: String, value: JSONValue) { self = .object(JSONObject([(key, value)])) }
  init(stored: String) throws { self = try JSONDocument(bytes: Array(stored.utf8)).value }

  var stored: String { JSONDocument(self, isIndented: false).text }

  var integer: Int64? {
    if case .number(let number) = self { number.integer } else { nil }
  }

  func shown(_ redactor: Redactor, names: [String]) -> String {
    propertyListValue?.shown(redactor, names: names) ?? shape.nounPhrase
  }
}

extension PropertyListValue: StructuredValue {
  var shape: ValueShape {
    switch self {
    case .array(let values): .array(count: values.count)
    case .dictionary: .dictionary
    default: .single(typeName)
    }
  }

  subscript(_ place: ValuePlace) -> PropertyListValue? {
    get {
      switch (self, place) {
      case (.array(let values), .element(let index)): values.indices.contains(index) ? values[index] : nil
      case (.dictionary(let values), .member(let key)): values[key]
      default: nil
      }
    }
    set {
      switch (self, place) {
      case (.array(var values), .element(let index)):
        values.replaceSubrange(index...index, with: newValue.map { [$0] } ?? [])
        self = .array(values)
      case (.dictionary(var values), .member(let key)):
        values[key] = newValue
        self = .dictionary(values)
      default: break
      }
    }
  }

  mutating func insert(_ value: PropertyListValue, at place: ValuePlace, order: Int?) {
    guard case .array(var values) = self, case .element(let index) = place else { return self[place] = value }
    values.insert(value, at: index)
    self = .array(values)
  }

  func order(of place: ValuePlace) -> Int? { nil }

  init(_ node: YAMLNode) throws { self = try node.propertyListValue() }
  init(integer: Int64) { self = .integer(integer) }
  init(key: String, value: PropertyListValue) { self = .dictionary([key: value]) }

  init(stored: String) throws {
    if let typed = try Self.typed(stored) {
      self = typed
      return
    }
    guard let data = Data(base64Encoded: stored) else {
      throw DrydockError(.malformed, "a recorded value is not base64")
    }
    self = try PropertyListDocument(bytes: [UInt8](data)).value
  }

  /// A binary property list in base64, which keeps every type. Types that only Android has are named before it.
  var stored: String {
    switch self {
    case .int(let number): return "int:\(number)"
    case .long(let number): return "long:\(number)"
    case .set(let values): return "set:" + PropertyListValue.array(values.strings.map { .string($0) }).stored
    case .unknown(let opaque):
      if let bytes = opaque.androidBytes { return "unknown:" + Data(bytes).base64EncodedString() }
    default: break
    }
    let bytes = try? PropertyListDocument(format: .binary, value: self).encoded()
    return Data(bytes ?? []).base64EncodedString()
  }

  /// The value of a type that only Android has; nil for others.
  private static func typed(_ stored: String) throws -> PropertyListValue? {
    let parts = stored.split(separator: ":", maxSplits: 1).map(String.init)
    guard parts.count == 2 else { return nil }
    let value: PropertyListValue? =
      switch parts[0] {
      case "int": Int32(parts[1]).map { .int($0) }
      case "long": Int64(parts[1]).map { .long($0) }
      case "set":
        if case .array(let values) = try PropertyListValue(stored: parts[1]) {
          StringSet(array: values).map { .set($0) }
        } else {
          nil
        }
      case "unknown":
        Data(base64Encoded: parts[1]).flatMap { Opaque(androidBytes: [UInt8]($0)) }.map { .unknown($0) }
      default: nil
      }
    guard let value else { throw DrydockError(.malformed, "a recorded value has an unknown type") }
    return value
  }

  var integer: Int64? { anyInteger }

  func shown(_ redactor: Redactor, names: [String]) -> String {
    redactor.typed(self, of: names.last { SecretPattern.isSecret(self, key: $0) } ?? names.last ?? "")
  }
}
