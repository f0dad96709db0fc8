import Foundation

/// A setting with its exact type: as in the file, Bool, integer and real are three types.
///
/// `integer` and `array` are also what a migration writes without naming a type; in Android's files, numbers are `int` or
/// `long`, and lists are sets of strings.
public indirect enum PropertyListValue: Sendable {
  case string(String)
  case boolean(Bool)
  /// An integer that fits a signed 64-bit number.
  case integer(Int64)
  /// An integer above `Int64.max`.
  case unsigned(UInt64)
  /// A 64-bit real.
  case real(Double)
  /// A 32-bit real (binary property lists, and Android's `float`).
  case single(Float)
  /// Android's 32-bit integer: an app that reads it as a `long` fails.
  case int(Int32)
  /// Android's 64-bit integer: an app that reads it as an `int` fails.
  case long(Int64)
  /// Android's set of strings.
  case set(StringSet)
  /// A point in time; XML files keep whole seconds only.
  case date(Date)
  case data([UInt8])
  case array([PropertyListValue])
  case dictionary(PropertyListDictionary)
  /// An object that is preserved but not interpreted, such as a reference in a keyed archive.
  case unknown(PropertyListValue.Opaque)

  /// The name of the type, for messages.
  public var typeName: String {
    switch self {
    case .string: "string"
    case .boolean: "Bool"
    case .integer, .unsigned: "integer"
    case .real, .single: "real"
    case .int: "int"
    case .long: "long"
    case .set: "string set"
    case .date: "date"
    case .data: "data"
    case .array: "array"
    case .dictionary: "dictionary"
    case .unknown: "unknown"
    }
  }

  /// Whether both have the same type and value. A 32-bit real matches the 64-bit real of the same number or shortest
  /// decimal text, an integer the
  /// `int` or `long`, and an array the set of the same strings: only a file distinguishes them. An `int` matches no `long`.
  public func matches(_ other: PropertyListValue) -> Bool {
    switch (self, other) {
    case (.int(let left), .integer(let right)), (.integer(let right), .int(let left)): Int64(left) == right
    case (.long(let left), .integer(let right)), (.integer(let right), .long(let left)): left == right
    case (.set(let left), .array(let right)), (.array(let right), .set(let left)):
      StringSet(array: right) == left
    case (.single(let single), .real(let real)), (.real(let real), .single(let single)):
      Float(sameNumberAs: real)?.bitPattern == single.bitPattern
    case (.array(let left), .array(let right)):
      left.count == right.count && zip(left, right).allSatisfy { $0.matches($1) }
    case (.dictionary(let left), .dictionary(let right)):
      left.count == right.count && left.allSatisfy { key, value in right[key]?.matches(value) == true }
    default: self == other
    }
  }
}

extension PropertyListValue: Hashable {
  /// Compares every scalar of a text and every bit of a real: negative zero differs from zero, and NaN equals itself.
  public static func == (left: Self, right: Self) -> Bool {
    switch (left, right) {
    case (.string(let left), .string(let right)): left.isExactly(right)
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.unsigned(let left), .unsigned(let right)): left == right
    case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
    case (.single(let left), .single(let right)): left.bitPattern == right.bitPattern
    case (.int(let left), .int(let right)): left == right
    case (.long(let left), .long(let right)): left == right
    case (.set(let left), .set(let right)): left == right
    case (.date(let left), .date(let right)): left == right
    case (.data(let left), .data(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.dictionary(let left), .dictionary(let right)): left == right
    case (.unknown(let left), .unknown(let right)): left == right
    default: false
    }
  }

  public func hash(into hasher: inout Hasher) {
    switch self {
    case .string(let text): hasher.combine(ExactText(text))
    case .boolean(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .unsigned(let value): hasher.combine(value)
    case .real(let value): hasher.combine(value.bitPattern)
    case .single(let value): hasher.combine(value.bitPattern)
    case .int(let value): hasher.combine(value)
    case .long(let value): hasher.combine(value)
    case .set(let values): hasher.combine(values)
    case .date(let date): hasher.combine(date)
    case .data(let bytes): hasher.combine(bytes)
    case .array(let values): hasher.combine(values)
    case .dictionary(let values): hasher.combine(values)
    case .unknown(let opaque): hasher.combine(opaque)
    }
  }
}

extension PropertyListValue {
  /// A value that is preserved as its bytes: an object of a binary property list, or an Android value of unknown type.
  public struct Opaque: Hashable, Sendable {
    /// The marker of an element of SharedPreferences, which no binary property list has.
    static let element: UInt8 = 0xF0
    /// The marker of a value of DataStore.
    static let message: UInt8 = 0xF1

    /// The first byte: kind and size.
    let marker: UInt8
    /// The bytes after the marker and the count, if any.
    let payload: [UInt8]

    /// Whether it is of an Android file.
    var isAndroids: Bool { marker == Self.element || marker == Self.message }

    /// The value of an Android file as bytes, with its kind before it; nil for others.
    package var androidBytes: [UInt8]? { isAndroids ? [marker] + payload : nil }

    package init?(androidBytes bytes: [UInt8]) {
      guard let marker = bytes.first else { return nil }
      self.init(marker: marker, payload: Array(bytes.dropFirst()))
      if !isAndroids { return nil }
    }

    init(marker: UInt8, payload: [UInt8]) { (self.marker, self.payload) = (marker, payload) }

    /// A reference in a keyed archive, in as few bytes as possible.
    init(keyedArchiveReference number: UInt32) {
      let size = number < 0x100 ? 1 : number < 0x1_0000 ? 2 : 4
      payload = (0..<size).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * (size - 1 - $0))) }
      marker = 0x80 | UInt8(size - 1)
    }

    /// Null, which JSON has and property lists do not use.
    package static let null = PropertyListValue.Opaque(marker: 0, payload: [])

    /// The number of a reference in a keyed archive, if this is one.
    package var keyedArchiveReference: UInt64? {
      guard marker & 0xF0 == 0x80, payload.count <= 8 else { return nil }
      return payload.reduce(0) { $0 << 8 | UInt64($1) }
    }
  }
}

extension PropertyListValue: CustomStringConvertible {
  /// A short form that shows the types: text in quotes, dates as in `!date`, data by its size.
  public var description: String {
    switch self {
    case .string(let text): "\"\(text)\""
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .real(let value): "\(value)"
    case .single(let value): "\(value)"
    case .int(let value): "\(value)"
    case .long(let value): "\(value)"
    case .set(let values): values.strings.description
    case .date(let date): YAMLDate.text(date)
    case .data(let bytes): "data (\(bytes.count) bytes)"
    case .array(let values): "[" + values.map(\.description).joined(separator: ", ") + "]"
    case .dictionary(let values):
      "{" + values.sorted().map { "\($0.key): \($0.value)" }.joined(separator: ", ") + "}"
    case .unknown(.null): "null"
    case .unknown(let opaque): opaque.keyedArchiveReference.map { "reference \($0)" } ?? "unknown value"
    }
  }
}

extension PropertyListValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }

  public init(booleanLiteral value: Bool) { self = .boolean(value) }

  public init(integerLiteral value: Int64) { self = .integer(value) }

  public init(floatLiteral value: Double) { self = .real(value) }

  public init(arrayLiteral elements: PropertyListValue...) { self = .array(elements) }

  public init(dictionaryLiteral elements: (String, PropertyListValue)...) {
    self = .dictionary(PropertyListDictionary(elements))
  }
}

extension PropertyListValue: ExpressibleByStringInterpolation {}

extension PropertyListValue {
  /// The most levels of nesting in a file: deeper nesting would exhaust the stack.
  static let depthLimit = 200

  /// Whether both have the same type, or one of them has no size or is an array; see ``matches(_:)``.
  package func isOfType(like other: PropertyListValue) -> Bool {
    switch (self, other) {
    case (.integer, .int), (.integer, .long), (.int, .integer), (.long, .integer), (.array, .set),
      (.set, .array):
      true
    default: typeName == other.typeName
    }
  }

  /// Whether it fits, or a value in it. The strings of a set are values in it.
  package func contains(where fits: (PropertyListValue) throws -> Bool) rethrows -> Bool {
    if try fits(self) { return true }
    return switch self {
    case .array(let values): try values.contains { try $0.contains(where: fits) }
    case .set(let values): try values.strings.contains { try fits(.string($0)) }
    case .dictionary(let values): try values.values.contains { try $0.contains(where: fits) }
    default: false
    }
  }

  /// The number of an integer of any type; nil for other values, and above `Int64.max`.
  package var anyInteger: Int64? {
    switch self {
    case .integer(let number), .long(let number): number
    case .int(let number): Int64(number)
    default: nil
    }
  }
}

/// Different strings without an order, as Android's settings have them.
public struct StringSet: Hashable, Sendable, ExpressibleByArrayLiteral {
  /// Sorted.
  private let texts: [ExactText]

  /// Of equal strings one remains.
  public init(_ strings: some Sequence<String>) { texts = Set(strings.map { ExactText($0) }).sorted() }

  public init(arrayLiteral elements: String...) { self.init(elements) }

  /// Nil when an element is not a string, or occurs twice.
  package init?(array: [PropertyListValue]) {
    var strings: [String] = []
    for case .string(let text) in array { strings.append(text) }
    self.init(strings)
    guard strings.count == array.count, texts.count == array.count else { return nil }
  }

  /// The strings in the order of their scalars.
  public var strings: [String] { texts.map(\.text) }
}

/// Values by key, as in a property list: keys with different scalars differ even if Unicode considers them equal.
public struct PropertyListDictionary: Hashable, Sendable {
  /// A key with its value.
  public typealias Element = (key: String, value: PropertyListValue)

  private var storage: [ExactText: PropertyListValue] = [:]

  /// An empty dictionary.
  public init() {}

  /// Of pairs with the same key the last counts.
  public init(_ pairs: some Sequence<(String, PropertyListValue)>) {
    for (key, value) in pairs { storage[ExactText(key)] = value }
  }

  private init(storage: [ExactText: PropertyListValue]) { self.storage = storage }

  /// The number of pairs.
  public var count: Int { storage.count }

  /// Whether there are no pairs.
  public var isEmpty: Bool { storage.isEmpty }

  /// The keys, which compare exactly.
  package var keys: some Collection<ExactText> { storage.keys }

  package var values: some Collection<PropertyListValue> { storage.values }

  /// The value of a key; nil when there is none.
  public subscript(_ key: String) -> PropertyListValue? {
    get { storage[ExactText(key)] }
    set { storage[ExactText(key)] = newValue }
  }

  package subscript(_ key: ExactText) -> PropertyListValue? {
    get { storage[key] }
    set { storage[key] = newValue }
  }

  mutating func reserveCapacity(_ count: Int) { storage.reserveCapacity(count) }

  /// Sets a key's value and returns the old one.
  @discardableResult
  public mutating func updateValue(_ value: PropertyListValue, forKey key: String) -> PropertyListValue? {
    storage.updateValue(value, forKey: ExactText(key))
  }

  /// The same keys with other values.
  public func mapValues(_ change: (PropertyListValue) throws -> PropertyListValue) rethrows -> Self {
    Self(storage: try storage.mapValues(change))
  }

  /// The results by key, without nil, in a Swift dictionary, which has one of the keys that Unicode considers equal.
  public func compactMapValues<T>(_ change: (PropertyListValue) throws -> T?) rethrows -> [String: T] {
    try reduce(into: [:]) { result, pair in
      if let value = try change(pair.value) { result[pair.key] = value }
    }
  }

  /// The pairs that fit.
  public func filter(_ fits: (Element) throws -> Bool) rethrows -> Self {
    Self(storage: try storage.filter { try fits(($0.key.text, $0.value)) })
  }

  /// Adds the pairs of another dictionary; the closure chooses between two values of one key.
  public mutating func merge(
    _ other: Self, uniquingKeysWith choose: (PropertyListValue, PropertyListValue) throws -> PropertyListValue
  ) rethrows {
    try storage.merge(other.storage, uniquingKeysWith: choose)
  }

  /// The pairs of both dictionaries; the closure chooses between two values of one key.
  public func merging(
    _ other: Self, uniquingKeysWith choose: (PropertyListValue, PropertyListValue) throws -> PropertyListValue
  ) rethrows -> Self {
    var result = self
    try result.merge(other, uniquingKeysWith: choose)
    return result
  }

  /// The pairs in the order of their keys' scalars.
  public func sorted() -> [Element] {
    let pairs = Array(storage)
    // Sorts indexes by keys in one buffer: moving and comparing the pairs themselves would count references.
    var keys: [UInt8] = []
    var ends = [0]
    ends.reserveCapacity(pairs.count + 1)
    for pair in pairs {
      keys.append(contentsOf: pair.key.text.utf8)
      ends.append(keys.count)
    }
    var order = Array(0..<pairs.count)
    keys.withUnsafeBytes { bytes in
      order.sort { left, right in
        guard let start = bytes.baseAddress else { return false }
        let (first, second) = (ends[left + 1] - ends[left], ends[right + 1] - ends[right])
        let order = memcmp(start + ends[left], start + ends[right], Swift.min(first, second))
        return order == 0 ? first < second : order < 0
      }
    }
    return order.map { (pairs[$0].key.text, pairs[$0].value) }
  }

  /// The keys whose values differ between both, sorted.
  package func differingKeys(
    from other: Self, isSame: (PropertyListValue, PropertyListValue) -> Bool = { $0 == $1 }
  ) -> [ExactText] {
    let own = storage.filter { key, value in other.storage[key].map { !isSame(value, $0) } ?? true }.keys
    return (Array(own) + other.storage.keys.filter { storage[$0] == nil }).sorted()
  }
}

extension PropertyListDictionary: Sequence {
  /// The pairs, in any order.
  public func makeIterator() -> some IteratorProtocol<Element> {
    storage.lazy.map { (key: $0.key.text, value: $0.value) }.makeIterator()
  }

  public var underestimatedCount: Int { storage.count }
}

extension PropertyListDictionary: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, PropertyListValue)...) { self.init(elements) }
}
