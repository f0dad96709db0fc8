import Formats

/// A word of migrations with its arguments, as Swift code gives it.
struct StageEntry: Sendable {
  let name: String
  let arguments: [(key: String, value: StageArgument)]
  let position: YAMLPosition

  init(_ name: String, _ arguments: [(key: String, value: StageArgument)], at position: YAMLPosition) {
    (self.name, self.arguments, self.position) = (name, arguments, position)
  }

  /// Leaves out the arguments that were not given.
  init(_ name: String, _ arguments: KeyValuePairs<String, StageArgument?>, at position: YAMLPosition) {
    self.init(name, arguments.compactMap { pair in pair.value.map { (pair.key, $0) } }, at: position)
  }

  private var mapping: StageArgument { .pairs(arguments.map { (.string($0.key), $0.value) }) }

  var node: YAMLNode { mapping.node(at: position) }

  /// All that a checksum covers.
  var fingerprint: String { name + " " + mapping.fingerprint }

  /// - Throws: `DrydockError` with the place in the source file, as for the same step of a file.
  func step(_ files: MigrationFiles) throws -> MigrationStep {
    try MigrationStep(name, at: position, arguments: node, files: files)
  }

  /// - Throws: as ``step(_:)``.
  func assertion() throws -> Assertion { try Assertion(name, position: position, arguments: node) }
}

extension YAMLPosition {
  /// A place in Swift code: the module and the file, without the directories of the machine that compiled it.
  init(_ file: StaticString, _ line: Int, _ column: Int) {
    self.init(file: "\(file)", line: line, column: column)
  }
}
