import AppContainer
import ContainerTransaction
import Formats

/// `defaults.convert`: gives a setting another type or, by a map, another value; in place or under a new name.
struct ConvertDefaults: MigrationOperation {
  static let name = "defaults.convert"
  static let keys =
    ["key", "to", "type", "map", "unmapped", "if-missing", "if-exists"] + DefaultsTarget.keys

  private enum Rule: Sendable {
    case type(ValueType)
    case map(ValueMap)
  }

  private let target: DefaultsTarget
  private let key: String
  private let to: String
  private let rule: Rule
  private let unmapped: Unmapped
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    to = try reader.text("to") ?? key
    let type: ValueType? = try reader.choice("type")
    switch (type, reader["map"]) {
    case (let type?, nil): rule = .type(type)
    case (nil, let node?): rule = .map(try ValueMap(node))
    case (nil, nil): throw reader.position.error("defaults.convert needs `type` or `map`")
    case (_?, let node?): throw node.position.error("name either `type` or `map`, not both")
    }
    unmapped = try reader.choice("unmapped") ?? .fail
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  var wayBack: WayBack {
    if case .map(let map) = rule, map.isOneToOne, unmapped == .fail { return .byArguments }
    return .byMemory
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.seen(key, ifMissing) else {
      memory.skipped.append(key)
      return edit.notes
    }
    guard let converted = try convert(value, stage.redactor, &edit.notes) else {
      edit.values[key] = nil
      return try edit.save(to: stage, &memory)
    }
    // What is only registered, and stays as it is, need not be stored.
    if to.isExactly(key), edit.values[key] == nil, converted == value {
      memory.skipped.append(key)
      return edit.notes
    }
    if !to.isExactly(key) {
      guard try edit.mayWrite(to, ifExists) else {
        memory.skipped.append(key)
        return edit.notes
      }
      edit.values[key] = nil
    }
    edit.values[to] = converted
    return try edit.save(to: stage, &memory)
  }

  /// By the map when the value is another one now, so that newer data goes back, too.
  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    if memory?.skipped.containsExactly(key) == true { return [] }
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage.container)
    let noted = memory?.setting(to, in: path)
    if let memory, noted.map({ edit.values[to] == $0.after?.value }) ?? true {
      return try memory.revertSettings(on: stage)
    }
    guard case .map(let map) = rule else { return try StepMemory.required(memory).revertSettings(on: stage) }
    guard let now = edit.values[to] else { return ["`\(to)` is not there: skipped"] }
    guard let original = map.source(of: now) else {
      return ["`\(to)`: no entry of the map gives \(stage.redactor.typed(now, of: to)): left as it is"]
    }
    if !to.isExactly(key) {
      if edit.values[key] != nil { return ["`\(key)` is there already: kept, and `\(to)` too"] }
      edit.values[to] = noted?.before?.value
    }
    edit.values[key] = original
    var nothing = StepMemory()
    return try edit.save(to: stage, &nothing)
  }

  /// The new value; nil when the setting is to go.
  private func convert(
    _ value: PropertyListValue, _ redactor: Redactor, _ notes: inout [String]
  ) throws -> PropertyListValue? {
    var reason: String
    let shown = redactor.typed(value, of: key)
    switch rule {
    case .type(let type):
      if let converted = type.convert(value) { return converted }
      reason = "its value (\(shown)) does not fit the type \(type.rawValue)"
    case .map(let map):
      if let converted = map[value] { return converted }
      reason = "the map has no entry for \(shown)"
      // A hint would quote what is like the value.
      if !SecretPattern.isSecret(value, key: key) { reason += map.hint(for: value) }
    }
    switch unmapped {
    case .fail:
      throw StepFailure(
        message: "the setting `\(key)` cannot be converted: \(reason); add it, or say `unmapped: keep` or "
          + "`unmapped: delete`")
    case .keep:
      notes.append("`\(key)`: \(reason): kept as it is")
      return value
    case .delete:
      notes.append("`\(key)`: \(reason): deleted")
      return nil
    }
  }
}

/// A map from typed values to values: the Bool `true` is not the text `true`.
struct ValueMap: Sendable {
  private let pairs: [(key: YAMLScalar, from: PropertyListValue, to: PropertyListValue)]

  init(_ node: YAMLNode) throws {
    pairs = try node.pairs("`map`").pairs.map { pair in
      guard let from = pair.key.value.propertyListValue else {
        throw pair.keyPosition.error("no setting is null: name the value that is mapped")
      }
      return (pair.key, from, try pair.value.propertyListValue())
    }
    if pairs.isEmpty { throw node.position.error("`map` is empty") }
  }

  subscript(_ value: PropertyListValue) -> PropertyListValue? {
    pairs.first { $0.from.matches(value) }?.to
  }

  /// Whether no two values become the same.
  var isOneToOne: Bool {
    pairs.indices.allSatisfy { index in !pairs[..<index].contains { $0.to.matches(pairs[index].to) } }
  }

  /// What the map makes a value of; nil when nothing does, or more than one.
  func source(of value: PropertyListValue) -> PropertyListValue? {
    let found = pairs.filter { $0.to.matches(value) }
    return found.count == 1 ? found[0].from : nil
  }

  /// What the author probably meant, when a key of another type looks like the value.
  func hint(for value: PropertyListValue) -> String {
    for pair in pairs {
      if case .boolean(let bool) = value, pair.key.legacyReading == "the Bool \(bool)" {
        return ": the value is the Bool \(bool), and the map has the text `\(pair.key.source)`: write \(bool)"
      }
      if pair.from.typeName != value.typeName, pair.key.source == value.plain || looksAlike(pair.from, value)
      {
        return
          ": the value is a \(value.typeName), and the map's `\(pair.key.source)` is a \(pair.from.typeName)"
      }
    }
    return ""
  }

  private func looksAlike(_ key: PropertyListValue, _ value: PropertyListValue) -> Bool {
    switch (key, value) {
    case (.boolean(let bool), .integer(let number)), (.integer(let number), .boolean(let bool)):
      number == (bool ? 1 : 0)
    case (.integer(let number), .real(let real)), (.real(let real), .integer(let number)):
      Double(number) == real
    default: false
    }
  }
}

extension PropertyListValue {
  /// The text of a simple value, without quotes.
  fileprivate var plain: String? {
    switch self {
    case .string(let text): text
    case .boolean, .integer, .unsigned, .real, .single: description
    default: nil
    }
  }
}
