import ArgumentParser
import Drydock
import Foundation

struct DefaultsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "defaults", abstract: "Show and change an app's settings, key by key.",
    discussion: """
      Like macOS's `defaults` and `plutil`, for a container. Each change is one \
      transaction, which `drydock rollback` undoes. A settings file keeps its format. \
      Values that look like secrets are not shown. With --json each command prints \
      one JSON document.

      Examples:
        drydock defaults read Notes theme
        drydock defaults write Notes theme dark
        drydock defaults write Notes tags '[work]' --suite group.com.example.notes
        drydock defaults export Notes settings.plist
      """,
    subcommands: [
      DefaultsReadCommand.self, DefaultsWriteCommand.self, DefaultsDeleteCommand.self,
      DefaultsExportCommand.self, DefaultsImportCommand.self, DefaultsConvertCommand.self,
    ])
}

struct DefaultsReadCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "read", abstract: "Print all settings, or the value of one.",
    discussion: """
      With a key, a string is printed without quotes, so that scripts can use it. A \
      value that looks like a secret needs --reveal.

      Examples:
        drydock defaults read Notes
        drydock defaults read Notes accounts --path /0/name
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: "The name of a setting, literally: a dot means nothing.") var key: String?
  @OptionGroup var part: SettingPartOptions
  @Flag(help: "Show values that look like secrets.") var reveal = false
  @OptionGroup var place: SettingsPlaceOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    if key == nil, part.path != nil { throw UsageError("--path needs the name of a setting") }
    let place = try place.place()
    try container.reading(common.configuration(), expansion) { opened in
      let options = try container.wait.transaction()
      let (path, file) = try opened.requiredSettings(place, options)
      let redactor = options.redactor.knowing([file.root])
      try DrydockError.locating(path.description) {
        if let key { return try show(part.address(key), in: file, at: path, redactor) }
        show(file, at: path, redactor)
      }
    }
  }

  private func show(_ file: SettingsFile, at path: ContainerPath, _ redactor: Redactor) {
    let settings = file.root.sorted()
    if common.json {
      return Output.json([
        "file": path, "format": file.format.name,
        "settings": settings.map { key, value in
          document(key, value, redactor.shown(value, key: key, inside: []), redactor)
        },
      ])
    }
    Output.table(
      settings.map { key, value in
        reveal
          ? [key.printable, value.description.printable]
          : [redactor.shown(name: key).printable, redactor.shown(value, key: key).printable]
      }, indent: "")
  }

  /// A setting with its value in JSON's types, or with a redacted description where a part of it looks like a secret.
  private func document(
    _ key: String, _ value: PropertyListValue, _ shown: (text: String, isShown: Bool), _ redactor: Redactor
  ) -> ResultObject {
    var document: ResultObject = ["key": reveal ? key : redactor.shown(name: key), "type": value.typeName]
    if reveal || shown.isShown {
      document["value"] = JSONSettingValue(value: value)
    } else {
      (document["value"], document["is_secret"]) = (shown.text, true)
    }
    return document
  }

  private func show(
    _ address: SettingsChange.Address, in file: SettingsFile, at path: ContainerPath, _ redactor: Redactor
  ) throws {
    let value = try address.value(in: file.root, redactor)
    let whole = file.root[address.key] ?? value
    let shown = redactor.shown(whole, key: address.key, inside: address.inside)
    // A program would take the redacted text for the value.
    guard reveal || shown.isShown || !common.json && isatty(STDOUT_FILENO) == 1 else {
      throw DrydockError(
        .permission, "the value looks like a secret, and is not printed to a file or pipe: --reveal prints it"
      )
    }
    if common.json {
      var document = document(address.key, value, shown, redactor)
      document["file"] = path
      return Output.json(document)
    }
    if case .string(let plain) = value, reveal || shown.isShown { return Output.line(plain) }
    Output.line(reveal ? value.description : shown.text)
  }
}

/// A value of a setting in JSON: dates as text in ISO 8601, data in base64.
private struct JSONSettingValue: Encodable {
  var value: PropertyListValue

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch value {
    case .string(let text): try container.encode(text)
    case .boolean(let value): try container.encode(value)
    case .integer(let number), .long(let number): try container.encode(number)
    case .int(let number): try container.encode(number)
    case .unsigned(let number): try container.encode(number)
    case .real(let number) where number.isFinite: try container.encode(number)
    case .single(let number) where number.isFinite: try container.encode(number)
    case .date(let date): try container.encode(date)
    case .data(let bytes): try container.encode(Data(bytes))
    case .array(let values): try container.encode(values.map { JSONSettingValue(value: $0) })
    case .set(let set): try container.encode(set.strings)
    case .dictionary(let values):
      // As a dictionary its keys stay as they are.
      let members = values.sorted().map { ($0.key, JSONSettingValue(value: $0.value)) }
      try container.encode(Dictionary(members) { $1 })
    default: try container.encode(value.description)
    }
  }
}

extension Container {
  fileprivate func requiredSettings(
    _ place: SettingsPlace, _ options: TransactionOptions
  ) throws -> (path: ContainerPath, file: SettingsFile) {
    if let found = try settingsFile(place, options: options) { return found }
    let path = try place.path(in: self) { _ in false }
    throw DrydockError(.notFound, "the settings file does not exist", path: path.description)
  }
}

extension SettingsFile.Format {
  /// The name in JSON.
  fileprivate var name: String {
    if case .propertyList(let format) = self { format.rawValue } else { description }
  }
}

struct DefaultsExportCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "export", abstract: "Write the settings to a file, as they are.",
    discussion: """
      The file has all values, secrets too: only its owner can read it.

      Examples:
        drydock defaults export Notes settings.plist
        drydock defaults export Notes - --as json | jq .theme
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: "A new file; - is standard output.", completion: .file())
  var output: String
  @Option(name: .customLong("as"), "The format.", value: "format") var format: ExchangeFormat = .xml
  @OptionGroup var place: SettingsPlaceOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    if output == "-", common.json {
      throw UsageError("--json describes the file that was written: name one; --as json exports JSON")
    }
    let place = try place.place()
    try container.reading(common.configuration(), expansion) { opened in
      let (path, file) = try opened.requiredSettings(place, container.wait.transaction())
      let value = PropertyListValue.dictionary(file.root)
      if output == "-", isatty(STDOUT_FILENO) == 1, SecretPattern.isSecret(value) {
        throw UsageError(
          "standard output is a terminal, and the settings contain secrets; pipe it, or give a file")
      }
      let bytes = try DrydockError.locating(path.description) { try format.encode(value) }
      try PropertyListInput.write(bytes, to: output)
      if output == "-" { return }
      if common.json {
        return Output.json([
          "file": path, "output": output, "format": format.rawValue, "keys": file.root.count,
        ])
      }
      Output.message("wrote \(NumberText.count(file.root.count, "setting")) to \(output)")
    }
  }
}

struct DefaultsConvertCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "convert", abstract: "Convert a property list or JSON file to another format.",
    discussion: """
      The file may have any form: a property list in XML, binary or OpenStep text, in \
      UTF-8 or UTF-16, a strings file, or JSON. A conversion that would lose a value's \
      type is refused.

      Examples:
        drydock defaults convert settings.plist --as xml
        drydock defaults convert old.plist --as binary --in-place
      """)

  @Argument(help: "The file; - is standard input.", completion: .file()) var file: String
  @Option(name: .customLong("as"), "The format.", value: "format") var format: ExchangeFormat
  @Option(name: [.short, .long], "Write to this new file (default: standard output).", value: "file")
  var output: String?
  @Flag(help: "Replace the file. Not for a file of a container: an app may be using it.") var inPlace = false
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    if inPlace, output != nil || file == "-" {
      throw UsageError("--in-place replaces the file that is named: leave --output out")
    }
    if output ?? "-" == "-", !inPlace, common.json {
      throw UsageError("--json describes the file that was written: give --output FILE")
    }
    let value = try PropertyListInput.read(file)
    let bytes = try DrydockError.locating(file) { try format.encode(value) }
    if inPlace {
      try PropertyListInput.replace(file, with: bytes)
    } else {
      if output == nil, format == .binary, isatty(STDOUT_FILENO) == 1 {
        throw UsageError("a binary property list is not for a terminal; pipe it, or give --output FILE")
      }
      try PropertyListInput.write(bytes, to: output ?? "-")
    }
    guard let target = inPlace ? file : output else { return }
    if common.json {
      return Output.json(["output": target, "format": format.rawValue, "bytes": bytes.count])
    }
    Output.message("wrote \(NumberText.count(bytes.count, "byte")) to \(target)")
  }
}
