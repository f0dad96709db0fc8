import ContainerTransaction
import FileSystem
import Formats

/// Which settings go from one settings file to another, and under which names: what `defaults.move` and
/// `defaults.copy` share.
struct DefaultsTransfer: Sendable {
  static let keys = ["from", "to", "keys", "prefix", "all", "if-missing", "if-exists"]

  private enum Selection: Sendable {
    case keys([(old: String, new: String)])
    case prefix(String)
    case all
  }

  private let from: DefaultsTarget
  private let to: DefaultsTarget
  private let selection: Selection
  private let ifMissing: IfMissing
  private let ifExists: IfExists

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
      throw (given.last ?? nil)?.position.error(
        "name one of `keys`, `prefix` and `all: true`, not \(given.count)")
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
    guard let mapping = node.mapping else { return .keys(try node.texts("`keys`").map { ($0, $0) }) }
    var seen: Set<ExactText> = []
    return .keys(
      try mapping.pairs.map { pair in
        guard case .text(let old) = pair.key.value else {
          throw pair.keyPosition.error("a setting's name is text, not \(pair.key.value.summary): quote it")
        }
        let new = try pair.value.text("the new name of `\(old)`")
        guard seen.insert(ExactText(new)).inserted else {
          throw pair.value.position.error("two settings become `\(new)`")
        }
        return (old, new)
      })
  }

  /// Whether the arguments name each setting.
  var namesKeys: Bool {
    if case .keys = selection { true } else { false }
  }

  // MARK: There

  /// Writes the settings at the target; those that went are taken from the source when they are moved.
  func apply(to stage: StagedContainer, moving: Bool, _ memory: inout StepMemory) throws -> [String] {
    let isOneFile = try from.path(in: stage.container) == to.path(in: stage.container)
    if isOneFile && moving {
      throw StepFailure(
        message: "`from` and `to` are the same settings file: defaults.rename gives new names")
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
    let notes = try target.save(to: stage, &memory)
    return isOneFile ? source.notes + notes : try source.save(to: stage, &memory) + notes
  }

  private func pairs(_ source: inout DefaultsEdit) throws -> [(old: String, new: String)] {
    switch selection {
    case .keys(let pairs): return pairs
    case .all: return source.values.keys.sorted().map { ($0.text, $0.text) }
    case .prefix(let prefix):
      let found = source.values.keys.map(\.text).filter { $0.utf8.starts(with: prefix.utf8) }.sorted()
      if found.isEmpty {
        if ifMissing == .fail { throw StepFailure(message: "no setting starts with `\(prefix)`") }
        source.notes.append("no setting starts with `\(prefix)`: skipped")
      }
      return found.map { ($0, $0) }
    }
  }

  // MARK: And back

  /// Moves the settings back, with what the app wrote to them since.
  func moveBack(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    let (sourcePath, targetPath) = try (from.path(in: stage.container), to.path(in: stage.container))
    var source = try DefaultsEdit(from, stage)
    var target = try DefaultsEdit(to, stage)
    for (old, new) in try moved(memory, from: sourcePath) {
      guard let value = target.values[new] else {
        target.notes.append("\(target.shown(new)) is not there: nothing to move back")
        continue
      }
      guard source.values[old] == nil else {
        target.notes.append(
          "\(target.shown(old)) is there again: kept, and \(target.shown(new)) left where it is")
        continue
      }
      source.values[old] = value
      guard let memory else {
        target.values[new] = nil
        continue
      }
      // One that the target had already, with the same value, was not written.
      if let written = memory.setting(new, in: targetPath) { target.values[new] = written.before?.value }
    }
    var nothing = StepMemory()
    let notes = try source.save(to: stage, &nothing) + target.save(to: stage, &nothing)
    if target.values.isEmpty, memory?.made.contains(targetPath) == true { try stage.remove(targetPath) }
    return notes
  }

  /// The settings that were moved: not those that were skipped or kept.
  private func moved(
    _ memory: StepMemory?, from source: ContainerPath
  ) throws -> [(old: String, new: String)] {
    let gone = memory?.settings.filter { $0.file == source && $0.after == nil }.map(\.key)
    switch (selection, gone) {
    case (.keys(let pairs), let gone?): return pairs.filter { gone.containsExactly($0.old) }
    case (.keys(let pairs), nil): return pairs
    case (_, let gone?): return gone.map { ($0, $0) }
    case (_, nil):
      throw StepFailure(
        message: "nobody knows any more which settings were moved: the transaction's undo is gone")
    }
  }
}
