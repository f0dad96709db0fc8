import AppStores
import ContainerTransaction
import DrydockErrors
import Formats
import MigrationEngine

/// A change of the settings in one file.
public enum SettingsChange: Sendable {
  case set(SettingsChange.Address, PropertyListValue)
  /// Adds elements to an array, or members to a dictionary, which replace those of the same name; creates it if there is
  /// none.
  case add(SettingsChange.Address, PropertyListValue)
  case delete([SettingsChange.Address])
  /// Adds settings, which replace those of the same name; with `replacing`, all others are deleted.
  case merge(PropertyListDictionary, replacing: Bool)
}

extension SettingsChange {
  /// A setting, or a part of its value.
  public struct Address: Sendable {
    /// The name of the setting, literally: a dot means nothing.
    public var key: String
    /// The names of members, and indexes of elements, from the setting's value inwards.
    public var inside: [String]

    /// A setting, or the part of its value that these names and indexes lead to.
    public init(_ key: String, inside: [String] = []) { (self.key, self.inside) = (key, inside) }

    private var pointer: JSONPointer { JSONPointer(tokens: inside) }

    /// For messages: a name that looks like a secret is redacted.
    package func shown(_ redactor: Redactor) -> String {
      let part = inside.isEmpty ? "" : " \(redactor.shown(message: pointer.description))"
      return "`\(redactor.shown(name: key))`\(part)"
    }

    /// - Throws: ``DrydockError`` with code `missing` and the nearest name.
    package func value(in settings: PropertyListDictionary, _ redactor: Redactor) throws -> PropertyListValue
    {
      guard let value = settings[key] else {
        throw DrydockError(
          .missing,
          "the setting \(Address(key).shown(redactor)) does not exist" + near(in: settings, redactor))
      }
      guard let part = value.value(at: pointer) else {
        throw DrydockError(
          .missing,
          "the setting `\(redactor.shown(name: key))` has no \(redactor.shown(message: pointer.description))")
      }
      return part
    }

    private func near(in settings: PropertyListDictionary, _ redactor: Redactor) -> String {
      let names = settings.sorted().map(\.key)
      return NearestWord.to(key, among: names).map { "; did you mean `\(redactor.shown(name: $0))`?" } ?? ""
    }

    fileprivate func set(
      _ value: PropertyListValue?, in settings: inout PropertyListDictionary, _ redactor: Redactor
    ) throws {
      if inside.isEmpty { return settings[key] = value }
      var whole = try Address(key).value(in: settings, redactor)
      try whole.set(value, at: pointer)
      settings[key] = whole
    }
  }

  /// What a change of settings did.
  public struct Report: Sendable {
    /// What was done, such as "set theme in Library/Preferences/com.example.notes.plist"; also in the transaction log.
    public var summary: String
    /// The settings file.
    public var file: ContainerPath
    /// What may not be intended.
    public var notes: [String] = []
  }
}

extension SettingsChange {
  /// The settings with the change made, and the summary without the file.
  ///
  /// - Throws: ``DrydockError``: `missing` for what is to be deleted or changed inside, `stepFailed` for a value that
  ///   nothing can be added to.
  func made(
    in settings: PropertyListDictionary, _ redactor: Redactor
  ) throws -> (settings: PropertyListDictionary, summary: String) {
    var settings = settings
    switch self {
    case .set(let address, let value):
      try address.set(value, in: &settings, redactor)
      return (settings, "set \(address.shown(redactor)) in")
    case .add(let address, let value):
      let present = try address.inside.isEmpty ? settings[address.key] : address.value(in: settings, redactor)
      try address.set(present.map { try Self.sum($0, value) } ?? value, in: &settings, redactor)
      return (settings, "added to \(address.shown(redactor)) in")
    case .delete(let addresses):
      for address in addresses {
        _ = try address.value(in: settings, redactor)
        try address.set(nil, in: &settings, redactor)
      }
      let names = addresses.map { $0.shown(redactor) }.joined(separator: ", ")
      return (settings, "deleted \(names) from")
    case .merge(let new, let isReplacing):
      let count = new.count == 1 ? "1 setting" : "\(new.count) settings"
      if isReplacing { return (new, "replaced all settings with \(count) in") }
      settings.merge(new) { _, new in new }
      return (settings, "imported \(count) into")
    }
  }

  private static func sum(_ present: PropertyListValue, _ new: PropertyListValue) throws -> PropertyListValue
  {
    switch (present, new) {
    case (.array(let present), .array(let new)): return .array(present + new)
    case (.array(let present), _): return .array(present + [new])
    case (.dictionary(let present), .dictionary(let new)):
      return .dictionary(present.merging(new) { _, new in new })
    default:
      throw DrydockError(
        .stepFailed,
        "a value of the type \(new.typeName) cannot be added to one of the type \(present.typeName)")
    }
  }
}
