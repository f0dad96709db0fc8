import Formats

extension MigrationStage {
  /// One operation of a stage: the same that a migration's file names, with the same arguments, defaults and remarks.
  ///
  /// It is written by its store and its word, such as `.defaults.rename(["user_name": "username"])` for
  /// `defaults.rename`.
  package struct Operation: Sendable {
    let entry: StageEntry

    init(_ name: String, _ arguments: KeyValuePairs<String, StageArgument?>, at position: YAMLPosition) {
      entry = StageEntry(name, arguments, at: position)
    }

    /// An operation by the word and the arguments that a file has for it, where there is no function for it here.
    ///
    /// - Parameters:
    ///   - name: such as `defaults.patch`; an unknown one is an error when the plan is read.
    ///   - arguments: by their names in a file.
    package static func named(
      _ name: String, _ arguments: KeyValuePairs<String, PropertyListValue>,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      Self(
        StageEntry(
          name, arguments.map { ($0.key, .value($0.value)) }, at: YAMLPosition(file, line, column)))
    }

    private init(_ entry: StageEntry) { self.entry = entry }

    /// `sql`: statements on a database, which `drydock.yaml` names, and those for the way back.
    ///
    /// - Parameters:
    ///   - destructive: why the statements may destroy data.
    ///   - ifMissing: what to do without the database.
    package static func sql(
      database: String, up: String, down: String? = nil, destructive: String? = nil,
      ifMissing: IfMissing = .skip,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      Self(
        "sql",
        [
          "database": .text(database), "up": .sql(up, part: "up"),
          "down": down.map { .sql($0, part: "down") },
          "destructive": destructive.map { .text($0) }, "if-missing": .word(ifMissing),
        ], at: YAMLPosition(file, line, column))
    }

    /// `sql`: statements that destroy data of several tables.
    ///
    /// - Parameter destructive: for each of these tables why its data may go.
    package static func sql(
      database: String, up: String, down: String? = nil, destructive: KeyValuePairs<String, String>,
      ifMissing: IfMissing = .skip,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      Self(
        "sql",
        [
          "database": .text(database), "up": .sql(up, part: "up"),
          "down": down.map { .sql($0, part: "down") },
          "destructive": .names(destructive), "if-missing": .word(ifMissing),
        ], at: YAMLPosition(file, line, column))
    }
  }
}
