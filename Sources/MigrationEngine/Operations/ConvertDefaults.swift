import AppContainer
import ContainerTransaction
import Formats
import Foundation

/// `defaults.convert`: converts a setting to another type or, by a map, to another value; in place or under a new name.
struct ConvertDefaults: MigrationOperation {
  static let name = "defaults.convert"
  static let keys =
    ["key", "to", "type", "map", "unmapped", "if-missing", "if-exists"] + DefaultsTarget.keys

  private enum Rule: Sendable {
    case type(SettingValueType)
    case map(ValueMap)
  }

  private let target: DefaultsTarget
  private let key, to: String
  private let rule: Rule
  private let unmapped: Unmapped
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    to = try reader.text("to") ?? key
    let node = try reader.only(["type", "map"], needs: "`type` or `map`").node
    if let type: SettingValueType = try reader.choice("type") {
      rule = .type(type)
    } else {
      rule = .map(try ValueMap(node))
    }
    unmapped = try reader.choice("unmapped") ?? .fail
    (ifMissing, ifExists) = try (reader.ifMissing(), reader.ifExists())
  }

  var reversal: Reversal {
    if case .map(let map) = rule, map.isOneToOne, unmapped == .fail { return .byArguments }
    return .byDownValues
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.seen(key, ifMissing) else {
      recorded.skipped.append(key)
      return edit.notes
    }
    guard let converted = try convert(value, stage.redactor, &edit.notes) else {
      edit.values[key] = nil
      return try edit.save(to: stage, &recorded)
    }
    // A registered default that the conversion leaves unchanged is not stored.
    if to.isExactly(key), edit.values[key] == nil, converted == value {
      recorded.skipped.append(key)
      return edit.notes
    }
    if !to.isExactly(key) {
      guard try edit.mayWrite(to, ifExists) else {
        recorded.skipped.append(key)
        return edit.notes
      }
      edit.values[key] = nil
    }
    edit.values[to] = converted
    return try edit.save(to: stage, &recorded)
  }

  /// Uses the map when the value was changed since, so that newer data is reverted, too.
  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    if recorded?.skipped.containsExactly(key) == true { return [] }
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage.container)
    let noted = recorded?.setting(to, in: path)
    if let recorded, noted.map({ edit.values[to] == $0.after?.value }) ?? true {
      return try recorded.revertSettings(on: stage)
    }
    guard case .map(let map) = rule else {
      return try DownValues.required(recorded).revertSettings(on: stage)
    }
    guard let now = edit.values[to] else { return ["`\(to)` does not exist: skipped"] }
    guard let original = map.source(of: now) else {
      return ["`\(to)`: no entry of the map gives \(stage.redactor.typed(now, of: to)): left unchanged"]
    }
    if !to.isExactly(key) {
      if edit.values[key] != nil { return ["`\(key)` exists already: kept, and `\(to)` too"] }
      edit.values[to] = noted?.before?.value
    }
    edit.values[key] = original
    return try edit.save(to: stage)
  }

  /// The new value; nil when the setting is deleted.
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
      // The hint would quote something similar to the value.
      if !SecretPattern.isSecret(value, key: key) { reason += map.hint(for: value) }
    }
    switch unmapped {
    case .fail:
      throw StepFailure(
        message: "the setting `\(key)` cannot be converted: \(reason); add it, or say `unmapped: keep` or "
          + "`unmapped: delete`")
    case .keep:
      notes.append("`\(key)`: \(reason): left unchanged")
      return value
    case .delete:
      notes.append("`\(key)`: \(reason): deleted")
      return nil
    }
  }
}

/// A map from typed values to values: the Bool `true` is not the text `true`.
struct ValueMap: Sendable {
  private struct Pair {
    let from, to: PropertyListValue
    /// As it is written, for hints.
    let key: YAMLScalar
  }

  private let pairs: [Pair]

  init(_ node: YAMLNode) throws {
    pairs = try node.pairs("`map`").pairs.map { pair in
      guard let from = pair.key.value.propertyListValue else {
        throw pair.keyPosition.error("a setting is never null: name the value to map")
      }
      return Pair(from: from, to: try pair.value.propertyListValue(), key: pair.key)
    }
    if pairs.isEmpty { throw node.position.error("`map` is empty") }
  }

  subscript(_ value: PropertyListValue) -> PropertyListValue? {
    pairs.first { $0.from.matches(value) }?.to
  }

  /// Whether all values are mapped to different ones.
  var isOneToOne: Bool {
    pairs.indices.allSatisfy { index in !pairs[..<index].contains { $0.to.matches(pairs[index].to) } }
  }

  /// The only value that is mapped to another one; nil when there is none, or more than one.
  func source(of value: PropertyListValue) -> PropertyListValue? {
    let found = pairs.filter { $0.to.matches(value) }
    return found.count == 1 ? found[0].from : nil
  }

  /// What the author probably meant, when a key of another type resembles the value.
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

/// The types that a setting can be converted to. Only exact conversions succeed.
public enum SettingValueType: String, CaseIterable, Sendable {
  case string, integer, real, boolean, date, data

  /// The type of a simple value; nil for others.
  init?(of value: PropertyListValue) {
    switch value {
    case .string: self = .string
    case .integer, .unsigned: self = .integer
    case .real, .single: self = .real
    case .boolean: self = .boolean
    case .date: self = .date
    case .data: self = .data
    case .array, .dictionary, .unknown: return nil
    }
  }

  /// The value in this type; nil when there is no exact conversion.
  func convert(_ value: PropertyListValue) -> PropertyListValue? {
    switch self {
    case .string: Self.string(value).map { .string($0) }
    case .integer: Self.integer(value)
    case .real: Self.real(value)
    case .boolean: Self.boolean(value).map { .boolean($0) }
    case .date: Self.date(value).map { .date($0) }
    case .data: Self.data(value).map { .data($0) }
    }
  }

  private static func string(_ value: PropertyListValue) -> String? {
    switch value {
    case .string(let text): text
    case .boolean, .integer, .unsigned, .real, .single, .date: value.description
    case .data(let bytes): String(validating: bytes, as: UTF8.self)
    case .array, .dictionary, .unknown: nil
    }
  }

  /// From text in decimal, from a Bool (1 and 0), and from a real without a fraction.
  private static func integer(_ value: PropertyListValue) -> PropertyListValue? {
    switch value {
    case .integer, .unsigned: return value
    case .boolean(let bool): return .integer(bool ? 1 : 0)
    case .real(let real): return Int64(exactly: real).map { .integer($0) }
    case .single(let real): return Int64(exactly: real).map { .integer($0) }
    case .string(let text):
      if let number = Int64(text) { return .integer(number) }
      return UInt64(text).map { .unsigned($0) }
    default: return nil
    }
  }

  /// From text, and from an integer that a real holds exactly.
  private static func real(_ value: PropertyListValue) -> PropertyListValue? {
    switch value {
    case .real, .single: return value
    case .integer(let number): return Double(exactly: number).map { .real($0) }
    case .unsigned(let number): return Double(exactly: number).map { .real($0) }
    case .string(let text): return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
    default: return nil
    }
  }

  /// From 1 and 0, and from the words that UserDefaults reads as a Bool.
  private static func boolean(_ value: PropertyListValue) -> Bool? {
    switch value {
    case .boolean(let bool): return bool
    case .integer(1), .real(1): return true
    case .integer(0), .real(0): return false
    case .string(let text):
      switch text.lowercased() {
      case "true", "yes", "1": return true
      case "false", "no", "0": return false
      default: return nil
      }
    default: return nil
    }
  }

  /// From ISO 8601, and from seconds since 1970-01-01 UTC.
  private static func date(_ value: PropertyListValue) -> Date? {
    switch value {
    case .date(let date): date
    case .integer(let seconds): Date(timeIntervalSince1970: Double(seconds))
    case .real(let seconds): seconds.isFinite ? Date(timeIntervalSince1970: seconds) : nil
    case .string(let text): YAMLDate.parse(text)
    default: nil
    }
  }

  /// From text, as UTF-8.
  private static func data(_ value: PropertyListValue) -> [UInt8]? {
    switch value {
    case .data(let bytes): bytes
    case .string(let text): Array(text.utf8)
    default: nil
    }
  }
}
