import Formats

/// Changes inside of one value, each written down so that it can be taken back alone.
struct DocumentEdit<Value: StructuredValue> {
  /// The value now.
  private(set) var value: Value
  /// What was done, in order.
  private(set) var changes: [DocumentChange] = []
  private let name: DocumentName

  init(_ value: Value, of name: DocumentName) { (self.value, self.name) = (value, name) }

  /// A value in a message. One name on the way to it that says secret hides it.
  func shown(_ value: Value, at pointer: JSONPointer) -> String {
    value.shown(name.redactor, names: [name.key ?? ""] + pointer.tokens)
  }

  // MARK: Changing

  /// Adds a member or an element; a member that is there is replaced.
  mutating func add(_ new: Value, at pointer: JSONPointer) throws {
    if pointer.tokens.isEmpty { return try replace(pointer, with: new) }
    var change = DocumentChange(pointer: pointer.description, after: new.stored)
    try value.change(pointer) { container, place in
      switch (place, container.shape) {
      case (.element(let index), .array(let count)):
        guard index <= count else { throw EditFailure("`\(pointer)` is beyond the array's end") }
        change.pointer = JSONPointer(tokens: pointer.tokens.dropLast() + [String(index)]).description
        container.insert(new, at: place, order: nil)
      default:
        change.before = container.part(place)?.stored
        if change.before == nil {
          container.insert(new, at: place, order: nil)
        } else {
          container.replace(place, with: new)
        }
      }
    }
    changes.append(change)
  }

  /// Replaces a value that is there.
  mutating func replace(_ pointer: JSONPointer, with new: Value) throws {
    let old = try present(pointer)
    try value.set(new, at: pointer)
    changes.append(.init(pointer: pointer.description, before: old.stored, after: new.stored))
  }

  /// Removes a value that is there.
  @discardableResult
  mutating func remove(_ pointer: JSONPointer) throws -> Value {
    let old = try present(pointer)
    let order = try take(pointer)
    changes.append(.init(pointer: pointer.description, order: order, before: old.stored))
    return old
  }

  /// Moves a value that is there; a member at the target is replaced.
  mutating func move(_ from: JSONPointer, to pointer: JSONPointer) throws {
    let old = try present(from)
    if from == pointer { return }
    let order = try take(from)
    try add(old, at: pointer)
    // What is moved back later is what is there then.
    guard var change = changes.popLast() else { return }
    (change.from, change.order, change.after) = (from.description, order, nil)
    changes.append(change)
  }

  /// Makes the whole value the only member of a dictionary.
  mutating func wrap(as key: String) {
    value = Value(key: key, value: value)
    changes.append(.init(pointer: "", wrapped: key))
  }

  private mutating func take(_ pointer: JSONPointer) throws -> Int? {
    guard !pointer.tokens.isEmpty else { throw EditFailure("the whole value cannot go") }
    var order: Int?
    try value.change(pointer) { container, place in
      order = container.order(of: place)
      container.remove(place)
    }
    return order
  }

  private func present(_ pointer: JSONPointer) throws -> Value {
    if let present = value[pointer] { return present }
    // Says what is wrong with the way there, where something is.
    if !pointer.tokens.isEmpty {
      var copy = value
      try copy.change(pointer) { _, _ in }
    }
    throw EditFailure("`\(pointer)` is not there")
  }

  // MARK: The way back

  /// Takes one change back, where what it made is still there.
  ///
  /// - Returns: a remark when it is not, and nothing was done.
  mutating func revert(_ change: DocumentChange) throws -> String? {
    let pointer = try JSONPointer(change.pointer)
    if let key = change.wrapped { return unwrap(key) }
    let before = try change.before.map { try Value(stored: $0) }
    let after = try change.after.map { try Value(stored: $0) }
    if let from = change.from {
      return try moveBack(pointer, to: JSONPointer(from), order: change.order, replaced: before)
    }
    let now = value[pointer]
    switch (before, after) {
    case (let before, let after?):
      guard let now, now.matches(after) else {
        return "`\(pointer)` is not what the step wrote: left as it is"
      }
      if let before { try value.set(before, at: pointer) } else { _ = try take(pointer) }
    case (let before?, nil): return try putBack(before, at: pointer, order: change.order)
    case (nil, nil): break
    }
    return nil
  }

  /// Newer data goes the way back, too.
  private mutating func moveBack(
    _ pointer: JSONPointer, to from: JSONPointer, order: Int?, replaced: Value?
  ) throws -> String? {
    guard let now = value[pointer] else { return "`\(pointer)` is not there: nothing to move back" }
    let saved = value
    let place = try take(pointer)
    if let replaced { _ = try putBack(replaced, at: pointer, order: place) }
    guard let remark = try putBack(now, at: from, order: order) else { return nil }
    value = saved
    return remark
  }

  private mutating func putBack(_ old: Value, at pointer: JSONPointer, order: Int?) throws -> String? {
    guard let last = pointer.tokens.last else { return "the whole value is there: left as it is" }
    let above = JSONPointer(tokens: pointer.tokens.dropLast())
    switch value[above]?.shape {
    case .array(let count)?:
      guard let index = JSONPointer.index(last) else {
        return "`\(pointer)` is no element now: left as it is"
      }
      try value.change(pointer) { container, _ in
        container.insert(old, at: .element(min(index, count)), order: nil)
      }
    case .dictionary?:
      guard value[pointer] == nil else { return "`\(pointer)` is there again: left as it is" }
      try value.change(pointer) { container, place in container.insert(old, at: place, order: order) }
    default: return "`\(above)`, where it was, is not there: left as it is"
    }
    return nil
  }

  private mutating func unwrap(_ key: String) -> String? {
    guard let inner = value.part(.member(key)) else { return "`/\(key)` is not there: left as it is" }
    var rest = value
    rest.remove(.member(key))
    guard rest.matches(Value.empty) else { return "there is more beside `/\(key)` now: left as it is" }
    value = inner
    return nil
  }
}

extension StructuredValue {
  /// A dictionary without members.
  fileprivate static var empty: Self {
    var value = Self(key: "", value: Self(integer: 0))
    value.remove(.member(""))
    return value
  }
}

/// One change inside of a value.
struct DocumentChange: Sendable, Codable, Equatable {
  /// Where, as a JSON pointer.
  var pointer: String
  /// Where it was before, when it was moved.
  var from: String?
  /// The key that the whole value was put under.
  var wrapped: String?
  /// Where a member that went stood among the others.
  var order: Int?
  /// What was there, and what was written; nil where there was or is nothing, and for what was moved.
  var before, after: String?
}
