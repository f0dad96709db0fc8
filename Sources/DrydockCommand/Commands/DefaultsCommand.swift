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
        drydock defaults write Notes tags '[work, home]' --suite group.notes
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
      A text is printed as it is when its key is given, so that scripts can use it.

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
    if key == nil, part.path != nil { throw UsageError(message: "--path needs the name of a setting") }
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
    let shown = file.root.sorted().map { key, value in
      (
        key: reveal ? key : redactor.shown(name: key), type: value.typeName,
        value: reveal ? value.description : redactor.shown(value, key: key)
      )
    }
    if common.json {
      let settings = shown.map { ["key": $0.key, "type": $0.type, "value": $0.value] as JSONObject }
      return Output.json(["file": path, "format": file.format.name, "settings": settings])
    }
    Output.table(shown.map { [$0.key.printable, $0.value.printable] }, indent: "")
  }

  private func show(
    _ address: SettingsChange.Address, in file: SettingsFile, at path: ContainerPath, _ redactor: Redactor
  ) throws {
    let value = try address.value(in: file.root, redactor)
    let whole = file.root[address.key] ?? value
    var (text, isShown) = redactor.shown(whole, key: address.key, inside: address.inside)
    if reveal { (text, isShown) = (value.description, true) }
    if common.json {
      return Output.json([
        "file": path, "key": reveal ? address.key : redactor.shown(name: address.key),
        "type": value.typeName, "value": text,
      ])
    }
    if case .string(let plain) = value, isShown { text = plain }
    Output.line(text)
  }
}

extension Container {
  fileprivate func requiredSettings(
    _ place: SettingsPlace, _ options: TransactionOptions
  ) throws -> (path: ContainerPath, file: SettingsFile) {
    if let found = try settingsFile(place, options: options) { return found }
    let path = try place.path(in: self) { _ in false }
    throw DrydockError(.notFound, "there is no settings file", path: path.description)
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
  @Option(
    name: .customLong("as"),
    help: ArgumentHelp("The format: xml (by default), binary, json or openstep.", valueName: "format"))
  var format: ExchangeFormat = .xml
  @OptionGroup var place: SettingsPlaceOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    if output == "-", common.json {
      throw UsageError(
        message: "--json describes the file that was written: name one; --as json exports JSON")
    }
    let place = try place.place()
    try container.reading(common.configuration(), expansion) { opened in
      let (path, file) = try opened.requiredSettings(place, container.wait.transaction())
      let value = PropertyListValue.dictionary(file.root)
      if output == "-", isatty(STDOUT_FILENO) == 1, SecretPattern.isSecret(value) {
        throw UsageError(
          message:
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
      Output.message("wrote \(Output.count(file.root.count, "setting")) to \(output)")
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
  @Option(
    name: .customLong("as"),
    help: ArgumentHelp("The format: xml, binary, json or openstep.", valueName: "format"))
  var format: ExchangeFormat
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write to this new file; by default standard output.", valueName: "file"),
    completion: .file())
  var output: String?
  @Flag(help: "Replace the file. Not for a file of a container: an app may be using it.") var inPlace = false
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    if inPlace, output != nil || file == "-" {
      throw UsageError(message: "--in-place replaces the file that is named: leave --output out")
    }
    if output ?? "-" == "-", !inPlace, common.json {
      throw UsageError(message: "--json describes the file that was written: give --output FILE")
    }
    let value = try PropertyListInput.read(file)
    let bytes = try DrydockError.locating(file) { try format.encode(value) }
    if inPlace {
      try PropertyListInput.replace(file, with: bytes)
    } else {
      if output == nil, format == .binary, isatty(STDOUT_FILENO) == 1 {
        throw UsageError(
          message: "a binary property list is not for a terminal; pipe it, or give --output FILE")
      }
      try PropertyListInput.write(bytes, to: output ?? "-")
    }
    guard let target = inPlace ? file : output else { return }
    if common.json {
      return Output.json(["output": target, "format": format.rawValue, "bytes": bytes.count])
    }
    Output.message("wrote \(Output.count(bytes.count, "byte")) to \(target)")
  }
}
