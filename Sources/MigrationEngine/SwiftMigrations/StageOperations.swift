import AppStores
import FileSystem
import Formats

extension PlannedMigration {
  /// One operation of a stage: the same that a migration's file names, with the same arguments and defaults.
  ///
  /// It is written by its store and its name, such as `.defaults.rename(["user_name": "username"])` for
  /// `defaults.rename`.
  public struct Operation: Sendable {
    /// The name and the arguments, which the checksum covers.
    let entry: StageEntry
    /// Makes the statements of `sql`; other operations are decoded from their entry, as in a file.
    private var makeSQL: (@Sendable () throws -> RunSQL)?

    fileprivate init(
      _ name: String, _ arguments: KeyValuePairs<String, StageArgument?>, at position: YAMLPosition
    ) {
      entry = StageEntry(name, arguments, at: position)
    }

    /// - Throws: `DrydockError` with the place in the source file, for invalid arguments.
    func action() throws -> any MigrationAction {
      if let makeSQL { return try makeSQL() }
      return try Operations.decode(
        entry.name, at: entry.position, arguments: entry.node,
        files: MigrationFiles(directory: "", isDirectory: true))
    }

    func step() throws -> MigrationStep { MigrationStep(position: entry.position, operation: try action()) }

    /// An operation by the name and the arguments that a file has for it, where there is no function for it here.
    ///
    /// - Parameters:
    ///   - name: such as `defaults.patch`; an unknown one is an error when the plan is read.
    ///   - arguments: by their names in a file.
    public static func named(
      _ name: String, _ arguments: KeyValuePairs<String, PropertyListValue>,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let arguments = arguments.map { (key: $0.key, value: StageArgument.value($0.value)) }
      return Self(entry: StageEntry(name, arguments, at: YAMLPosition(file, line, column)))
    }

    private init(entry: StageEntry) { self.entry = entry }

    /// `sql`: statements on a database that `drydock.yaml` names, and their down statements.
    ///
    /// - Parameters:
    ///   - destructive: why the statements may destroy data.
    ///   - ifMissing: what to do without the database.
    public static func sql(
      database: String, up: String, down: String? = nil, destructive: String? = nil,
      ifMissing: IfMissing = .skip,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      sql(
        database, up, down: down, destructive: .optional(destructive), ifMissing: ifMissing,
        at: YAMLPosition(file, line, column))
    }

    /// `sql`: statements that destroy data of several tables.
    ///
    /// - Parameter destructive: for each of these tables why its data may be destroyed.
    public static func sql(
      database: String, up: String, down: String? = nil, destructive: KeyValuePairs<String, String>,
      ifMissing: IfMissing = .skip,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      sql(
        database, up, down: down, destructive: .names(destructive), ifMissing: ifMissing,
        at: YAMLPosition(file, line, column))
    }

    private static func sql(
      _ database: String, _ up: String, down: String?, destructive: StageArgument?, ifMissing: IfMissing,
      at position: YAMLPosition
    ) -> Self {
      var operation = Self(
        RunSQL.name,
        [
          "database": .text(database), "up": .text(up), "down": .optional(down), "destructive": destructive,
          "if-missing": .word(ifMissing),
        ], at: position)
      operation.makeSQL = {
        // The line in the source file that a text starts in is unknown.
        func script(_ text: String, _ part: String) -> SQLScript {
          SQLScript(text: text, file: "\(position): \(part)", firstLine: 1)
        }
        return try RunSQL(
          database: database, position: position, up: script(up, "up"),
          down: down.map { script($0, "down") }, ifMissing: IfNoDatabase(rawValue: ifMissing.rawValue),
          destructive: destructive.map { try DestructiveReason($0.node(at: position)) }, language: .steps)
      }
      return operation
    }

    /// The operations on settings.
    public static var defaults: DefaultsOperations { DefaultsOperations() }
    /// The operations on the vault; each needs the device key.
    public static var vault: VaultOperations { VaultOperations() }
    /// The operations on files.
    public static var files: FilesOperations { FilesOperations() }
  }
}

/// The operations on settings. `suite` is a name under `defaults:` of `drydock.yaml`; the app's own settings without one.
public struct DefaultsOperations: Sendable {
  /// A step of a stage.
  public typealias Operation = PlannedMigration.Operation

  /// `defaults.set`: writes settings.
  public func set(
    _ values: PropertyListDictionary, suite: String? = nil, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.set",
      ["values": .value(.dictionary(values)), "suite": .optional(suite), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column))
  }

  /// `defaults.set-default`: writes settings that are absent.
  public func setDefault(
    _ values: PropertyListDictionary, suite: String? = nil,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.set-default", ["values": .value(.dictionary(values)), "suite": .optional(suite)],
      at: YAMLPosition(file, line, column))
  }

  /// `defaults.rename`: renames settings.
  ///
  /// - Parameter names: old names, each with the new one.
  public func rename(
    _ names: KeyValuePairs<String, String>, suite: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.rename",
      [
        "keys": .names(names), "suite": .optional(suite), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.move`: moves settings between suites; the app's own settings where none is named.
  public func move(
    _ keys: [String], from source: String? = nil, to target: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    transfer(
      "defaults.move", keys, from: source, to: target, ifMissing: ifMissing, ifExists: ifExists,
      at: YAMLPosition(file, line, column))
  }

  /// `defaults.copy`: copies settings between suites; the app's own settings where none is named.
  public func copy(
    _ keys: [String], from source: String? = nil, to target: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    transfer(
      "defaults.copy", keys, from: source, to: target, ifMissing: ifMissing, ifExists: ifExists,
      at: YAMLPosition(file, line, column))
  }

  private func transfer(
    _ name: String, _ keys: [String], from source: String?, to target: String?, ifMissing: IfMissing,
    ifExists: IfExists, at position: YAMLPosition
  ) -> Operation {
    Operation(
      name,
      [
        "keys": .texts(keys), "from": .suite(source), "to": .suite(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: position)
  }

  /// `defaults.convert` with a type.
  ///
  /// - Parameter to: the new name; the same one when nil.
  public func convert(
    _ key: String, to: String? = nil, type: SettingValueType, suite: String? = nil,
    unmapped: Unmapped = .fail, ifMissing: IfMissing = .skip, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.convert",
      [
        "key": .text(key), "to": .optional(to), "type": .word(type), "suite": .optional(suite),
        "unmapped": .word(unmapped), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.convert` with a map of values, which are compared with their types.
  ///
  /// - Parameter to: the new name; the same one when nil.
  public func convert(
    _ key: String, to: String? = nil, map: KeyValuePairs<PropertyListValue, PropertyListValue>,
    suite: String? = nil, unmapped: Unmapped = .fail, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.convert",
      [
        "key": .text(key), "to": .optional(to), "map": .pairs(map.map { ($0.key, .value($0.value)) }),
        "suite": .optional(suite), "unmapped": .word(unmapped), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.delete`: removes settings by name.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    _ keys: [String], destructive: String, suite: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.delete",
      [
        "keys": .texts(keys), "destructive": .text(destructive), "suite": .optional(suite),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }

  /// `defaults.delete`: removes all settings that start with a prefix.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    prefix: String, destructive: String, suite: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "defaults.delete",
      [
        "prefix": .text(prefix), "destructive": .text(destructive), "suite": .optional(suite),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }
}

/// The operations on the vault.
public struct VaultOperations: Sendable {
  /// A step of a stage.
  public typealias Operation = PlannedMigration.Operation

  /// `vault.move-from-defaults`: moves a setting into the vault.
  public func moveFromDefaults(
    _ key: String, service: String, account: String? = nil, accessGroup: String? = nil,
    accessible: VaultItem.Accessibility = .whenUnlocked, suite: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "vault.move-from-defaults",
      [
        "key": .text(key), "service": .text(service), "account": .optional(account),
        "access-group": .optional(accessGroup), "accessible": .word(accessible),
        "suite": .optional(suite), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `vault.rename`: renames the items of a service, or the one of an account in it.
  public func rename(
    service: String, account: String? = nil, toService: String? = nil, toAccount: String? = nil,
    ifMissing: IfMissing = .skip, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    let target: [(key: PropertyListValue, value: StageArgument)] =
      [("service", toService), ("account", toAccount)].compactMap { key, text in
        text.map { (.string(key), .text($0)) }
      }
    return Operation(
      "vault.rename",
      [
        "service": .text(service), "account": .optional(account), "to": .pairs(target),
        "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column))
  }

  /// `vault.set-accessibility`: sets when a device can read the items, and so whether they may leave it.
  public func setAccessibility(
    _ accessible: VaultItem.Accessibility, service: String, account: String? = nil,
    ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "vault.set-accessibility",
      [
        "accessible": .word(accessible), "service": .text(service), "account": .optional(account),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }

  /// `vault.delete`: removes items.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    service: String, account: String? = nil, destructive: String, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "vault.delete",
      [
        "service": .text(service), "account": .optional(account), "destructive": .text(destructive),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column))
  }
}

/// The operations on files. A database is handled with its sidecars and external data.
public struct FilesOperations: Sendable {
  /// A step of a stage.
  public typealias Operation = PlannedMigration.Operation

  /// `files.move`: moves a file, a directory or a database.
  public func move(
    from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    transfer(
      "files.move", from: source, to: target, ifMissing: ifMissing, ifExists: ifExists,
      at: YAMLPosition(file, line, column))
  }

  /// `files.copy`: copies a file, a directory or a database.
  public func copy(
    from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    transfer(
      "files.copy", from: source, to: target, ifMissing: ifMissing, ifExists: ifExists,
      at: YAMLPosition(file, line, column))
  }

  private func transfer(
    _ name: String, from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing,
    ifExists: IfExists, at position: YAMLPosition
  ) -> Operation {
    Operation(
      name,
      [
        "from": .path(source), "to": .path(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: position)
  }

  /// `files.create-directory`: creates a directory and its missing parents.
  public func createDirectory(
    _ path: ContainerPath, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.create-directory", ["path": .path(path), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column))
  }

  /// `files.write`: writes a file.
  public func write(
    _ path: ContainerPath, text: String, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.write", ["path": .path(path), "text": .text(text), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column))
  }

  /// `files.set-backup-exclusion`: excludes paths, or all that match a pattern, from backups, or includes them again.
  public func setBackupExclusion(
    _ paths: [String], _ isExcluded: Bool, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.set-backup-exclusion",
      ["path": .texts(paths), "excluded": .value(.boolean(isExcluded)), "if-missing": .word(ifMissing)],
      at: YAMLPosition(file, line, column))
  }

  /// `files.delete`: removes paths, or all that match a pattern such as `Documents/**/*.log`.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    _ paths: [String], destructive: String, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      "files.delete",
      ["path": .texts(paths), "destructive": .text(destructive), "if-missing": .word(ifMissing)],
      at: YAMLPosition(file, line, column))
  }
}
