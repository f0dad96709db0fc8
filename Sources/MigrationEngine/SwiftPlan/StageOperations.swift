import AgeEncryption
import AppContainer
import FileSystem
import Formats

extension MigrationStage {
  /// One operation of a stage: the same that a migration's file names, with the same arguments and defaults.
  ///
  /// It is written by its store and its name, such as `.defaults.rename(["user_name": "username"])` for
  /// `defaults.rename`.
  public struct Operation: Sendable {
    let name: String
    let position: YAMLPosition
    /// What the checksum covers: the name and the arguments. It is part of the history's format: never change it.
    let fingerprint: String
    /// - Throws: `DrydockError` with the place in the source file, for invalid arguments.
    let make: @Sendable (YAMLPosition) throws -> any MigrationOperation

    /// - Parameter arguments: for the fingerprint; nil for an argument that was not given.
    fileprivate init<Made: MigrationOperation>(
      _ arguments: KeyValuePairs<String, StageArgument?>, at position: YAMLPosition,
      _ make: @escaping @Sendable (YAMLPosition) throws -> Made
    ) {
      (name, self.position, self.make) = (Made.name, position, make)
      fingerprint = StageEntry(Made.name, arguments, at: position).fingerprint
    }

    /// An operation by the name and the arguments that a file has for it, where there is no function for it here.
    ///
    /// - Parameters:
    ///   - name: such as `defaults.patch`; an unknown one is an error when the plan is read.
    ///   - arguments: by their names in a file.
    public static func named(
      _ name: String, _ arguments: KeyValuePairs<String, PropertyListValue>,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      Self(
        StageEntry(
          name, arguments.map { ($0.key, .value($0.value)) }, at: YAMLPosition(file, line, column)))
    }

    private init(_ entry: StageEntry) {
      (name, position, fingerprint) = (entry.name, entry.position, entry.fingerprint)
      make = { _ in
        try Operations.decode(
          entry.name, at: entry.position, arguments: entry.node,
          files: MigrationFiles(directory: "", isDirectory: true))
      }
    }

    func step() throws -> MigrationStep { MigrationStep(position: position, operation: try make(position)) }

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
        database, up, down, ifMissing, destructive.map { .text($0) }, at: YAMLPosition(file, line, column)
      ) { position in
        try destructive.map { try DestructiveReason($0, at: position) }
      }
    }

    /// `sql`: statements that destroy data of several tables.
    ///
    /// - Parameter destructive: for each of these tables why its data may be destroyed.
    public static func sql(
      database: String, up: String, down: String? = nil, destructive: KeyValuePairs<String, String>,
      ifMissing: IfMissing = .skip,
      file: StaticString = #fileID, line: Int = #line, column: Int = #column
    ) -> Self {
      let reasons = destructive.map { ($0.key, $0.value) }
      return sql(
        database, up, down, ifMissing, .names(destructive), at: YAMLPosition(file, line, column)
      ) { position in
        try DestructiveReason(reasons.map { ($0.0, $0.1, position) }, at: position)
      }
    }

    private static func sql(
      _ database: String, _ up: String, _ down: String?, _ ifMissing: IfMissing,
      _ destructive: StageArgument?, at position: YAMLPosition,
      _ reason: @escaping @Sendable (YAMLPosition) throws -> DestructiveReason?
    ) -> Self {
      Self(
        [
          "database": .text(database), "up": .text(up), "down": down.map { .text($0) },
          "destructive": destructive, "if-missing": .word(ifMissing),
        ], at: position
      ) { position in
        // The line in the source file that a text starts in is unknown.
        func script(_ text: String, _ part: String) -> SQLScript {
          SQLScript(text: text, file: "\(position): \(part)", firstLine: 1)
        }
        return try RunSQL(
          database: database, position: position, up: script(up, "up"),
          down: down.map { script($0, "down") }, ifMissing: IfNoDatabase(rawValue: ifMissing.rawValue),
          destructive: reason(position), language: .steps)
      }
    }
  }
}

// MARK: Settings

extension MigrationStage.Operation {
  /// The operations on settings.
  public static var defaults: DefaultsOperations { DefaultsOperations() }
}

/// The operations on settings. `suite` is a name under `defaults:` of `drydock.yaml`; the app's own settings without one.
public struct DefaultsOperations: Sendable {
  public typealias Operation = MigrationStage.Operation

  /// `defaults.set`: writes settings.
  public func set(
    _ values: PropertyListDictionary, suite: String? = nil, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      ["values": .value(.dictionary(values)), "suite": .optional(suite), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column)
    ) { SetDefaults(target: DefaultsTarget(suite: suite, at: $0), values: values, ifExists: ifExists) }
  }

  /// `defaults.set-default`: writes settings that are absent.
  public func setDefault(
    _ values: PropertyListDictionary, suite: String? = nil,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      ["values": .value(.dictionary(values)), "suite": .optional(suite)],
      at: YAMLPosition(file, line, column)
    ) { SetDefaultDefaults(target: DefaultsTarget(suite: suite, at: $0), values: values) }
  }

  /// `defaults.rename`: renames settings.
  ///
  /// - Parameter names: old names, each with the new one.
  public func rename(
    _ names: KeyValuePairs<String, String>, suite: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    let pairs = names.map { ($0.key, $0.value) }
    return Operation(
      [
        "keys": .names(names), "suite": .optional(suite), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      try RenameDefaults(
        DefaultsTarget(suite: suite, at: position),
        pairs.map { KeyRename(old: $0.0, new: $0.1, position: position) }, ifMissing: ifMissing,
        ifExists: ifExists)
    }
  }

  /// `defaults.move`: moves settings between suites; the app's own settings where none is named.
  public func move(
    _ keys: [String], from source: String? = nil, to target: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      Self.transfer(keys, source, target, ifMissing, ifExists), at: YAMLPosition(file, line, column)
    ) { position in
      MoveDefaults(
        transfer: try DefaultsTransfer(
          keys, from: source, to: target, ifMissing: ifMissing, ifExists: ifExists, at: position))
    }
  }

  /// `defaults.copy`: copies settings between suites; the app's own settings where none is named.
  public func copy(
    _ keys: [String], from source: String? = nil, to target: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      Self.transfer(keys, source, target, ifMissing, ifExists), at: YAMLPosition(file, line, column)
    ) { position in
      CopyDefaults(
        transfer: try DefaultsTransfer(
          keys, from: source, to: target, ifMissing: ifMissing, ifExists: ifExists, at: position))
    }
  }

  private static func transfer(
    _ keys: [String], _ source: String?, _ target: String?, _ ifMissing: IfMissing, _ ifExists: IfExists
  ) -> KeyValuePairs<String, StageArgument?> {
    [
      "keys": .texts(keys), "from": .suite(source), "to": .suite(target), "if-missing": .word(ifMissing),
      "if-exists": .word(ifExists),
    ]
  }

  /// `defaults.convert` with a type.
  ///
  /// - Parameter to: the new name; the same one when nil.
  public func convert(
    _ key: String, to: String? = nil, type: SettingValueType, suite: String? = nil,
    unmapped: Unmapped = .fail,
    ifMissing: IfMissing = .skip, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "key": .text(key), "to": .optional(to), "type": .word(type), "suite": .optional(suite),
        "unmapped": .word(unmapped), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      ConvertDefaults(
        target: DefaultsTarget(suite: suite, at: position), key: key, to: to ?? key, rule: .type(type),
        unmapped: unmapped, ifMissing: ifMissing, ifExists: ifExists)
    }
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
    let pairs = map.map { (from: $0.key, to: $0.value) }
    return Operation(
      [
        "key": .text(key), "to": .optional(to),
        "map": .pairs(map.map { ($0.key, .value($0.value)) }), "suite": .optional(suite),
        "unmapped": .word(unmapped), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      ConvertDefaults(
        target: DefaultsTarget(suite: suite, at: position), key: key, to: to ?? key,
        rule: .map(try ValueMap(pairs, at: position)), unmapped: unmapped, ifMissing: ifMissing,
        ifExists: ifExists)
    }
  }

  /// `defaults.delete`: removes settings by name.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    _ keys: [String], destructive: String, suite: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "keys": .texts(keys), "destructive": .text(destructive), "suite": .optional(suite),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      try DeleteDefaults(
        DefaultsTarget(suite: suite, at: position), names: keys, prefix: nil, ifMissing: ifMissing,
        reason: DestructiveReason(destructive, at: position), at: position)
    }
  }

  /// `defaults.delete`: removes all settings that start with a prefix.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    prefix: String, destructive: String, suite: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "prefix": .text(prefix), "destructive": .text(destructive), "suite": .optional(suite),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      try DeleteDefaults(
        DefaultsTarget(suite: suite, at: position), names: [], prefix: prefix, ifMissing: ifMissing,
        reason: DestructiveReason(destructive, at: position), at: position)
    }
  }
}

// MARK: The vault

extension MigrationStage.Operation {
  /// The operations on the vault; each needs the device key.
  public static var vault: VaultOperations { VaultOperations() }
}

/// The operations on the vault.
public struct VaultOperations: Sendable {
  public typealias Operation = MigrationStage.Operation

  /// `vault.move-from-defaults`: moves a setting into the vault.
  public func moveFromDefaults(
    _ key: String, service: String, account: String? = nil, accessGroup: String? = nil,
    accessible: VaultAccessibility = .whenUnlocked, suite: String? = nil, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "key": .text(key), "service": .text(service), "account": .optional(account),
        "access-group": .optional(accessGroup), "accessible": .word(accessible),
        "suite": .optional(suite), "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      MoveDefaultsToVault(
        DefaultsTarget(suite: suite, at: position), key: key, account: account,
        item: VaultItem(
          service: service, accessGroup: accessGroup, accessibility: accessible, value: SecretBytes([])),
        ifMissing: ifMissing, ifExists: ifExists)
    }
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
      [
        "service": .text(service), "account": .optional(account), "to": .pairs(target),
        "if-missing": .word(ifMissing), "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      try RenameVaultItems(
        VaultSelection(service: service, account: account), service: toService.map { .whole($0) },
        account: toAccount.map { .whole($0) }, ifMissing: ifMissing, ifExists: ifExists, at: position)
    }
  }

  /// `vault.set-accessibility`: sets when a device can read the items, and so whether they may leave it.
  public func setAccessibility(
    _ accessible: VaultAccessibility, service: String, account: String? = nil, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "accessible": .word(accessible), "service": .text(service), "account": .optional(account),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column)
    ) { _ in
      SetVaultAccessibility(
        selection: VaultSelection(service: service, account: account), accessibility: accessible,
        ifMissing: ifMissing)
    }
  }

  /// `vault.delete`: removes items.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    service: String, account: String? = nil, destructive: String, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "service": .text(service), "account": .optional(account), "destructive": .text(destructive),
        "if-missing": .word(ifMissing),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      DeleteVaultItems(
        selection: VaultSelection(service: service, account: account), ifMissing: ifMissing,
        reason: try DestructiveReason(destructive, at: position))
    }
  }
}

// MARK: Files

extension MigrationStage.Operation {
  /// The operations on files.
  public static var files: FilesOperations { FilesOperations() }
}

/// The operations on files. A database is handled with its sidecars and external data.
public struct FilesOperations: Sendable {
  public typealias Operation = MigrationStage.Operation

  /// `files.move`: moves a file, a directory or a database.
  public func move(
    from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "from": .path(source), "to": .path(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      MoveFiles(
        transfer: try PathTransfer(from: source, to: target, at: position), ifMissing: ifMissing,
        ifExists: ifExists)
    }
  }

  /// `files.copy`: copies a file, a directory or a database.
  public func copy(
    from source: ContainerPath, to target: ContainerPath, ifMissing: IfMissing = .skip,
    ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      [
        "from": .path(source), "to": .path(target), "if-missing": .word(ifMissing),
        "if-exists": .word(ifExists),
      ], at: YAMLPosition(file, line, column)
    ) { position in
      CopyFiles(
        transfer: try PathTransfer(from: source, to: target, at: position), ifMissing: ifMissing,
        ifExists: ifExists)
    }
  }

  /// `files.create-directory`: creates a directory and its missing parents.
  public func createDirectory(
    _ path: ContainerPath, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      ["path": .path(path), "if-exists": .word(ifExists)], at: YAMLPosition(file, line, column)
    ) { position in
      CreateDirectory(path: try path.notRoot("`path`", at: position), mode: nil, ifExists: ifExists)
    }
  }

  /// `files.write`: writes a file.
  public func write(
    _ path: ContainerPath, text: String, ifExists: IfExists = .fail,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      ["path": .path(path), "text": .text(text), "if-exists": .word(ifExists)],
      at: YAMLPosition(file, line, column)
    ) { position in
      WriteFile(
        path: try path.notRoot("`path`", at: position), content: Array(text.utf8), mode: nil,
        ifExists: ifExists)
    }
  }

  /// `files.set-backup-exclusion`: excludes paths, or all that match a pattern, from backups, or includes them again.
  public func setBackupExclusion(
    _ paths: [String], _ isExcluded: Bool, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      ["path": .texts(paths), "excluded": .value(.boolean(isExcluded)), "if-missing": .word(ifMissing)],
      at: YAMLPosition(file, line, column)
    ) { position in
      let edit = AttributeEdit(
        paths: try ContainerSelection.list(paths, at: position), ifMissing: ifMissing)
      return SetBackupExclusion(edit: edit, isExcluded: isExcluded)
    }
  }

  /// `files.delete`: removes paths, or all that match a pattern such as `Documents/**/*.log`.
  ///
  /// - Parameter destructive: why they may be deleted.
  public func delete(
    _ paths: [String], destructive: String, ifMissing: IfMissing = .skip,
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> Operation {
    Operation(
      ["path": .texts(paths), "destructive": .text(destructive), "if-missing": .word(ifMissing)],
      at: YAMLPosition(file, line, column)
    ) { position in
      DeleteFiles(
        paths: try ContainerSelection.list(paths, at: position), ifMissing: ifMissing,
        reason: try DestructiveReason(destructive, at: position))
    }
  }
}
