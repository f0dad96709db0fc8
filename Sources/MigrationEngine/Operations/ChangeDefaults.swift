import ContainerTransaction
import FileSystem
import Formats

struct SetDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.set",
      "Writes settings. A setting that already has the value is left unchanged.",
      [
        "values": "required: keys and values"
      ], common: ["if-exists"] + DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {theme: light}",
        step: "{values: {theme: sepia, reviewAt: !date 2026-12-01, tags: [a, b]}, if-exists: replace}",
        after: "settings: {theme: sepia, reviewAt: !date 2026-12-01, tags: [a, b]}")
    ) { reader, _ in try Self(reader, ifExists: reader.ifExists()) },
    OperationKind(
      "defaults.set-default",
      "Writes the settings that are absent.",
      [
        "values": "required: keys and values"
      ], common: DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {theme: sepia}", step: "{values: {theme: light, fontSize: 14}}",
        after: "settings: {theme: sepia, fontSize: 14}")
    ) { reader, _ in try Self(reader, ifExists: nil) },
  ]

  let name: String
  private let target: DefaultsTarget
  private let values: PropertyListDictionary
  /// Nil when existing settings are kept without a note.
  private let ifExists: IfExists?

  private init(_ reader: YAMLReader, ifExists: IfExists?) throws {
    (name, self.ifExists) = (reader.what, ifExists)
    target = try DefaultsTarget(reading: reader)
    values = try reader.required("values").pairs("`values`").propertyListValues()
  }

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
      [
        "keys": "a list of names, or one name",
        "prefix": "all settings that start with it; one of `keys` and `prefix` is required",
        "destructive": "required",
      ], common: ["if-missing"] + DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {bookmark: 1, window.x: 2, theme: light}",
        step: "{keys: [bookmark], prefix: window., destructive: the system places windows now}",
        after: "settings: {theme: light}"),
      decode: Self.init)
  ]

  private let target: DefaultsTarget
  private let names: [String]
  private let prefix: String?
  private let ifMissing: IfMissing

  private init(_ reader: YAMLReader, _ files: MigrationFiles) throws {
    guard reader["keys"] != nil || reader["prefix"] != nil else {
      throw reader.position.error("defaults.delete needs `keys` or `prefix`")
    }
    target = try DefaultsTarget(reading: reader)
    names = try reader.texts("keys") ?? []
    prefix = try reader.text("prefix")
    if let node = reader["prefix"], prefix?.isEmpty == true {
      throw node.position.error("an empty prefix would delete every setting")
    }
    ifMissing = try reader.ifMissing()
    try reader.requireReason()
  }

  var effects: StepEffects { StepEffects(announcedLoss: .everything) }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    for name in names where try edit.source(name, ifMissing) != nil { edit.values[name] = nil }
    if let prefix {
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
      [
        "keys": "required: old name: new name"
      ], common: ["if-missing", "if-exists"] + DefaultsTarget.keys,
      example: OperationExample(
        before: "settings: {user_name: Ada}", step: "{keys: {user_name: username}}",
        after: "settings: {username: Ada}")
    ) { reader, _ in try Self(renaming: reader) },
    OperationKind(
      "defaults.move",
      "Moves settings from one settings file to another, for example from the app's own to those of an app group.",
      transferArguments, common: ["if-missing", "if-exists"],
      example: OperationExample(
        before: "settings: {theme: dark, size: 14}", step: "{to: {suite: group}, keys: [theme]}",
        after: "{settings: {size: 14}, group: {theme: dark}}")
    ) { reader, _ in try Self(reader, isMove: true) },
    OperationKind(
      "defaults.copy",
      "Copies settings. Within one file a setting gets a second name.",
      transferArguments, common: ["if-missing", "if-exists"],
      example: OperationExample(
        before: "settings: {theme: dark}", step: "{to: {suite: group}, keys: {theme: previousTheme}}",
        after: "{settings: {theme: dark}, group: {previousTheme: dark}}")
    ) { reader, _ in try Self(reader, isMove: false) },
  ]

  private static let transferArguments: KeyValuePairs = [
    "from, to":
      "the settings files, as `{suite: NAME}` or `{file: PATH}`; at least one is required, the other "
      + "defaults to the app's own settings",
    "keys": "a list of names, one name, or old name: new name; one of `keys`, `prefix` and `all` is required",
    "prefix": "all settings that start with it",
    "all": "`true`: all settings of the file",
  ]

  private enum Selection: Sendable {
    case keys([(old: String, new: String)])
    case prefix(String)
    case all
  }

  let name: String
  private let from, to: DefaultsTarget
  private let selection: Selection
  /// Whether the settings are removed at the source.
  private let isMove: Bool
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  var effects: StepEffects { StepEffects(writing: isMove ? .conversion : .replacement, databases: .none) }

  private init(renaming reader: YAMLReader) throws {
    (name, isMove) = (reader.what, true)
    from = try DefaultsTarget(reading: reader)
    to = from
    let pairs = try Self.renames(reader.required("keys"))
    selection = .keys(pairs.map { ($0.old, $0.new) })
    for pair in pairs where pair.new.isExactly(pair.old) {
      throw pair.position.error("`\(pair.old)` is the old and the new name")
    }
    (ifMissing, ifExists) = try (reader.ifMissing(), reader.ifExists())
  }

  private init(_ reader: YAMLReader, isMove: Bool) throws {
    guard reader["from"] != nil || reader["to"] != nil else {
      throw reader.position.error(
        "\(reader.what) needs `from` or `to`, as in `to: {suite: NAME}`; the other one is the app's own settings"
      )
    }
    (name, self.isMove) = (reader.what, isMove)
    from = try DefaultsTarget(reader["from"], "`from`", at: reader.position)
    to = try DefaultsTarget(reader["to"], "`to`", at: reader.position)
    selection = try Self.selection(reader)
    (ifMissing, ifExists) = try (reader.ifMissing(), reader.ifExists())
  }

  private static func selection(_ reader: YAMLReader) throws -> Selection {
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
      if node.mapping != nil { return .keys(try renames(node).map { ($0.old, $0.new) }) }
      var seen: Set<ExactText> = []
      return .keys(try node.texts("`keys`").filter { seen.insert(ExactText($0)).inserted }.map { ($0, $0) })
    }
  }

  /// Decodes a mapping from old names to different new ones.
  private static func renames(
    _ node: YAMLNode
  ) throws -> [(old: String, new: String, position: YAMLPosition)] {
    var seen: Set<ExactText> = []
    return try node.pairs("`keys`").pairs.map { pair in
      let old = try pair.textKey("a setting's name")
      let new = try pair.value.text("the new name of `\(old)`")
      guard seen.insert(ExactText(new)).inserted else {
        throw pair.value.position.error("two settings become `\(new)`")
      }
      return (old, new, pair.value.position)
    }
  }

  /// All values are read before any is written, so that names may be swapped.
  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let (sourcePath, targetPath) = try (from.path(in: stage), to.path(in: stage))
    let isOneFile = sourcePath == targetPath
    if isOneFile && name == "defaults.move" {
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
      let isThere = name != "defaults.rename" && target.values[new].map(value.matches) ?? false
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
