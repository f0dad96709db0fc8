import Formats

extension MigrationStage.Operation {
  /// The operations on settings.
  package static var defaults: DefaultsOperations { DefaultsOperations() }
}

/// The operations on settings, named as in a migration's file. `suite` is a name under `defaults:` of `drydock.yaml`; the
/// app's own settings without one.
package struct DefaultsOperations: Sendable {
  /// What each of them is.
  package typealias Operation = MigrationStage.Operation

  /// `defaults.set`: writes settings.
  package func set(
    _ values: PropertyListDictionary, suite: String? = nil, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.set",
      [
        "values": .value(.dictionary(values)), "suite": suite.map { .text($0) }, "if-exists": .word(ifExists),
      ],
      at: YAMLPosition(file, line, column))
  }

  /// `defaults.set-default`: writes settings that are absent.
  package func setDefault(
    _ values: PropertyListDictionary, suite: String? = nil,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.set-default", ["values": .value(.dictionary(values)), "suite": suite.map { .text($0) }],
      at: YAMLPosition(file, line, column))
  }

  /// `defaults.rename`: gives settings new names.
  ///
  /// - Parameter names: old names, each with the new one.
  package func rename(
    _ names: KeyValuePairs<String, String>, suite: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.rename",
      [
        "keys": .names(names), "suite": suite.map { .text($0) }, "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.move`: moves settings between suites; the app's own settings where none is named.
  package func move(
    _ keys: [String], from source: String? = nil, to target: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.move",
      [
        "keys": .texts(keys), "from": .suite(source), "to": .suite(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.copy`: copies settings between suites; the app's own settings where none is named.
  package func copy(
    _ keys: [String], from source: String? = nil, to target: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.copy",
      [
        "keys": .texts(keys), "from": .suite(source), "to": .suite(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.convert` with a type.
  ///
  /// - Parameter to: the new name; the same one when nil.
  package func convert(
    _ key: String, to: String? = nil, type: ValueType, suite: String? = nil, unmapped: Unmapped = .fail,
    ifMissing: IfMissing = .skip, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.convert",
      [
        "key": .text(key), "to": to.map { .text($0) }, "type": .word(type), "suite": suite.map { .text($0) },
        "unmapped": .word(unmapped), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.convert` with a map of values, which are compared with their types.
  ///
  /// - Parameter to: the new name; the same one when nil.
  package func convert(
    _ key: String, to: String? = nil, map: KeyValuePairs<PropertyListValue, PropertyListValue>,
    suite: String? = nil, unmapped: Unmapped = .fail, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.convert",
      [
        "key": .text(key), "to": to.map { .text($0) },
        "map": .pairs(map.map { ($0.key, .value($0.value)) }), "suite": suite.map { .text($0) },
        "unmapped": .word(unmapped), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.delete`: removes settings by name.
  ///
  /// - Parameter destructive: why they may go.
  package func delete(
    _ keys: [String], destructive: String, suite: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.delete",
      [
        "keys": .texts(keys), "destructive": .text(destructive), "suite": suite.map { .text($0) },
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.delete`: removes all settings whose names start so.
  ///
  /// - Parameter destructive: why they may go.
  package func delete(
    prefix: String, destructive: String, suite: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.delete",
      [
        "prefix": .text(prefix), "destructive": .text(destructive), "suite": suite.map { .text($0) },
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }
}

extension StageArgument {
  /// Where settings come from or go to.
  fileprivate static func suite(_ name: String?) -> StageArgument? {
    name.map { .pairs([("suite", .text($0))]) }
  }
}
