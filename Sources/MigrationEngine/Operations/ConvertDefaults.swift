import AppContainer
import AppStores
import ContainerTransaction
import Formats
import Foundation

struct ConvertDefaults: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.convert",
      "Changes a setting's type, or maps its value, in place or under a new name.",
      Argument<String>("key", "the setting"), Argument<String?>("to", "its new name; default `key`"),
      Argument(
        [
          "type": "`string`, `integer`, `real`, `boolean`, `date`, `data`; for Android also `int`, `long`, "
            + "`float`, `set`",
          "map": "old value: new value; either `type` or `map`",
        ], read: rule),
      Argument(
        "unmapped",
        "for a value without a counterpart: `fail` (default); `keep`: keep the value, under the new "
          + "name; `delete`", default: Unmapped.fail), IfMissing.argument, IfExists.argument,
      DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {fontSize: 14}",
        step: "{key: fontSize, to: textSize, map: {14: medium, 18: large}}",
        after: "settings: {textSize: medium}"),
      make: Self.init)
  ]

  private enum Rule: Sendable {
    case type(SettingType)
    case map(ValueMap)
  }

  private let key: String
  private let newKey: String?
  private let rule: Rule
  private let unmapped: Unmapped
  private let ifMissing: IfMissing
  private let ifExists: IfExists
  private let target: DefaultsTarget

  private var to: String { newKey ?? key }
  var effects: StepEffects { StepEffects(converted: to == key ? [] : [key, to]) }

  private static func rule(_ reader: YAMLReader, _: MigrationFiles) throws -> Rule {
    let node = try reader.only(["type", "map"], needs: "`type` or `map`").node
    if let type: SettingType = try reader.choice("type") { return .type(type) }
    return .map(try ValueMap(node))
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.seen(key, ifMissing) else {
      if edit.values[to] != nil { recorded.skipped.append(key) }
      return edit.notes
    }
    guard let converted = try convert(value, stage, &edit.notes) else {
      // A registered default, which is not stored.
      if edit.values[key] == nil { recorded.skipped.append(key) }
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
    let notes = try edit.save(to: stage, &recorded)
    if recorded.settings.isEmpty { recorded.skipped.append(key) }
    return notes
  }

  /// Uses the map when the value was changed since, so that newer data is reverted, too.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    if recorded?.skipped.containsExactly(key) == true { return [] }
    var edit = try DefaultsEdit(target, stage)
    let path = try target.path(in: stage)
    let noted = recorded?.setting(to, in: path)
    // Without a value to convert, the app may have written one since.
    let isNewer = recorded?.settings.isEmpty == true && edit.values[to] != nil
    if let recorded, !isNewer, noted.map({ edit.values[to] == $0.after?.value }) ?? true {
      return try recorded.revertSettings(on: stage)
    }
    guard case .map(let map) = rule else {
      if isNewer { return ["`\(to)` was written since: left unchanged"] }
      return try PriorValues.required(recorded).revertSettings(on: stage)
    }
    guard let now = edit.values[to] else { return ["`\(to)` does not exist: skipped"] }
    guard let original = map.source(of: now) else {
      let shown = stage.knowingRedactor(showing: [now]).typed(now, of: to)
      return ["`\(to)`: no entry of the map gives \(shown): left unchanged"]
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
    _ value: PropertyListValue, _ stage: StagedContainer, _ notes: inout [String]
  ) throws -> PropertyListValue? {
    var reason: String
    switch rule {
    case .type(let type):
      if let converted = type.convert(value) { return converted }
      let shown = stage.knowingRedactor(showing: [value]).typed(value, of: key)
      reason = "its value (\(shown)) does not fit the type \(type.rawValue)"
    case .map(let map):
      if let converted = map[value] { return converted }
      let redactor = stage.knowingRedactor(showing: [value])
      reason = "the map has no entry for \(redactor.typed(value, of: key))"
      // The hint would quote something similar to the value.
      if !SecretPattern.isSecret(value, key: key), !redactor.isHidden(value, named: .plain) {
        reason += map.hint(for: value)
      }
    }
    let outcome = try unmapped.outcome("`\(key)`: \(reason)") {
      StepFailure("the setting `\(key)` cannot be converted: \(reason); add it, or say \($0)")
    }
    notes.append(outcome.note)
    return outcome.isDeleted ? nil : value
  }
}

/// A map from typed values to values: the Bool `true` is not the text `true`.
struct ValueMap: Sendable {
  private struct Pair {
    let to: PropertyListValue
    /// With the text as it is written, for hints.
    let key: YAMLScalar

    var from: PropertyListValue { key.value }
  }

  private let pairs: [Pair]

  init(_ node: YAMLNode) throws {
    pairs = try node.pairs("`map`").pairs.map { pair in
      if pair.key.value.isNull {
        throw pair.keyPosition.error("a setting is never null: name the value to map")
      }
      return Pair(to: try pair.value.propertyListValue(), key: pair.key)
    }
    if pairs.isEmpty { throw node.position.error("`map` is empty") }
  }

  subscript(_ value: PropertyListValue) -> PropertyListValue? {
    pairs.first { $0.from.matches(value) }?.to
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
          ": the value has the type \(value.typeName), and the map's `\(pair.key.source)` the type \(pair.from.typeName)"
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
    case (.int, .long), (.long, .int): key.anyInteger == value.anyInteger
    default: false
    }
  }
}

extension PropertyListValue {
  /// The text of a simple value, without quotes.
  fileprivate var plain: String? {
    switch self {
    case .string(let text): text
    case .boolean, .integer, .unsigned, .real, .single, .int, .long: description
    default: nil
    }
  }
}

extension SettingType {
  /// Whether a value has this type: an `int` and a `long` are integers, too, and a `float` is a real.
  func includes(_ value: PropertyListValue) -> Bool {
    switch (self, value) {
    case (.integer, .int), (.integer, .long), (.real, .single): true
    default: SettingType(of: value) == self
    }
  }

  /// The value in this type; nil when there is no exact conversion. No other value becomes an array or a dictionary.
  func convert(_ value: PropertyListValue) -> PropertyListValue? {
    if includes(value) { return value }
    switch (self, value) {
    case (_, .int(let number)): return convert(.integer(Int64(number)))
    case (_, .long(let number)): return convert(.integer(number))
    case (.int, _):
      guard case .integer(let number)? = Self.integer.convert(value) else { return nil }
      return Int32(exactly: number).map { .int($0) }
    case (.long, _):
      guard case .integer(let number)? = Self.integer.convert(value) else { return nil }
      return .long(number)
    case (.float, _):
      guard case .real(let number)? = Self.real.convert(value) else { return nil }
      return try? SettingsFile.Format.sharedPreferences.fitting(.real(number), replacing: nil)
    case (.set, .array(let values)): return StringSet(array: values).map { .set($0) }
    case (.string, .boolean), (.string, .integer), (.string, .unsigned), (.string, .real), (.string, .single),
      (.string, .date):
      return .string(value.description)
    case (.string, .data(let bytes)): return String(validating: bytes, as: UTF8.self).map { .string($0) }
    case (.integer, .boolean(let bool)): return .integer(bool ? 1 : 0)
    case (.integer, .real(let real)): return Int64(exactly: real).map { .integer($0) }
    case (.integer, .single(let real)): return Int64(exactly: real).map { .integer($0) }
    case (.integer, .string(let text)):
      return Int64(text).map { .integer($0) } ?? UInt64(text).map { .unsigned($0) }
    case (.real, .integer(let number)): return Double(exactly: number).map { .real($0) }
    case (.real, .unsigned(let number)): return Double(exactly: number).map { .real($0) }
    case (.real, .string(let text)): return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
    case (.boolean, .integer(1)), (.boolean, .real(1)): return .boolean(true)
    case (.boolean, .integer(0)), (.boolean, .real(0)): return .boolean(false)
    case (.boolean, .string(let text)):
      // The words that UserDefaults reads as a Bool.
      let words = ["true": true, "yes": true, "1": true, "false": false, "no": false, "0": false]
      return words[text.lowercased()].map { .boolean($0) }
    // Numbers are seconds since 1970-01-01 UTC, and text is ISO 8601.
    case (.date, .integer(let seconds)): return .date(Date(timeIntervalSince1970: Double(seconds)))
    case (.date, .real(let seconds)):
      return seconds.isFinite ? .date(Date(timeIntervalSince1970: seconds)) : nil
    case (.date, .string(let text)): return YAMLDate.parse(text).map { .date($0) }
    case (.data, .string(let text)): return .data(Array(text.utf8))
    default: return nil
    }
  }
}
