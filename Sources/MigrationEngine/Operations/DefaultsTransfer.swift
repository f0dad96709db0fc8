import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// `defaults.move`: moves settings from one settings file to another.
struct MoveDefaults: MigrationOperation {
  static let name = "defaults.move"
  static let keys = DefaultsTransfer.keys

  let transfer: DefaultsTransfer

  var reversal: Reversal { transfer.namesKeys ? .byArguments : .byDownValues }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    try transfer.apply(to: stage, moving: true, &recorded)
  }

  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    try transfer.moveBack(on: stage, recorded)
  }
}

extension MoveDefaults {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try DefaultsTransfer(reading: reader)
  }
}

/// `defaults.copy`: copies settings from one settings file to another, or within one to other names.
struct CopyDefaults: MigrationOperation {
  static let name = "defaults.copy"
  static let keys = DefaultsTransfer.keys

  let transfer: DefaultsTransfer

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    try transfer.apply(to: stage, moving: false, &recorded)
  }
}

extension CopyDefaults {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try DefaultsTransfer(reading: reader)
  }
}

/// The arguments of `defaults.move` and `defaults.copy`: which settings go from one file to another, under which names.
struct DefaultsTransfer: Sendable {
  static let keys = ["from", "to", "keys", "prefix", "all", "if-missing", "if-exists"]

  enum Selection: Sendable {
    case keys([KeyRename])
    case prefix(String)
    case all
  }

  let from, to: DefaultsTarget
  let selection: Selection
  let ifMissing: IfMissing
  let ifExists: IfExists

  /// Settings by name, from suite to suite.
  ///
  /// - Throws: when no suite is named.
  init(
    _ keys: [String], from source: String?, to target: String?, ifMissing: IfMissing, ifExists: IfExists,
    at position: YAMLPosition
  ) throws {
    if source == nil && target == nil { throw position.error("name `from` or `to`: both are the same file") }
    from = DefaultsTarget(suite: source, at: position)
    to = DefaultsTarget(suite: target, at: position)
    selection = .keys(keys.map { KeyRename(old: $0, new: $0, position: position) })
    (self.ifMissing, self.ifExists) = (ifMissing, ifExists)
  }

  init(reading reader: YAMLReader) throws {
    guard reader["from"] != nil || reader["to"] != nil else {
      throw reader.position.error(
        "\(reader.what) needs `from` or `to`, as in `to: {suite: NAME}`; the other one is the app's own settings"
      )
    }
    from = try DefaultsTarget(reader["from"], "`from`")
    to = try DefaultsTarget(reader["to"], "`to`")
    selection = try Self.selection(reader)
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  private static func selection(_ reader: YAMLReader) throws -> Selection {
    let given = ["keys", "prefix", "all"].compactMap { reader[$0] }
    guard given.count == 1, let node = given.first else {
      throw given.last?.position.error("name one of `keys`, `prefix` and `all: true`, not \(given.count)")
        ?? reader.position.error("\(reader.what) needs `keys`, a `prefix`, or `all: true`")
    }
    if reader["all"] != nil {
      guard try node.boolean("`all`") else { throw node.position.error("`all` is true, or left out") }
      return .all
    }
    if let prefix = try reader.text("prefix") {
      if prefix.isEmpty {
        throw node.position.error("every setting starts with an empty prefix: say `all: true`")
      }
      return .prefix(prefix)
    }
    guard node.mapping != nil else {
      return .keys(try node.texts("`keys`").map { KeyRename(old: $0, new: $0, position: node.position) })
    }
    let renames = try KeyRename.list(node)
    try renames.requireDistinctTargets()
    return .keys(renames)
  }

  /// Whether the arguments name each setting.
  var namesKeys: Bool {
    if case .keys = selection { true } else { false }
  }

  /// Writes the settings at the target, and removes them at the source when they are moved.
  func apply(to stage: StagedContainer, moving: Bool, _ recorded: inout DownValues) throws -> [String] {
    let isOneFile = try from.path(in: stage.container) == to.path(in: stage.container)
    if isOneFile && moving {
      throw StepFailure(message: "`from` and `to` are the same settings file: use defaults.rename")
    }
    var source = try DefaultsEdit(from, stage)
    var target = try DefaultsEdit(to, stage)
    for (old, new) in try pairs(&source) {
      guard let value = try source.source(old, ifMissing) else { continue }
      let isThere = target.values[new].map(value.matches) ?? false
      guard try isThere || target.mayWrite(new, ifExists) else { continue }
      if !isThere { target.values[new] = value }
      if moving { source.values[old] = nil }
    }
    let notes = try target.save(to: stage, &recorded)
    return isOneFile ? source.notes + notes : try source.save(to: stage, &recorded) + notes
  }

  private func pairs(_ source: inout DefaultsEdit) throws -> [(old: String, new: String)] {
    switch selection {
    case .keys(let renames): renames.map { ($0.old, $0.new) }
    case .all: source.values.keys.sorted().map { ($0.text, $0.text) }
    case .prefix(let prefix): try source.keys(withPrefix: prefix, ifMissing).map { ($0, $0) }
    }
  }

  /// Moves the settings back, with what the app wrote to them since.
  func moveBack(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    let (sourcePath, targetPath) = try (from.path(in: stage.container), to.path(in: stage.container))
    var source = try DefaultsEdit(from, stage)
    var target = try DefaultsEdit(to, stage)
    for (old, new) in try moved(recorded, from: sourcePath) {
      guard let value = target.values[new] else {
        target.notes.append("\(target.shown(new)) does not exist: nothing to move back")
        continue
      }
      guard source.values[old] == nil else {
        target.notes.append(
          "\(target.shown(old)) exists again: kept, and \(target.shown(new)) left unchanged")
        continue
      }
      source.values[old] = value
      guard let recorded else {
        target.values[new] = nil
        continue
      }
      // A target that had the same value already was not written.
      if let written = recorded.setting(new, in: targetPath) { target.values[new] = written.before?.value }
    }
    let notes = try source.save(to: stage) + target.save(to: stage)
    if target.values.isEmpty, recorded?.made.contains(targetPath) == true { try stage.remove(targetPath) }
    return notes
  }

  /// The settings that were moved, without those that were skipped or kept.
  private func moved(
    _ recorded: DownValues?, from source: ContainerPath
  ) throws -> [(old: String, new: String)] {
    let gone = recorded?.settings.filter { $0.file == source && $0.after == nil }.map(\.key)
    switch (selection, gone) {
    case (.keys(let renames), let gone?):
      return renames.filter { gone.containsExactly($0.old) }.map { ($0.old, $0.new) }
    case (.keys(let renames), nil): return renames.map { ($0.old, $0.new) }
    case (_, let gone?): return gone.map { ($0, $0) }
    case (_, nil):
      throw StepFailure(
        message: "the names of the moved settings are unknown: the transaction's undo entry was removed")
    }
  }
}
