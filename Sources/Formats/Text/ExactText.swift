import Foundation

/// Text that equals other text only when both have the same Unicode scalars. Swift's `String` takes é for e with an
/// accent behind it; to the files and databases of an app they are two.
///
/// As a property wrapper it makes a synthesized comparison of its type exact.
@propertyWrapper
package struct ExactText: Sendable {
  /// The text.
  package var text: String

  /// The text, as a property wrapper.
  package var wrappedValue: String {
    get { text }
    set { text = newValue }
  }

  /// Wraps a text.
  package init(_ text: String) { self.text = text }

  /// Wraps a property.
  package init(wrappedValue: String) { text = wrappedValue }
}

extension ExactText: Hashable, Comparable {
  /// Scalar by scalar.
  package static func == (left: Self, right: Self) -> Bool {
    left.text.utf8.count == right.text.utf8.count && order(left, right) == 0
  }

  /// In the order of their scalars, which is that of their UTF-8.
  package static func < (left: Self, right: Self) -> Bool {
    let order = order(left, right)
    return order == 0 ? left.text.utf8.count < right.text.utf8.count : order < 0
  }

  /// The order of the bytes that both have.
  private static func order(_ left: Self, _ right: Self) -> Int32 {
    left.withBytes { left in
      right.withBytes { right in
        guard let first = left.baseAddress, let second = right.baseAddress else { return 0 }
        return memcmp(first, second, min(left.count, right.count))
      }
    }
  }

  /// Without a copy of the text, which is in contiguous UTF-8 but for some of Apple's.
  private func withBytes<T>(_ body: (UnsafeBufferPointer<UInt8>) -> T) -> T {
    if let result = text.utf8.withContiguousStorageIfAvailable(body) { return result }
    return Array(text.utf8).withUnsafeBufferPointer(body)
  }

  /// See `Hashable`.
  package func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}

extension ExactText: Codable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// As the text alone.
  package init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
  }

  /// As the text alone.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  /// Text in a program.
  package init(stringLiteral value: String) { text = value }

  /// The text.
  package var description: String { text }
}

extension String {
  /// Whether both have the same Unicode scalars.
  package func isExactly(_ other: String) -> Bool { ExactText(self) == ExactText(other) }
}

extension Sequence<String> {
  /// Whether one of the texts has the same Unicode scalars.
  package func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }
}
