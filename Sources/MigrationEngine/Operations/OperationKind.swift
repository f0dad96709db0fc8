import AppContainer
import AppStores
import DrydockErrors
import FileSystem
import Formats

/// An operation that migrations can name: its declaration, from which come its decoder, its section in the guide, and the
/// test of its example.
struct OperationKind: Sendable {
  let name: String
  /// What it does.
  let summary: String
  /// Its arguments with what they are; nil where the guide explains it elsewhere, as for `if-exists`. Several names may
  /// have one explanation.
  let arguments: [(key: String, value: String?)]
  /// Nil when text cannot say what it works on, such as a Core Data store.
  let example: OperationExample?
  private let decode: @Sendable (YAMLReader, MigrationFiles) throws -> any MigrationAction

  /// An operation that is made of the values of its arguments.
  ///
  /// - Parameter destroysData: whether a step must say why, with `destructive`.
  init<each Value: Sendable>(
    _ name: String, _ summary: String, _ arguments: repeat Argument<each Value>, destroysData: Bool = false,
    example: OperationExample? = nil,
    make: @escaping @Sendable (repeat each Value) throws -> any MigrationAction
  ) {
    var explained: [(key: String, value: String?)] = []
    for argument in repeat each arguments { explained += argument.names }
    if destroysData { explained.append(("destructive", "required")) }
    (self.name, self.summary, self.arguments, self.example) = (name, summary, explained, example)
    decode = { [arguments = (repeat each arguments)] reader, files in
      let action = try make(repeat (each arguments).read(reader, files))
      if destroysData { try reader.requireReason() }
      return action
    }
  }

  /// The names of its arguments.
  var keys: [String] { arguments.flatMap { $0.key.split(separator: ", ").map(String.init) } }

  /// - Throws: `DrydockError` for invalid arguments.
  func action(_ arguments: YAMLNode, files: MigrationFiles) throws -> any MigrationAction {
    try decode(YAMLReader(arguments, what: name, keys: keys), files)
  }
}

/// The arguments of a step, and a container before and after it, in YAML: `settings`, those of the suite `group`, `files` by path,
/// `vault` by account, a database of the statements `sql`, and afterwards `rows`, the result of a query.
struct OperationExample: Sendable {
  let before, step, after: String
}

/// An argument of an operation: its name, its type, and what it is; or several that have one value together.
struct Argument<Value: Sendable>: Sendable {
  /// As in ``OperationKind/arguments``.
  private(set) var names: [(key: String, value: String?)]
  let read: @Sendable (YAMLReader, MigrationFiles) throws -> Value

  /// Arguments that are read together.
  ///
  /// - Parameter common: more names, which the guide explains once for all operations.
  init(
    _ names: KeyValuePairs<String, String?>, common: [String] = [],
    read: @escaping @Sendable (YAMLReader, MigrationFiles) throws -> Value
  ) {
    (self.names, self.read) = (names + common.map { ($0, nil) }, read)
  }

  /// A required argument.
  ///
  /// - Parameter what: what it is, in the guide; nothing where the name says it.
  init(_ name: String, _ what: String? = nil) where Value: ArgumentValue {
    self.init([name: what.map { "required: \($0)" } ?? "required"]) { reader, _ in
      try Value(reader.required(name), name, of: reader)
    }
  }

  /// An argument that may be left out.
  init<Given: ArgumentValue>(_ name: String, _ what: String) where Value == Given? {
    self.init([name: what]) { reader, _ in
      try reader[name].map { try Given($0, name, of: reader) }
    }
  }

  /// The same for a value that a function reads.
  init<Given>(
    _ name: String, _ what: String, ifGiven read: @escaping @Sendable (YAMLNode) throws -> Given
  ) where Value == Given? {
    self.init([name: what]) { reader, _ in try reader[name].map(read) }
  }

  /// The same with a default.
  ///
  /// - Parameter what: nil for an argument of many operations, with the same default in all.
  init(_ name: String, _ what: String? = nil, default value: Value) where Value: ArgumentValue {
    self.init([name: what]) { reader, _ in
      try reader[name].map { try Value($0, name, of: reader) } ?? value
    }
  }

  /// The same argument of an operation that comes later in the guide.
  var explainedBefore: Argument {
    var argument = self
    argument.names = names.map { ($0.key, nil) }
    return argument
  }
}

/// A type that an argument can have.
protocol ArgumentValue: Sendable {
  /// - Throws: `DrydockError` with the node's place when it has another type.
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws
}

extension ArgumentValue where Self: RawRepresentable & CaseIterable, RawValue == String {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws {
    guard let choice: Self = try reader.choice(name) else {
      throw reader.position.error("\(reader.what) needs the key `\(name)`")
    }
    self = choice
  }
}

extension IfMissing: ArgumentValue {}
extension IfExists: ArgumentValue {}
extension ProtectionClass: ArgumentValue {}
extension VaultItem.Accessibility: ArgumentValue {}

extension YAMLNode: ArgumentValue {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) { self = node }
}

extension String: ArgumentValue {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws { self = try node.text("`\(name)`") }
}

extension Bool: ArgumentValue {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws {
    self = try node.boolean("`\(name)`")
  }
}

extension ContainerPath: ArgumentValue {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws {
    self = try node.containerPath("`\(name)`")
  }
}

extension PropertyListValue: ArgumentValue {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws { self = try node.propertyListValue() }
}

extension PropertyListDictionary: ArgumentValue {
  init(_ node: YAMLNode, _ name: String, of reader: YAMLReader) throws {
    self = try node.pairs("`\(name)`").propertyListValues()
  }
}

extension YAMLReader {
  func ifMissing() throws -> IfMissing { try choice("if-missing") ?? .skip }

  func ifExists() throws -> IfExists { try choice("if-exists") ?? .fail }

  /// - Throws: `DrydockError` without the reason that a destructive operation requires.
  func requireReason() throws {
    guard let node = self["destructive"] else {
      throw position.error("\(what) destroys data: say why with `destructive: \"…\"`")
    }
    _ = try DestructiveReason(node.text("`destructive`"), at: node.position)
  }

  /// The only one of these keys that is given.
  ///
  /// - Throws: `DrydockError` when none or several are given.
  func only(_ keys: [String], needs: String) throws -> (key: String, node: YAMLNode) {
    let given = keys.compactMap { key in self[key].map { (key: key, node: $0) } }
    guard let first = given.first else { throw position.error("\(what) needs \(needs)") }
    if given.count > 1 {
      throw given[1].node.position.error("name either `\(first.key)` or `\(given[1].key)`, not both")
    }
    return first
  }
}

extension YAMLNode {
  /// The argument `mode`: permission bits in octal.
  func mode() throws -> UInt16 {
    let digits: Substring
    switch scalar?.value {
    case .integer where scalar?.source.hasPrefix("0o") == true: digits = scalar?.source.dropFirst(2) ?? ""
    case .string(let text): digits = text[...]
    default: digits = ""
    }
    guard let mode = UInt16(digits, radix: 8), mode <= 0o7777 else {
      throw position.error("`mode` is octal, such as 0o644, not \(summary)")
    }
    return mode
  }

  /// A path in the container, but not its root.
  func containerPath(_ what: String) throws -> ContainerPath {
    let written = try text(what)
    guard let text = GlobPattern.literal(written) else {
      throw position.error(
        "\(what) is one path, not a pattern; write `\(GlobPattern.escaped(written))` for that exact name")
    }
    do {
      let path = try ContainerPath(text)
      if path.isRoot { throw position.error("\(what) is the container itself: name something in it") }
      return path
    } catch let error as DrydockError where error.code == .badPath {
      throw position.error("\(what): \(error.message)", cause: error)
    }
  }
}
