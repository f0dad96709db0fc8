import ArgumentParser
import Drydock
import Foundation

struct DefaultsWriteCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "write", abstract: "Set a setting; creates the settings file if there is none.",
    discussion: """
      Without --type, a value has the type that it has in a migration (YAML 1.2): \
      true, 42 and 0.5 are not strings, but yes and 12:30 are; lists are [a, b], \
      dictionaries {key: value}. Other users can see arguments: give a secret with \
      --value-file.

      Examples:
        drydock defaults write Notes theme dark
        drydock defaults write Notes version 7 --type string
        drydock defaults write Notes accounts Ada --path /0/name
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: "The name of the setting, literally: a dot means nothing.") var key: String
  @Argument(help: "The value.") var value: String?
  @Option("The type, as in migrations; data is in base64; int, long and float are Android's.", value: "type")
  var type: SettingType?
  @Option(
    "Read the value from this file; - is standard input. With --type data its bytes are the value.",
    value: "file")
  var valueFile: String?
  @Flag(help: "Add the elements to the list, or the members to the dictionary, that the setting is.")
  var add = false
  @OptionGroup var part: SettingPartOptions
  @OptionGroup var change: StoreChangeOptions
  @OptionGroup var place: SettingsPlaceOptions

  func run() throws {
    let address = try part.address(key)
    let value = try parsed()
    try change.run(add ? .add(address, value) : .set(address, value), in: place, on: container)
  }

  /// The largest value.
  private static let limit = 16 << 20

  private func parsed() throws -> PropertyListValue {
    switch (value, valueFile) {
    case (let value?, nil): return try SettingType.value(of: value, as: type)
    case (nil, let file?):
      let content = try SecretFile.read(orStandardInput: file, limit: Self.limit)
      if type == .data { return .data(content.withBytes { Array($0) }) }
      guard let text = content.withBytes({ String(validating: $0, as: UTF8.self) }) else {
        throw UsageError("the value is not UTF-8 text; --type data writes any bytes")
      }
      // Files of text end with a line break.
      return try SettingType.value(of: text.hasSuffix("\n") ? String(text.dropLast()) : text, as: type)
    case (nil, nil):
      throw UsageError("no value is given; give it behind the key, or --value-file FILE")
    case (_?, _?): throw UsageError("give either a value or --value-file, not both")
    }
  }
}

struct DefaultsDeleteCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete", abstract: "Delete settings.",
    discussion: """
      Examples:
        drydock defaults delete Notes old_theme old_font
        drydock defaults delete Notes accounts --path /1
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: "The names of the settings, literally: a dot means nothing.") var keys: [String]
  @OptionGroup var part: SettingPartOptions
  @OptionGroup var change: StoreChangeOptions
  @OptionGroup var place: SettingsPlaceOptions

  func run() throws {
    if part.path != nil, keys.count > 1 { throw UsageError("--path is for a single setting") }
    try change.run(.delete(try keys.map(part.address)), in: place, on: container)
  }
}

struct DefaultsImportCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "import", abstract: "Read settings from a property list or JSON file.",
    discussion: """
      Settings of the same name are replaced; all others stay, or are deleted with \
      --replace. The file may have any form that `drydock defaults convert` reads.

      Examples:
        drydock defaults import Notes settings.plist --dry-run
        jq .settings state.json | drydock defaults import Notes -
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: "The file; - is standard input.", completion: .file()) var input: String
  @Flag(help: "Delete the settings that the file does not have.") var replace = false
  @OptionGroup var change: StoreChangeOptions
  @OptionGroup var place: SettingsPlaceOptions

  func run() throws {
    guard case .dictionary(let settings) = try PropertyListInput.read(input) else {
      throw DrydockError(.malformed, "the file has no dictionary of settings on top", path: input)
    }
    try change.run(.merge(settings, replacing: replace), in: place, on: container)
  }
}
