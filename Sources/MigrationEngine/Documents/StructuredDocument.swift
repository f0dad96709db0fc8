import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// A change of a document, independent of its format.
protocol DocumentRule: Sendable {
  /// - Parameter what: the document in messages: ``the setting `state` ``.
  /// - Returns: notes.
  func apply<Value>(to edit: inout DocumentEdit<Value>, of what: String) throws -> [String]
}

/// The name of a document.
struct DocumentName {
  /// The setting that contains it; nil for a file.
  var key: String?
  /// For messages: ``the setting `state` ``.
  let text: String
  /// Hides secrets in messages.
  let redactor: Redactor

  init(setting key: String, _ redactor: Redactor) {
    (self.key, text, self.redactor) = (key, "the setting `\(key)`", redactor)
  }

  init(file: ContainerPath, _ redactor: Redactor) { (text, self.redactor) = ("`\(file)`", redactor) }
}

/// A JSON document or a property list, written in its own format.
enum StructuredDocument: Sendable {
  case json(JSONDocument)
  case propertyList(PropertyListDocument)

  /// Reads a file's content.
  ///
  /// - Throws: `DrydockError` with code `malformed`.
  init(bytes: [UInt8]) throws {
    if PropertyListDocument.isBegun(by: bytes) {
      self = .propertyList(try PropertyListDocument(bytes: bytes))
    } else {
      self = .json(try JSONDocument(bytes: bytes))
    }
  }

  /// The file's content.
  func encoded() throws -> [UInt8] {
    switch self {
    case .json(let document): document.bytes
    case .propertyList(let document): try document.encoded()
    }
  }

  mutating func apply(
    _ rule: any DocumentRule, of name: DocumentName
  ) throws -> (notes: [String], changes: [DocumentChange]) {
    switch self {
    case .json(var document):
      var edit = DocumentEdit(document.value, of: name)
      let notes = try rule.apply(to: &edit, of: name.text)
      document.value = edit.value
      self = .json(document)
      return (notes, edit.changes)
    case .propertyList(var document):
      var edit = DocumentEdit(document.value, of: name)
      var notes = try rule.apply(to: &edit, of: name.text)
      if document.format.rounds(edit.value), !document.format.rounds(document.value) {
        notes.append("\(name.text): the file is XML, which keeps whole seconds only")
      }
      document.value = edit.value
      self = .propertyList(document)
      return (notes, edit.changes)
    }
  }
}

/// The document that a setting holds: a dictionary or array, or JSON or a property list as text or data.
struct SettingDocument {
  private enum Form { case value, text, data }

  var document: StructuredDocument
  private let form: Form

  /// - Throws: ``StepFailure`` when the setting is not a document.
  init(_ value: PropertyListValue, key: String) throws {
    do {
      switch value {
      case .dictionary, .array:
        (document, form) = (.propertyList(PropertyListDocument(format: .binary, value: value)), .value)
      case .string(let text): (document, form) = (try StructuredDocument(bytes: Array(text.utf8)), .text)
      case .data(let bytes): (document, form) = (try StructuredDocument(bytes: bytes), .data)
      default:
        throw StepFailure(
          "the setting `\(key)` is \(value.nounPhrase): neither a dictionary, nor an array, nor JSON")
      }
    } catch let error as DrydockError {
      throw StepFailure("the setting `\(key)`, \(value.nounPhrase): \(error.message)")
    }
  }

  /// The setting, with its previous type.
  func value() throws -> PropertyListValue {
    if form == .value, case .propertyList(let document) = document { return document.value }
    let bytes = try document.encoded()
    return form == .data ? .data(bytes) : .string(String(decoding: bytes, as: UTF8.self))
  }
}

/// Changes inside one value, each recorded so that it can be reverted separately.
struct DocumentEdit<Value: StructuredValue> {
  private(set) var value: Value
  private(set) var changes: [DocumentChange] = []
  private let name: DocumentName

  init(_ value: Value, of name: DocumentName) { (self.value, self.name) = (value, name) }

  /// A value in a message. It is hidden when one name on its path suggests a secret.
  func shown(_ value: Value, at pointer: JSONPointer) -> String {
    value.shown(name.redactor, names: [name.key ?? ""] + pointer.tokens)
  }

  /// Adds a member or an element; an existing member is replaced.
  mutating func add(_ new: Value, at pointer: JSONPointer) throws {
    if pointer.tokens.isEmpty { return try replace(pointer, with: new) }
    var change = DocumentChange(pointer: pointer.description, after: new.stored)
    try value.change(pointer) { container, place in
      switch (place, container.shape) {
      case (.element(let index), .array(let count)):
        guard index <= count else { throw StepFailure("`\(pointer)` is beyond the array's end") }
        change.pointer = JSONPointer(tokens: pointer.tokens.dropLast() + [String(index)]).description
        container.insert(new, at: place, order: nil)
      default:
        change.before = container[place]?.stored
        container[place] = new
      }
    }
    changes.append(change)
  }

  mutating func replace(_ pointer: JSONPointer, with new: Value) throws {
    let old = try present(pointer)
    try value.set(new, at: pointer)
    changes.append(.init(pointer: pointer.description, before: old.stored, after: new.stored))
  }

  /// Removes an existing value.
  @discardableResult
  mutating func remove(_ pointer: JSONPointer) throws -> Value {
    let old = try present(pointer)
    let order = try take(pointer)
    changes.append(.init(pointer: pointer.description, order: order, before: old.stored))
    return old
  }

  /// Moves an existing value; a member at the target is replaced.
  mutating func move(_ from: JSONPointer, to pointer: JSONPointer) throws {
    let old = try present(from)
    if from == pointer { return }
    let order = try take(from)
    try add(old, at: pointer)
    // A revert moves the present value.
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
    guard !pointer.tokens.isEmpty else { throw StepFailure("the whole value cannot be removed") }
    var order: Int?
    try value.change(pointer) { container, place in
      order = container.order(of: place)
      container[place] = nil
    }
    return order
  }

  private func present(_ pointer: JSONPointer) throws -> Value {
    if let present = value[pointer] { return present }
    // Throws a more precise error when the parent is missing.
    if !pointer.tokens.isEmpty {
      var copy = value
      try copy.change(pointer) { _, _ in }
    }
    throw StepFailure("`\(pointer)` does not exist")
  }

  /// Reverts one change, when the value still is what it wrote.
  ///
  /// - Returns: a note when it is not, and nothing was done.
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
        return "`\(pointer)` is not what the step wrote: left unchanged"
      }
      if let before { try value.set(before, at: pointer) } else { _ = try take(pointer) }
    case (let before?, nil): return try putBack(before, at: pointer, order: change.order)
    case (nil, nil): break
    }
    return nil
  }

  /// Newer data is moved back, too.
  private mutating func moveBack(
    _ pointer: JSONPointer, to from: JSONPointer, order: Int?, replaced: Value?
  ) throws -> String? {
    guard let now = value[pointer] else { return "`\(pointer)` does not exist: nothing to move back" }
    let saved = value
    let place = try take(pointer)
    if let replaced { _ = try putBack(replaced, at: pointer, order: place) }
    guard let note = try putBack(now, at: from, order: order) else { return nil }
    value = saved
    return note
  }

  private mutating func putBack(_ old: Value, at pointer: JSONPointer, order: Int?) throws -> String? {
    guard let last = pointer.tokens.last else { return "the whole value exists: left unchanged" }
    let above = JSONPointer(tokens: pointer.tokens.dropLast())
    switch value[above]?.shape {
    case .array(let count)?:
      guard let index = JSONPointer.index(last) else {
        return "`\(pointer)` is not an element: left unchanged"
      }
      try value.change(pointer) { container, _ in
        container.insert(old, at: .element(min(index, count)), order: nil)
      }
    case .dictionary?:
      guard value[pointer] == nil else { return "`\(pointer)` exists again: left unchanged" }
      try value.change(pointer) { container, place in container.insert(old, at: place, order: order) }
    default: return "its parent `\(above)` does not exist: left unchanged"
    }
    return nil
  }

  private mutating func unwrap(_ key: String) -> String? {
    guard let inner = value[.member(key)] else { return "`/\(key)` does not exist: left unchanged" }
    var rest = value
    rest[.member(key)] = nil
    guard rest.matches(Value.empty) else { return "there are other members beside `/\(key)`: left unchanged" }
    value = inner
    return nil
  }
}

extension StructuredValue {
  /// A dictionary without members.
  fileprivate static var empty: Self {
    var value = Self(key: "", value: Self(integer: 0))
    value[.member("")] = nil
    return value
  }
}

/// One change inside a value.
struct DocumentChange: Sendable, Codable, Equatable {
  var pointer: String
  /// Where it was before, when it was moved.
  var from: String?
  /// The key that the whole value was wrapped in.
  var wrapped: String?
  /// The index of a removed member.
  var order: Int?
  /// The value before and after; nil when it was or is absent, and for a moved value.
  var before, after: String?
}

extension StagedContainer {
  /// Changes a JSON file or a property list, in its own format.
  func changeDocument(
    at path: ContainerPath, _ rule: any DocumentRule
  ) throws -> (notes: [String], changes: [DocumentChange]) {
    let bytes = try read(path)
    var document: StructuredDocument
    do {
      document = try StructuredDocument(bytes: bytes)
    } catch var error as DrydockError where error.path == nil {
      error.path = path.description
      throw error
    }
    let result = try document.apply(rule, of: DocumentName(file: path, redactor))
    let changed = try document.encoded()
    // An unchanged file keeps its time.
    if changed != bytes { try write(changed, to: path) }
    return result
  }
}
