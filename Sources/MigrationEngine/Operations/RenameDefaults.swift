import ContainerTransaction
import Formats

/// `defaults.rename`: gives settings new names. All old values are read before any is written, so that names may
/// be swapped.
struct RenameDefaults: MigrationOperation {
  static let name = "defaults.rename"
  static let keys = ["keys", "if-missing", "if-exists"] + DefaultsTarget.keys

  private let target: DefaultsTarget
  private let renames: [(old: String, new: String)]
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    var seen: Set<ExactText> = []
    renames = try reader.required("keys").pairs("`keys`").pairs.map { pair in
      guard case .text(let old) = pair.key.value else {
        throw pair.keyPosition.error("a setting's name is text, not \(pair.key.value.summary): quote it")
      }
      let new = try pair.value.text("the new name of `\(old)`")
      guard !new.isExactly(old) else {
        throw pair.value.position.error("`\(old)` is the old and the new name")
      }
      guard seen.insert(ExactText(new)).inserted else {
        throw pair.value.position.error("two settings become `\(new)`")
      }
      return (old, new)
    }
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    var moved: [(old: String, new: String, value: PropertyListValue)] = []
    for (old, new) in renames {
      if let value = try edit.source(old, ifMissing) {
        moved.append((old, new, value))
      } else {
        memory.skipped.append(old)
      }
    }
    for item in moved { edit.values[item.old] = nil }
    for item in moved {
      if try edit.mayWrite(item.new, ifExists) {
        edit.values[item.new] = item.value
      } else {
        // Nothing is lost: the old name stays when the new one is kept.
        edit.values[item.old] = item.value
        memory.skipped.append(item.old)
      }
    }
    return try edit.save(to: stage, &memory)
  }

  var wayBack: WayBack { .byArguments }

  /// The settings get their old names again, with the values that they have now; what they had replaced comes back.
  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage.container)
    let renamed = renames.filter { rename in
      memory.map { !$0.skipped.containsExactly(rename.old) } ?? (edit.values[rename.old] == nil)
    }
    let sources = Set(renamed.map { ExactText($0.old) })
    var moved: [(old: String, new: String, value: PropertyListValue)] = []
    for (old, new) in renamed {
      if let value = edit.values[new] {
        moved.append((old, new, value))
      } else {
        edit.notes.append("`\(new)` is not there: skipped")
      }
    }
    for item in moved { edit.values[item.new] = nil }
    for item in moved {
      if edit.values[item.old] == nil {
        edit.values[item.old] = item.value
      } else {
        edit.notes.append("`\(item.old)` is there already: kept, and `\(item.new)` too")
        edit.values[item.new] = item.value
      }
    }
    for item in moved where edit.values[item.new] == nil && !sources.contains(ExactText(item.new)) {
      edit.values[item.new] = memory?.setting(item.new, in: path)?.before?.value
    }
    var nothing = StepMemory()
    return try edit.save(to: stage, &nothing)
  }
}
