import ArgumentParser
import Drydock
import Foundation

struct VaultListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the items of a vault: everything but their values.",
    discussion: """
      Of a value its length is shown, and a fingerprint: equal values have equal
      fingerprints in one list, and other ones the next time.

      Example: drydock vault list Notes --device-key device.txt
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var vault: ContainerPath?
    var device: String?
    var recipients: [String]
    var items: [ShownVaultItem]
  }

  func run() throws { try container.reading(common.configuration(), expansion, list) }

  private func list(_ opened: Container) throws {
    let options = try container.transaction().with(deviceKeys)
    let vault = try opened.vault(options: options)
    let items = vault?.sorted.map { ShownVaultItem($0, options.redactor) } ?? []
    if common.json {
      return Output.json(
        Result(
          vault: vault.map { _ in opened.vaultPath }, device: vault?.device,
          recipients: vault?.recipients.map(\.description) ?? [], items: items))
    }
    guard let vault else {
      return Output.advice("no vault; `drydock vault set` makes one at \(opened.vaultPath)")
    }
    Output.line(
      "\(opened.vaultPath): \(Output.count(items.count, "item")), sealed to "
        + Output.count(vault.recipients.count, "key"))
    Output.table(items.map(\.row))
  }
}

struct VaultGetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Print an item's value, to a pipe or a file.",
    discussion: """
      The value is given as it is, byte by byte, without a line break. A terminal
      gets it with --reveal only.

      Examples:
        drydock vault get Notes com.example.notes/auth | pbcopy
        drydock vault get Notes com.example.notes/auth --output token.txt
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Flag(help: "Show the value on a terminal.") var reveal = false
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write the value to this file, which must not exist; only its owner can read it.", valueName: "file"))
  var output: String?
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var expansion: ExpansionOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var item: ShownVaultItem
    var base64: String, text: String?
  }

  func run() throws {
    let isShown = output == nil && isatty(STDOUT_FILENO) == 1
    guard !isShown || reveal else {
      throw UsageError(
        message:
          "standard output is a terminal, where others can read the value; pipe it, give --output FILE, or --reveal"
      )
    }
    try container.reading(common.configuration(), expansion) { opened in
      let options = try container.transaction().with(deviceKeys)
      let item = try opened.vaultItem(address.address(), options: options)
      try write(item, options.redactor, isShown: isShown)
    }
  }

  private func write(_ item: VaultItem, _ redactor: Redactor, isShown: Bool) throws {
    let text = item.value.withBytes { String(validating: $0, as: UTF8.self) }
    if let output {
      try SecretFile.create(output, item.value)
      if common.json { return Output.json(ShownVaultItem(item, redactor)) }
      return Output.note("drydock: wrote \(item.value.count) bytes to \(output)")
    }
    if common.json {
      return Output.json(
        Result(
          item: ShownVaultItem(item, redactor),
          base64: item.value.withBytes { Data($0).base64EncodedString() }, text: text))
    }
    guard isShown else { return item.value.withBytes { Output.bytes($0) } }
    guard let text else {
      throw UsageError(message: "the value of \(item) is no text; pipe it, or give --output FILE")
    }
    Output.line(text)
  }
}
