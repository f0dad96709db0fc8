import DrydockErrors

/// A file of settings and its format: a property list of Apple's systems, or one of Android's formats.
package struct SettingsFile: Sendable, Equatable {
  package enum Format: Sendable, Hashable {
    case propertyList(PropertyListFile.Format)
    /// The XML of Android's SharedPreferences.
    case sharedPreferences
    /// The protocol buffer of Jetpack's Preferences DataStore.
    case dataStore
  }

  /// The format, which is preserved when the file is rewritten.
  package let format: Format
  package var root: PropertyListDictionary
  /// How a property list is written as text.
  private var text = PropertyListText()
  /// What a DataStore file has besides the settings.
  private var unknownFields = DataStorePreferences.UnknownFields()
  /// Why the file cannot be rewritten without losing a part of it.
  private var obstacle: String?

  package init(format: Format, root: PropertyListDictionary = [:]) {
    (self.format, self.root) = (format, root)
  }

  /// A new file, in the format that the app reads at this path: binary where neither folder nor name has a meaning.
  package init(newAt path: String) {
    self.init(
      format: Self.isDataStore(path)
        ? .dataStore : Self.isSharedPreferences(path) ? .sharedPreferences : .propertyList(.binary))
  }

  /// Reads a file's content. DataStore files are recognized by their path, the others by their content.
  ///
  /// - Throws: `DrydockError`: `malformed` when it is not a settings file or corrupt, `unsupported` when it is encrypted.
  package init(bytes: [UInt8], path: String) throws {
    if Self.isDataStore(path) {
      self.init(format: .dataStore)
      (root, unknownFields) = try DataStorePreferences.read(bytes)
    } else if SharedPreferences.isBegun(by: bytes)
      || Self.isSharedPreferences(path) && !PropertyListDocument.isBinary(bytes)
        && !PropertyListDocument.isXML(bytes)
    {
      self.init(format: .sharedPreferences)
      (root, obstacle) = try SharedPreferences.read(bytes)
    } else {
      let list = try PropertyListFile(bytes: bytes)
      self.init(format: .propertyList(list.format), root: list.root)
      text = list.text
    }
  }

  /// `NAME.preferences_pb`: the format has no magic number.
  static func isDataStore(_ path: String) -> Bool { path.hasSuffix(".preferences_pb") }

  /// `shared_prefs/NAME.xml`.
  package static func isSharedPreferences(_ path: String) -> Bool {
    path.hasSuffix(".xml") && path.split(separator: "/").dropLast().last == "shared_prefs"
  }

  /// The file's content. The same settings give the same bytes.
  ///
  /// - Throws: `DrydockError` (`.unsupported`) for values that the format cannot represent, and for files of which a part
  ///   would be lost.
  package func encoded() throws -> [UInt8] {
    if let obstacle {
      throw DrydockError(.unsupported, "the settings file has \(obstacle), which rewriting it would lose")
    }
    if let loss { throw DrydockError(.unsupported, "a setting \(loss.problem)") }
    let values: PropertyListDictionary
    do {
      values = try root.mapValues { try format.fitting($0, replacing: nil) }
    } catch let error as UnfitSetting {
      throw DrydockError(.unsupported, "a setting \(error.problem)")
    }
    switch format {
    case .propertyList(let format):
      return try PropertyListDocument(format: format, value: .dictionary(values), text: text).encoded()
    case .sharedPreferences: return SharedPreferences.write(values)
    case .dataStore: return DataStorePreferences.write(values, unknownFields)
    }
  }

  /// Whether the file can be rewritten without losing a part of it.
  package var canBeWritten: Bool { obstacle == nil }

  /// The first setting of which writing the file would lose or misname a part; the problem completes "the setting `key` …".
  package var loss: (key: String, problem: String)? {
    if let key = unknownFields.keys.filter({ root[$0] == nil }).min() {
      return (key.text, Self.fieldsProblem)
    }
    guard format == .sharedPreferences else { return nil }
    for (key, value) in root.sorted() {
      guard case .unknown(let opaque) = value, let name = SharedPreferences.name(of: opaque),
        !name.isExactly(key)
      else { continue }
      return (key, "has a value that only its app understands and that contains its name: leave it as it is")
    }
    return nil
  }

  /// Why a setting cannot get another name or go to another file; nil when it can.
  package func problemOfTransfer(_ key: String) -> String? {
    unknownFields.keys.contains(ExactText(key)) ? Self.fieldsProblem : nil
  }

  private static let fieldsProblem =
    "has fields that only its app understands, which would be lost: keep it in this file, under its name"

  /// Whether two states of a file have the same fields that are not settings.
  package func hasSameUnknownFields(as other: SettingsFile?) -> Bool {
    unknownFields == other?.unknownFields ?? DataStorePreferences.UnknownFields()
  }

  /// A file of this format with these settings and nothing else.
  package func containing(only settings: PropertyListDictionary) -> SettingsFile {
    var file = self
    (file.root, file.unknownFields) = (settings, DataStorePreferences.UnknownFields())
    return file
  }

  /// Whether the file has more than settings of known types.
  package var hasUnknownParts: Bool {
    unknownFields != DataStorePreferences.UnknownFields() || obstacle != nil
      || root.values.contains { if case .unknown = $0 { true } else { false } }
  }

  /// The settings in a file's bytes; nil when there are none, or when they are encrypted.
  package static func settings(in bytes: [UInt8], path: String) throws -> PropertyListDictionary? {
    do {
      return try SettingsFile(bytes: bytes, path: path).root
    } catch let error as DrydockError where [.malformed, .unsupported].contains(error.code) {
      return nil
    }
  }

  /// What may not be intended about a value in the form that the file gives it; each completes "`key`: …".
  package func notes(on value: PropertyListValue, as fitting: PropertyListValue, for key: String) -> [String]
  {
    var notes: [String] = []
    switch (value, fitting, root[key]) {
    case (.array, .set, _): notes.append("the array becomes a string set, which has no order")
    case (.set, .array, _): notes.append("the string set becomes an array, since property lists have no sets")
    case (.integer, .long, .int):
      notes.append(
        "the value does not fit the 32 bits of the `int` before: it becomes a `long`, and an app that reads an `int` fails"
      )
    default: break
    }
    if case .propertyList(let format) = format, format.rounds(fitting) {
      notes.append("the file is XML, which keeps whole seconds only")
    }
    return notes
  }

  /// Sets a value as the format represents it, or removes it.
  ///
  /// - Throws: ``UnfitSetting``.
  package mutating func set(_ value: PropertyListValue?, for key: String) throws {
    root[key] = try value.map { try format.fitting($0, replacing: root[key]) }
  }
}

/// A value that a format cannot represent.
package struct UnfitSetting: Error {
  /// Completes "the setting `key` …".
  package let problem: String
}

extension SettingsFile.Format: CustomStringConvertible {
  package var description: String {
    switch self {
    case .propertyList: "property list"
    case .sharedPreferences: "SharedPreferences"
    case .dataStore: "DataStore"
    }
  }

  /// A value as this format represents it, without loss. In Android's files an integer without a type takes the type of
  /// the number that it replaces if it fits; otherwise it is an `int` if it fits 32 bits, and a `long` if not.
  ///
  /// - Throws: ``UnfitSetting``.
  package func fitting(
    _ value: PropertyListValue, replacing old: PropertyListValue?
  ) throws -> PropertyListValue {
    if case .propertyList = self { return try value.inPropertyList() }
    switch value {
    case .string, .boolean, .int, .long, .single, .set: return value
    case .integer(let number):
      if case .long = old { return .long(number) }
      return Int32(exactly: number).map { .int($0) } ?? .long(number)
    case .unsigned: throw unfit("is an integer above 9223372036854775807", "convert it to text first")
    case .real(let number):
      let float = Float(sameNumberAs: number)
      if self == .dataStore {
        if case .single = old, let float { return .single(float) }
        return value
      }
      if let float { return .single(float) }
      throw unfit("is a real of 64 bits", "round it to a float (`!float`), or convert it to text")
    case .data:
      if self == .dataStore { return value }
      throw unfit("is data", "convert it to text, such as base64")
    case .array(let values):
      if let strings = StringSet(array: values) { return .set(strings) }
      throw unfit(
        "is an array of other values than different texts",
        "store it as JSON (`defaults.convert` or a script)")
    case .date: throw unfit("is a date", "convert it to an integer or text first")
    case .dictionary: throw unfit("is a dictionary", "store it as JSON in a text")
    case .unknown(let opaque):
      let own = self == .dataStore ? PropertyListValue.Opaque.message : PropertyListValue.Opaque.element
      if opaque.marker == own { return value }
      throw unfit("has a type that is not known", "leave it where it is")
    }
  }

  private func unfit(_ what: String, _ advice: String) -> UnfitSetting {
    UnfitSetting(problem: "\(what), which \(self) cannot hold: \(advice)")
  }
}

extension PropertyListValue {
  /// The value with the types of a property list: its integers have no size, and it has arrays for sets.
  func inPropertyList() throws -> PropertyListValue {
    switch self {
    case .int(let number): return .integer(Int64(number))
    case .long(let number): return .integer(number)
    case .set(let values): return .array(values.strings.map { .string($0) })
    case .array(let values): return .array(try values.map { try $0.inPropertyList() })
    case .dictionary(let values): return .dictionary(try values.mapValues { try $0.inPropertyList() })
    case .unknown(let opaque) where opaque.isAndroids:
      throw UnfitSetting(
        problem:
          "has a type that only Android's files have, and a property list cannot hold: leave it where it is")
    default: return self
    }
  }
}

extension Float {
  /// The float with the same number, or with the same shortest decimal text: 0.1 has one, 0.123456789 has not.
  init?(sameNumberAs number: Double) {
    let float = Float(number)
    guard Double(float) == number || number.isNaN || Double("\(float)") == number else { return nil }
    self = float
  }
}
