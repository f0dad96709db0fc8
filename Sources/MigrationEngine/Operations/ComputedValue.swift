import AppContainer
import AppStores
import Cryptography
import Formats
import Foundation

/// Why a value cannot be converted, such as a setting to a value of SQLite. It has no part of the value.
struct ValueMismatch: Error {
  let reason: String
}

extension SettingType {
  /// The setting that a value of SQLite is in this type. Nothing is rounded, cut off or guessed.
  func setting(_ value: SQLiteValue) throws -> PropertyListValue {
    switch (self, value) {
    case (.boolean, .integer(0)): return .boolean(false)
    case (.boolean, .integer(1)): return .boolean(true)
    case (.boolean, .integer): throw ValueMismatch(reason: "an integer other than 0 and 1, and not a boolean")
    case (.integer, .integer(let number)): return .integer(number)
    case (.long, .integer(let number)): return .long(number)
    case (.int, .integer(let number)):
      guard let number = Int32(exactly: number) else {
        throw ValueMismatch(reason: "an integer of more than 32 bits")
      }
      return .int(number)
    case (.integer, .real), (.int, .real), (.long, .real):
      throw ValueMismatch(reason: "a real, not an integer: write CAST(… AS INTEGER), or round it")
    case (.real, .real(let number)): return .real(number)
    case (.real, .integer(let number)):
      guard let real = Double(exactly: number) else {
        throw ValueMismatch(reason: "an integer that no real represents exactly")
      }
      return .real(real)
    case (.float, .real), (.float, .integer):
      let real = try SettingType.real.setting(value)
      if let float = try? SettingsFile.Format.sharedPreferences.fitting(real, replacing: nil) { return float }
      throw ValueMismatch(reason: "a real that no float represents: round it")
    case (.string, .text(let bytes)): return .string(try bytes.plainText())
    case (.string, .integer), (.string, .real):
      throw ValueMismatch(reason: "\(value.nounPhrase), not text: write CAST(… AS TEXT)")
    case (.date, _): return .date(try Self.date(value))
    case (.data, .blob(let bytes)): return .data(bytes.withBytes { Array($0) })
    case (.data, .text): throw ValueMismatch(reason: "text, not data: write CAST(… AS BLOB)")
    case (.array, .text(let bytes)), (.dictionary, .text(let bytes)): return try document(bytes)
    case (.set, .text(let bytes)):
      guard case .array(let values) = try SettingType.array.document(bytes),
        let strings = StringSet(array: values)
      else { throw ValueMismatch(reason: "JSON that is not an array of different texts") }
      return .set(strings)
    default: throw ValueMismatch(reason: "\(value.nounPhrase), not \(nounPhrase)")
    }
  }

  /// The setting that a value is without a type: what SQLite says that it is.
  static func natural(_ value: SQLiteValue) throws -> PropertyListValue {
    switch value {
    case .integer: try SettingType.integer.setting(value)
    case .real: try SettingType.real.setting(value)
    case .text: try SettingType.string.setting(value)
    case .blob: try SettingType.data.setting(value)
    case .null: throw ValueMismatch(reason: "NULL, and a setting is never null")
    }
  }

  /// The same where it replaces a setting: a type that SQLite does not have stays.
  static func natural(
    _ value: SQLiteValue, replacing old: PropertyListValue?
  ) throws -> PropertyListValue {
    switch old.flatMap(SettingType.init(of:)) {
    case nil, .integer, .real, .string, .data: return try natural(value)
    case let type?:
      do {
        // A number may be a date or not.
        if case (.date, .integer) = (type, value) { throw ValueMismatch(reason: "an integer, not a date") }
        if case (.date, .real) = (type, value) { throw ValueMismatch(reason: "a real, not a date") }
        return try type.setting(value)
      } catch let mismatch as ValueMismatch {
        throw ValueMismatch(
          reason: "\(mismatch.reason); the setting is \(type.nounPhrase): say `type` to change that")
      }
    }
  }

  /// In messages about SQL.
  private var nounPhrase: String {
    switch self {
    case .string: "text"
    case .data: "data"
    default: rawValue.withArticle
    }
  }

  private static func date(_ value: SQLiteValue) throws -> Date {
    switch value {
    case .text(let bytes):
      let text = try bytes.plainText()
      // What SQLite's functions give is UTC, and does not say so.
      if let date = YAMLDate.parse(text) ?? YAMLDate.parse(text + "Z") { return date }
      throw ValueMismatch(reason: "text that is not a date such as 2026-12-01 10:15:00")
    case .integer(let seconds): return Date(timeIntervalSince1970: Double(seconds))
    case .real(let seconds) where seconds.isFinite: return Date(timeIntervalSince1970: seconds)
    default: throw ValueMismatch(reason: "\(value.nounPhrase), not a date")
    }
  }

  private func document(_ bytes: SecretBytes) throws -> PropertyListValue {
    let json: JSONValue
    do {
      json = try JSONDocument(bytes: bytes.withBytes { Array($0) }).value
    } catch {
      throw ValueMismatch(reason: "text that is not JSON")
    }
    guard let value = json.propertyListValue else {
      throw ValueMismatch(reason: "JSON with a null or a number that a setting cannot represent")
    }
    guard SettingType(of: value) == self else {
      throw ValueMismatch(reason: "JSON that is not \(nounPhrase)")
    }
    return value
  }
}

extension SQLiteValue {
  /// A setting as SQLite has it: a Bool as 1 or 0, a date as ISO 8601 text in UTC, an array or a dictionary as JSON.
  init(_ setting: PropertyListValue) throws {
    switch setting {
    case .boolean(let bool): self = .integer(bool ? 1 : 0)
    case .integer(let number), .long(let number): self = .integer(number)
    case .int(let number): self = .integer(Int64(number))
    case .unsigned: throw ValueMismatch(reason: "an integer above \(Int64.max), which SQLite does not have")
    case .real(let number): self = try Self.checked(number)
    case .single(let number): self = try Self.checked(Double(number))
    case .string(let text): self = try .text(Self.utf8(text))
    case .date(let date):
      guard let text = date.exactText else {
        throw ValueMismatch(reason: "a date outside of the years 1 to 9999")
      }
      self = try .text(Self.utf8(text))
    case .data(let bytes): self = .blob(SecretBytes(bytes))
    case .array, .dictionary, .set:
      guard let json = JSONValue(setting) else {
        throw ValueMismatch(
          reason: "\(setting.nounPhrase) with a date, data or another value that JSON does not have")
      }
      self = try .text(Self.utf8(JSONDocument(json, isIndented: false).text))
    case .unknown: throw ValueMismatch(reason: "a value that only its app understands")
    }
  }

  private static func checked(_ number: Double) throws -> SQLiteValue {
    // SQLite would make it NULL.
    if number.isNaN { throw ValueMismatch(reason: "NaN, which SQLite does not have") }
    return .real(number)
  }

  private static func utf8(_ text: String) throws -> SecretBytes {
    if text.utf8.contains(0) {
      throw ValueMismatch(reason: "text with a NUL character, at which SQLite's functions end")
    }
    return SecretBytes(Array(text.utf8))
  }

  /// `an integer`, `NULL`.
  var nounPhrase: String {
    switch self {
    case .null: "NULL"
    case .integer: "an integer"
    case .real: "a real"
    case .text: "text"
    case .blob: "data"
    }
  }
}

extension SecretBytes {
  /// The text that these bytes are.
  func plainText() throws -> String {
    guard let text = withBytes({ String(validating: $0, as: UTF8.self) }) else {
      throw ValueMismatch(reason: "text that is not UTF-8")
    }
    if text.utf8.contains(0) { throw ValueMismatch(reason: "text with a NUL character") }
    return text
  }
}

extension Date {
  /// ISO 8601 text in UTC with as many digits of a second as are needed to read back the same date; nil outside of the
  /// years 1 to 9999.
  fileprivate var exactText: String? {
    let text = YAMLDate.text(self)
    guard let read = YAMLDate.parse(text) else { return nil }
    if read == self { return text }
    let seconds = timeIntervalSinceReferenceDate
    let whole = YAMLDate.text(Date(timeIntervalSinceReferenceDate: seconds.rounded(.down))).dropLast()
    for digits in 7...17 {
      let fraction = String(format: "%.\(digits)f", seconds - seconds.rounded(.down)).dropFirst()
      let text = String(whole) + fraction + "Z"
      if YAMLDate.parse(text) == self { return text }
    }
    return nil
  }
}
