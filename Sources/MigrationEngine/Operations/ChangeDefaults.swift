import ContainerTransaction
import FileSystem
import Formats

struct SetDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.set",
      "Writes settings. A setting that already has the value is left unchanged.",
      Argument<PropertyListDictionary>("values", "keys and values"), IfExists.argument,
      DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {theme: light}",
        step: "{values: {theme: sepia, reviewAt: !date 2026-12-01, tags: [a, b]}, if-exists: replace}",
        after: "settings: {theme: sepia, reviewAt: !date 2026-12-01, tags: [a, b]}")
    ) { Self(values: $0, ifExists: $1, target: $2) },
    OperationKind(
      "defaults.set-default",
      "Writes the settings that are absent.",
      Argument<PropertyListDictionary>("values", "keys and values"), DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {theme: sepia}", step: "{values: {theme: light, fontSize: 14}}",
        after: "settings: {theme: sepia, fontSize: 14}")
    ) { Self(values: $0, ifExists: nil, target: $1) },
  ]

  private let values: PropertyListDictionary
  /// Nil when existing settings are kept without a note.
  private let ifExists: IfExists?
  private let target: DefaultsTarget

  var effects: StepEffects { StepEffects(writing: .given) }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for (key, value) in values.sorted() {
      if let existing = edit.values[key], ifExists == nil || existing.matches(value) { continue }
      if try edit.mayWrite(key, ifExists ?? .keep) { edit.values[key] = value }
    }
    return try edit.save(to: stage, &recorded)
  }
}

struct DeleteDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.delete",
      "Deletes settings.",
      Argument(
        [
          "keys": "a list of names, or one name",
          "prefix": "all settings that start with it; one of `keys` and `prefix` is required",
        ], read: Selection.init), IfMissing.argument, DefaultsTarget.argument, destroysData: true,
      example: OperationExample(
        before: "settings: {bookmark: 1, window.x: 2, theme: light}",
        step: "{keys: [bookmark], prefix: window., destructive: the system places windows now}",
        after: "settings: {theme: light}"),
      make: Self.init)
  ]

  private struct Selection {
    let names: [String]
    let prefix: String?

    init(_ reader: YAMLReader, _ files: MigrationFiles) throws {
      guard reader["keys"] != nil || reader["prefix"] != nil else {
        throw reader.position.error("defaults.delete needs `keys` or `prefix`")
      }
      names = try reader.texts("keys") ?? []
      prefix = try reader.text("prefix")
      if let node = reader["prefix"], prefix?.isEmpty == true {
        throw node.position.error("an empty prefix would delete every setting")
      }
    }
  }

  private let selection: Selection
  private let ifMissing: IfMissing
  private let target: DefaultsTarget

  var effects: StepEffects { StepEffects(announcedLoss: .everything) }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for name in selection.names where try edit.source(name, ifMissing) != nil { edit.values[name] = nil }
    if let prefix = selection.prefix {
      for name in try edit.keys(withPrefix: prefix, ifMissing) { edit.values[name] = nil }
    }
    return try edit.save(to: stage, &recorded)
  }
}

struct TransferDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.rename",
      "Renames settings.",
      Argument(["keys": "required: old name: new name"]) { reader, _ in
        try renames(reader.required("keys"), isInOneFile: true)
      }, IfMissing.argument, IfExists.argument, DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {user_name: Ada}", step: "{keys: {user_name: username}}",
        after: "settings: {username: Ada}")
    ) { Self(.rename, ($3, $3), $0, $1, $2) },
    OperationKind(
      "defaults.move",
      "Moves settings from one settings file to another, for example from the app's own to those of an app group.",
      files, settings, IfMissing.argument, IfExists.argument,
      example: OperationExample(
        before: "settings: {theme: dark, size: 14}", step: "{to: {suite: group}, keys: [theme]}",
        after: "{settings: {size: 14}, group: {theme: dark}}")
    ) { Self(.move, $0, $1, $2, $3) },
    OperationKind(
      "defaults.copy",
      "Copies settings. Within one file a setting gets a second name.",
      files, settings, IfMissing.argument, IfExists.argument,
      example: OperationExample(
        before: "settings: {theme: dark}", step: "{to: {suite: group}, keys: {theme: previousTheme}}",
        after: "{settings: {theme: dark}, group: {previousTheme: dark}}")
    ) { Self(.copy, $0, $1, $2, $3) },
  ]

  private static let files = Argument([
    "from, to":
      "the settings files, as `{suite: NAME}` or `{file: PATH}`; at least one is required, the other "
      + "defaults to the app's own settings"
  ]) { reader, _ in
    guard reader["from"] != nil || reader["to"] != nil else {
      throw reader.position.error(
        "\(reader.what) needs `from` or `to`, as in `to: {suite: NAME}`; the other one is the app's own settings"
      )
    }
    return (
      from: try DefaultsTarget(reader["from"], "`from`", at: reader.position),
      to: try DefaultsTarget(reader["to"], "`to`", at: reader.position)
    )
  }

  private static let settings = Argument(
    [
      "keys":
        "a list of names, one name, or old name: new name; one of `keys`, `prefix` and `all` is required",
      "prefix": "all settings that start with it",
      "all": "`true`: all settings of the file",
    ], read: selection)

  private enum Selection: Sendable {
    case keys([(old: String, new: String)])
    case prefix(String)
    case all
  }

  private enum Verb { case rename, move, copy }

  private let verb: Verb
  private let from, to: DefaultsTarget
  private let selection: Selection
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  /// Whether the settings are removed at the source.
  private var isMove: Bool { verb != .copy }
  var effects: StepEffects { StepEffects(writing: isMove ? .conversion : .replacement, databases: .none) }

  private init(
    _ verb: Verb, _ files: (from: DefaultsTarget, to: DefaultsTarget), _ selection: Selection,
    _ ifMissing: IfMissing, _ ifExists: IfExists
  ) {
    (self.verb, self.selection) = (verb, selection)
    (from, to, self.ifMissing, self.ifExists) = (files.from, files.to, ifMissing, ifExists)
  }

  private static func selection(_ reader: YAMLReader, _: MigrationFiles) throws -> Selection {
    let (key, node) = try reader.only(["keys", "prefix", "all"], needs: "`keys`, a `prefix`, or `all: true`")
    switch key {
    case "all":
      guard try node.boolean("`all`") else { throw node.position.error("`all` is true, or left out") }
      return .all
    case "prefix":
      let prefix = try node.text("`prefix`")
      if prefix.isEmpty {
        throw node.position.error("every setting starts with an empty prefix: say `all: true`")
      }
      return .prefix(prefix)
    default:
      if node.mapping != nil { return try renames(node) }
      var seen: Set<ExactText> = []
      return .keys(try node.texts("`keys`").filter { seen.insert(ExactText($0)).inserted }.map { ($0, $0) })
    }
  }

  /// Decodes a mapping from old names to different new ones.
  ///
  /// - Parameter isInOneFile: whether a setting cannot keep its name.
  private static func renames(_ node: YAMLNode, isInOneFile: Bool = false) throws -> Selection {
    var seen: Set<ExactText> = []
    let pairs = try node.pairs("`keys`").pairs.map { pair in
      let old = try pair.textKey("a setting's name")
      let new = try pair.value.text("the new name of `\(old)`")
      guard seen.insert(ExactText(new)).inserted else {
        throw pair.value.position.error("two settings become `\(new)`")
      }
      if isInOneFile, new.isExactly(old) {
        throw pair.value.position.error("`\(old)` is the old and the new name")
      }
      return (old: old, new: new)
    }
    return .keys(pairs)
  }

  /// All values are read before any is written, so that names may be swapped.
  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let (sourcePath, targetPath) = try (from.path(in: stage), to.path(in: stage))
    let isOneFile = sourcePath == targetPath
    if isOneFile && verb == .move {
      throw StepFailure("`from` and `to` are the same settings file: use defaults.rename")
    }
    var source = try DefaultsEdit(from, stage)
    let present = try isOneFile ? source.values : DefaultsEdit(to, stage).values
    var moved: [(old: String, new: String, value: PropertyListValue)] = []
    for (old, new) in try pairs(&source) {
      if let value = try source.source(old, ifMissing) {
        try source.requireTransferable(old)
        moved.append((old, new, value))
        if isMove { source.values[old] = nil }
      } else if present[new] != nil {
        recorded.skipped.append(old)
      }
    }
    // A revert takes what else it finds there for written since.
    recorded.skipped += selected(in: present).filter { key in !moved.contains { $0.new.isExactly(key) } }
    var target = try isOneFile ? source : DefaultsEdit(to, stage)
    for (old, new, value) in moved {
      // A move is done where the value is already there; a rename leaves one of two names only with `if-exists`.
      let isThere = verb != .rename && target.values[new].map(value.matches) ?? false
      if try isThere || target.mayWrite(new, ifExists) {
        if !isThere { target.values[new] = value }
        continue
      }
      recorded.skipped.append(old)
      guard isMove else { continue }
      // The old setting stays when the new one is kept, so that nothing is lost.
      if isOneFile { target.values[old] = value } else { source.values[old] = value }
    }
    let notes = try target.save(to: stage, &recorded)
    return isOneFile ? notes : try source.save(to: stage, &recorded) + notes
  }

  private func pairs(_ source: inout DefaultsEdit) throws -> [(old: String, new: String)] {
    switch selection {
    case .keys(let pairs): pairs
    case .all: source.values.keys.sorted().map { ($0.text, $0.text) }
    case .prefix(let prefix): try source.keys(withPrefix: prefix, ifMissing).map { ($0, $0) }
    }
  }

  /// The settings that a prefix, or `all`, selects; none of those with names of their own.
  private func selected(in values: PropertyListDictionary) -> [String] {
    switch selection {
    case .keys: []
    case .all: values.keys.map(\.text).sorted()
    case .prefix(let prefix): values.keys.map(\.text).filter { $0.utf8.starts(with: prefix.utf8) }.sorted()
    }
  }

  /// Moves the settings back with their present values, also those that were written since, and restores what they had replaced.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    guard isMove else { return try revertCopy(on: stage, PriorValues.required(recorded)) }
    let (sourcePath, targetPath) = try (from.path(in: stage), to.path(in: stage))
    let isOneFile = sourcePath == targetPath
    var target = try DefaultsEdit(to, stage)
    var moved: [(old: String, new: String, value: PropertyListValue)] = []
    var pairs = try movedPairs(recorded, from: sourcePath)
    if let recorded {
      let newer = try newer(than: recorded, in: target.values, stage).filter { key in
        !pairs.contains { $0.new.isExactly(key) }
      }
      if case .all = selection, !recorded.made.contains(targetPath) {
        // What a file had before the step, too, may be of another program.
        target.notes += newer.map { "\(target.shown($0)) was written since: left unchanged" }
      } else {
        pairs += newer.map { ($0, $0) }
      }
    }
    for (old, new) in pairs {
      if let value = target.values[new] {
        moved.append((old, new, value))
      } else if recorded.map({ $0.setting(old, in: sourcePath) != nil }) ?? true {
        target.notes.append("\(target.shown(new)) does not exist: skipped")
      }
    }
    for item in moved { target.values[item.new] = nil }
    var source = try isOneFile ? target : DefaultsEdit(from, stage)
    for (old, new, value) in moved {
      guard source.values[old] == nil else {
        target.notes.append("\(target.shown(old)) exists already: kept, and \(target.shown(new)) too")
        if isOneFile { source.values[new] = value } else { target.values[new] = value }
        continue
      }
      // Another format may have changed the type.
      let written = recorded?.setting(new, in: targetPath)?.after?.value
      let original = recorded?.setting(old, in: sourcePath)?.before?.value
      source.values[old] = !isOneFile && written == value ? original ?? value : value
    }
    if isOneFile {
      source.notes = target.notes
      target = source
    }
    for (old, new, value) in moved where target.values[new] == nil {
      guard let recorded, !isOneFile || !pairs.contains(where: { $0.old.isExactly(new) }) else { continue }
      // A target that had the same value already was not written; without a source it is the app's.
      let written = recorded.setting(new, in: targetPath)
      let isOfTheApp = recorded.setting(old, in: sourcePath) == nil
      target.values[new] = written == nil && !isOfTheApp ? value : written?.before?.value
    }
    let notes = try target.save(to: stage)
    if isOneFile { return notes }
    if target.values.isEmpty, recorded?.made.contains(targetPath) == true { try stage.remove(targetPath) }
    return try source.save(to: stage) + notes
  }

  /// Removes copies that are as they were made. What was written since stays, with a note.
  private func revertCopy(on stage: StagedContainer, _ recorded: PriorValues) throws -> [String] {
    let edit = try DefaultsEdit(to, stage)
    let newer = try newer(than: recorded, in: edit.values, stage)
    return try recorded.revert(on: stage)
      + newer.map { "\(edit.shown($0)) was written since: left unchanged" }
  }

  /// The selected settings that were written to the target since.
  private func newer(
    than recorded: PriorValues, in values: PropertyListDictionary, _ stage: StagedContainer
  ) throws -> [String] {
    let path = try to.path(in: stage)
    let isStandard = path == stage.container.standardDefaults
    return selected(in: values).filter { key in
      let isMarker =
        isStandard
        && stage.container.configuration.versionMarkers.contains {
          if case .defaults(let marker) = $0.place { marker.isExactly(key) } else { false }
        }
      return !isMarker && recorded.setting(key, in: path) == nil && !recorded.skipped.containsExactly(key)
    }
  }

  /// The settings that were moved, without those that were skipped or kept.
  private func movedPairs(
    _ recorded: PriorValues?, from source: ContainerPath
  ) throws -> [(old: String, new: String)] {
    if case .keys(let pairs) = selection {
      return pairs.filter { recorded?.skipped.containsExactly($0.old) != true }
    }
    return try PriorValues.required(recorded).settings.filter { $0.file == source && $0.after == nil }
      .map { ($0.key, $0.key) }
  }
}
