import ContainerTransaction
import FileSystem
import Formats

/// The settings files that a stage has touched: each is read once, and written once when the stage ends.
final class SettingsDrafts {
  let stage: StagedContainer
  /// Remarks of what was written.
  private(set) var notes: [String] = []
  /// Settings that went or changed, as they were.
  private(set) var replaced: [(file: ContainerPath, key: String, value: PropertyListValue)] = []
  private let position: YAMLPosition
  private var edits: [ContainerPath: DefaultsEdit] = [:]
  /// What a property could not throw.
  private var failure: (any Error)?

  init(_ stage: StagedContainer, _ position: YAMLPosition) {
    self.stage = stage
    self.position = position
  }

  func values(_ suite: String?) throws -> PropertyListDictionary { try edit(suite).values }

  func set(_ value: PropertyListValue?, of key: String, _ suite: String?) throws {
    var edit = try edit(suite)
    edit.values[key] = value
    edits[try target(suite).path(in: stage.container)] = edit
  }

  private func edit(_ suite: String?) throws -> DefaultsEdit {
    let target = try target(suite)
    let path = try target.path(in: stage.container)
    if let edit = edits[path] { return edit }
    let edit = try DefaultsEdit(target, stage)
    edits[path] = edit
    return edit
  }

  private func target(_ suite: String?) throws -> DefaultsTarget {
    let entry = StageEntry("settings", ["suite": suite.map { .text($0) }], at: position)
    return try DefaultsTarget(reading: YAMLReader(entry.node, what: entry.name, keys: DefaultsTarget.keys))
  }

  /// Whether a path is one of the files, or has one in it.
  func touch(_ path: ContainerPath) -> Bool { edits.keys.contains { $0 == path || $0.isInside(path) } }

  /// Keeps a failure until the stage ends: the first one counts.
  func fail(_ error: any Error) { failure = failure ?? error }

  /// Writes the files that changed, and forgets all of them.
  func save() throws {
    if let failure { throw failure }
    for (path, var edit) in edits.sorted(by: { $0.key < $1.key }) {
      let before = try stage.defaults(path)?.root ?? [:]
      for (key, value) in before where edit.values[key] != value { replaced.append((path, key, value)) }
      // The way back of a closure is another one: nothing has to be remembered for it.
      var memory = StepMemory()
      notes += try edit.save(to: stage, &memory)
    }
    edits = [:]
  }
}
