import Foundation

/// Values by key, as a property list has them: keys that Unicode takes for equal, but that are not spelled alike, are two.
package struct PropertyListDictionary: Hashable, Sendable {
  /// A key with its value.
  package typealias Element = (key: String, value: PropertyListValue)

  private var storage: [ExactText: PropertyListValue] = [:]

  /// No values.
  package init() {}

  /// Values by key; of a key that is there twice the last value counts.
  package init(_ pairs: some Sequence<(String, PropertyListValue)>) {
    for (key, value) in pairs { storage[ExactText(key)] = value }
  }

  private init(storage: [ExactText: PropertyListValue]) { self.storage = storage }

  /// The number of keys.
  package var count: Int { storage.count }

  /// Whether there is no key.
  package var isEmpty: Bool { storage.isEmpty }

  /// The keys, which compare exactly.
  package var keys: some Collection<ExactText> { storage.keys }

  /// The values.
  package var values: some Collection<PropertyListValue> { storage.values }

  /// The value of a key.
  package subscript(_ key: String) -> PropertyListValue? {
    get { storage[ExactText(key)] }
    set { storage[ExactText(key)] = newValue }
  }

  /// The value of a key.
  package subscript(_ key: ExactText) -> PropertyListValue? {
    get { storage[key] }
    set { storage[key] = newValue }
  }

  /// Makes place for so many keys.
  mutating func reserveCapacity(_ count: Int) { storage.reserveCapacity(count) }

  /// Sets a key's value.
  ///
  /// - Returns: the one that it had.
  @discardableResult
  package mutating func updateValue(_ value: PropertyListValue, forKey key: String) -> PropertyListValue? {
    storage.updateValue(value, forKey: ExactText(key))
  }

  /// The same keys with other values.
  package func mapValues(_ change: (PropertyListValue) throws -> PropertyListValue) rethrows -> Self {
    Self(storage: try storage.mapValues(change))
  }

  /// What becomes of the values that become something, in Swift's own dictionary: of keys that Unicode takes for equal it
  /// has one, so that the count may be lower.
  package func compactMapValues<T>(_ change: (PropertyListValue) throws -> T?) rethrows -> [String: T] {
    try reduce(into: [:]) { result, pair in
      if let value = try change(pair.value) { result[pair.key] = value }
    }
  }

  /// The pairs that fit.
  package func filter(_ fits: (Element) throws -> Bool) rethrows -> Self {
    Self(storage: try storage.filter { try fits(($0.key.text, $0.value)) })
  }

  /// Adds the pairs of another one, and asks what counts where both have a key.
  package mutating func merge(
    _ other: Self, uniquingKeysWith choose: (PropertyListValue, PropertyListValue) throws -> PropertyListValue
  ) rethrows {
    try storage.merge(other.storage, uniquingKeysWith: choose)
  }

  /// This one with the pairs of another one.
  package func merging(
    _ other: Self, uniquingKeysWith choose: (PropertyListValue, PropertyListValue) throws -> PropertyListValue
  ) rethrows -> Self {
    var result = self
    try result.merge(other, uniquingKeysWith: choose)
    return result
  }

  /// The pairs in the order of their keys' scalars.
  package func sorted() -> [Element] {
    let pairs = Array(storage)
    // Numbers are sorted, by keys that lie in one buffer: moving and comparing the pairs counts references each time.
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

  /// The keys whose values are not the same in both, sorted.
  package func differingKeys(
    from other: Self, isSame: (PropertyListValue, PropertyListValue) -> Bool = { $0 == $1 }
  ) -> [ExactText] {
    let own = storage.filter { key, value in other.storage[key].map { !isSame(value, $0) } ?? true }.keys
    return (Array(own) + other.storage.keys.filter { storage[$0] == nil }).sorted()
  }
}

extension PropertyListDictionary: Sequence {
  /// Goes over the pairs in no order.
  package struct Iterator: IteratorProtocol {
    fileprivate var rest: [ExactText: PropertyListValue].Iterator

    /// The next pair.
    package mutating func next() -> Element? { rest.next().map { ($0.key.text, $0.value) } }
  }

  /// See `Sequence`.
  package func makeIterator() -> Iterator { Iterator(rest: storage.makeIterator()) }

  /// See `Sequence`.
  package var underestimatedCount: Int { storage.count }
}

extension PropertyListDictionary: ExpressibleByDictionaryLiteral {
  /// A key that is there twice has the value that comes last.
  package init(dictionaryLiteral elements: (String, PropertyListValue)...) { self.init(elements) }
}
