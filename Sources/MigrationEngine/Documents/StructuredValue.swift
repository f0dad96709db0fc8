import AppContainer
import Formats

/// A value with values inside that a JSON pointer can walk: JSON, or what is in a property list.
protocol StructuredValue: Sendable {
  /// What is inside.
  var shape: ValueShape { get }
  /// The value at a place directly inside.
  func part(_ place: ValuePlace) -> Self?
  /// Replaces what is at a place.
  mutating func replace(_ place: ValuePlace, with value: Self)
  /// Adds a member that is not there, or puts an element before the one with the index.
  ///
  /// - Parameter order: where the member stands among the others, for what has an order; at the end when nil.
  mutating func insert(_ value: Self, at place: ValuePlace, order: Int?)
  /// Removes what is at a place.
  mutating func remove(_ place: ValuePlace)
  /// Where a member stands among the others; nil for what has no order.
  func order(of place: ValuePlace) -> Int?
  /// Whether both say the same.
  func matches(_ other: Self) -> Bool

  /// A value of a migration.
  init(_ node: YAMLNode) throws
  /// An integer.
  init(integer: Int64)
  /// A dictionary with one member.
  init(key: String, value: Self)
  /// A value that was stored.
  init(stored: String) throws
  /// The value as records hold it, exactly.
  var stored: String { get }
  /// The value, when it is an integer.
  var integer: Int64? { get }
  /// The value in a message, hidden when it is a secret under one of its names.
  func shown(_ redactor: Redactor, names: [String]) -> String
}

/// What is inside of a value.
enum ValueShape: Equatable {
  case array(count: Int)
  case dictionary
  /// Nothing; with the type's name.
  case single(String)

  /// In words.
  var nounPhrase: String {
    switch self {
    case .array: "an array"
    case .dictionary: "a dictionary"
    case .single(let name): (name == "integer" ? "an " : name == "null" ? "" : "a ") + name
    }
  }
}

/// A place directly inside of a value.
enum ValuePlace: Equatable {
  case member(String)
  case element(Int)
}

extension StructuredValue {
  /// The value that a pointer leads to; nil when there is none.
  subscript(_ pointer: JSONPointer) -> Self? {
    var current = self
    for token in pointer.tokens {
      guard let place = try? current.place(token, of: pointer), let next = current.part(place) else {
        return nil
      }
      current = next
    }
    return current
  }

  /// What a token means in this value. In an array `-` is the place after the last element.
  ///
  /// - Throws: ``EditFailure`` when it means nothing here.
  func place(_ token: String, of pointer: JSONPointer) throws -> ValuePlace {
    switch shape {
    case .dictionary: return .member(token)
    case .array(let count):
      if token == "-" { return .element(count) }
      if let index = JSONPointer.index(token) { return .element(index) }
      throw EditFailure("`\(token)` of `\(pointer)` stands for an element of an array, and is no index")
    case .single:
      throw EditFailure("`\(token)` of `\(pointer)` leads into \(shape.nounPhrase), which has nothing inside")
    }
  }

  /// Changes the value around the place that a pointer leads to.
  mutating func change(
    _ pointer: JSONPointer, from depth: Int = 0, _ body: (inout Self, ValuePlace) throws -> Void
  ) throws {
    let place = try place(pointer.tokens[depth], of: pointer)
    if depth == pointer.tokens.count - 1 { return try body(&self, place) }
    guard var inner = part(place) else {
      throw EditFailure("`\(JSONPointer(tokens: Array(pointer.tokens[...depth])))` is not there")
    }
    try inner.change(pointer, from: depth + 1, body)
    replace(place, with: inner)
  }

  /// Sets a value that is there, or a member that is not.
  mutating func set(_ value: Self, at pointer: JSONPointer) throws {
    if pointer.tokens.isEmpty { return self = value }
    try change(pointer) { container, place in
      if container.part(place) != nil { return container.replace(place, with: value) }
      guard case .member = place else { throw EditFailure("`\(pointer)` is not there") }
      container.insert(value, at: place, order: nil)
    }
  }
}

/// Why a change inside of a value cannot be made.
struct EditFailure: Error {
  let message: String

  init(_ message: String) { self.message = message }
}
