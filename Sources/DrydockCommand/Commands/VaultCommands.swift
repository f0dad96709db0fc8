import ArgumentParser
import Drydock
import Foundation

struct VaultCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vault", abstract: "Show and change a container's vault of secrets.",
    discussion: """
      The vault is a file of the container, encrypted to the key of its device. Its \
      items are those of an Apple keychain. Each change is one transaction, which \
      `drydock rollback` undoes. With --json each command prints one JSON document.

      Examples, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault list Notes
        drydock vault set Notes com.example.notes/auth --value-file token.txt
        drydock vault get Notes com.example.notes/auth | pbcopy
      """,
    subcommands: [
      VaultListCommand.self, VaultGetCommand.self, VaultSetCommand.self, VaultRemoveCommand.self,
      VaultRenameCommand.self, VaultSetAccessibilityCommand.self, VaultSetAccessControlCommand.self,
      VaultSetSynchronizableCommand.self, VaultRekeyCommand.self,
    ])
}

extension VaultItem.Accessibility: ExpressibleByArgument {
  /// A class by its name or the keychain's code.
  public init?(argument: String) { self.init(argument) }
}

extension VaultItem.Class: ExpressibleByArgument {
  /// A class by its name or the keychain's code.
  public init?(argument: String) { self.init(argument) }
}

extension IfExists: ExpressibleByArgument {}

extension VaultItem.Attribute {
  /// Those that were given.
  static func given(_ all: [(VaultItem.Attribute, String?)]) -> [VaultItem.Attribute: String] {
    Dictionary(uniqueKeysWithValues: all.compactMap { pair in pair.1.map { (pair.0, $0) } })
  }
}

struct VaultAddressOptions: ParsableArguments {
  @Argument(
    help: "The item: its name as `vault list` prints it, SERVICE/ACCOUNT, or the service or server alone.")
  var name: String?

  @Option("Only an item of this service; '' for one without.", value: "text") var service: String?
  @Option("Only an item of this account; '' for one without.", value: "text") var account: String?
  @Option("Only an item of this server.", value: "name") var server: String?
  @Option("Only an item of this access group; '' for one without.", value: "group") var accessGroup: String?
  @Option(name: .customLong("class"), "Only an item of this class.", value: "class")
  var itemClass: VaultItem.Class?
  @Flag(inversion: .prefixedNo, help: "Only an item that is synchronizable, or is not.")
  var synchronizable: Bool?

  func address() throws -> VaultItem.Address {
    let address = VaultItem.Address(
      name: name, itemClass: itemClass,
      attributes: VaultItem.Attribute.given([
        (.service, service), (.account, account), (.server, server), (.accessGroup, accessGroup),
      ]), isSynchronizable: synchronizable)
    guard !address.isEmpty else {
      throw UsageError("no item is named; give SERVICE/ACCOUNT, or --service and --account")
    }
    return address
  }
}

/// An item in results: everything but the value.
struct ShownVaultItem: Encodable, Sendable {
  var name: String
  var `class`: String
  var attributes: [String: String]
  var accessible: String
  var synchronizable: Bool
  var accessControl: [String]
  var created: String?, modified: String?
  var bytes: Int
  var isText: Bool
  var value: String

  init(_ item: VaultItem, _ redactor: Redactor) {
    name = item.description
    self.class = item.itemClass.rawValue
    // Free text may contain a secret; the attributes that name the item must be shown.
    let named = Set(item.itemClass.identifying)
    attributes = Dictionary(
      uniqueKeysWithValues: item.attributes.map { attribute, text in
        (attribute.rawValue, named.contains(attribute) ? text : redactor.shown(name: text))
      })
    accessible = item.accessibility.rawValue
    synchronizable = item.isSynchronizable
    accessControl = item.accessControl?.flags ?? []
    (created, modified) = (item.created, item.modified)
    bytes = item.value.count
    isText = item.value.isText
    value = redactor.shown(secret: item.value)
  }

  /// The item as a line of a table.
  var row: [String] {
    let control = accessControl.isEmpty ? [] : ["needs \(accessControl.joined(separator: ", "))"]
    let label = attributes[VaultItem.Attribute.label.rawValue].map { ["\"\($0)\""] } ?? []
    let times = [created.map { "made \($0)" }, modified.map { "changed \($0)" }].compactMap { $0 }
    return [name, `class`, accessible, value, (control + label + times).joined(separator: ", ").printable]
  }
}

struct VaultListCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the items of a vault: everything but their values.",
    discussion: """
      Of each value, its length and a fingerprint are shown: within one list, equal \
      values have equal fingerprints.

      Example: drydock vault list Notes --device-key device.key
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws { try container.reading(common.configuration(), expansion, list) }

  private func list(_ opened: Container) throws {
    let options = try container.wait.transaction(deviceKeys)
    let vault = try opened.vault(options: options)
    let items = vault?.sorted.map { ShownVaultItem($0, options.redactor) } ?? []
    if common.json {
      return Output.json([
        "vault": vault.map { _ in opened.vaultPath }, "device": vault?.device,
        "recipients": vault?.recipients.map(\.description) ?? [], "items": items,
      ])
    }
    guard let vault else {
      return Output.advice("no vault; `drydock vault set` makes one at \(opened.vaultPath)")
    }
    Output.line(
      "\(opened.vaultPath): \(NumberText.count(items.count, "item")), sealed to "
        + NumberText.count(vault.recipients.count, "key"))
    Output.table(items.map(\.row))
  }
}

struct VaultGetCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "get", abstract: "Print an item's value, to a pipe or a file.",
    discussion: """
      The value is printed byte for byte, without a line break; on a terminal only \
      with --reveal.

      Examples, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault get Notes com.example.notes/auth | pbcopy
        drydock vault get Notes com.example.notes/auth --output token.txt
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Flag(help: "Show the value on a terminal.") var reveal = false
  @Option(
    name: [.short, .long], "Write the value to this new file, which only its owner can read.", value: "file")
  var output: String?
  @OptionGroup(title: OptionTitle.keys) var deviceKeys: DeviceKeyOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    let isShown = output == nil && isatty(STDOUT_FILENO) == 1
    guard !isShown || reveal else {
      throw UsageError(
        "standard output is a terminal, where others can read the value; pipe it, give --output FILE, or --reveal"
      )
    }
    try container.reading(common.configuration(), expansion) { opened in
      let options = try container.wait.transaction(deviceKeys)
      let item = try opened.vaultItem(address.address(), options: options)
      try write(item, options.redactor, isShown: isShown)
    }
  }

  private func write(_ item: VaultItem, _ redactor: Redactor, isShown: Bool) throws {
    let text = item.value.withBytes { String(validating: $0, as: UTF8.self) }
    if let output {
      try SecretFile.create(output, item.value)
      if common.json { return Output.json(encoding: ShownVaultItem(item, redactor)) }
      return Output.message("wrote \(item.value.count) bytes to \(output)")
    }
    if common.json {
      let base64 = item.value.withBytes { Data($0).base64EncodedString() }
      return Output.json(["item": ShownVaultItem(item, redactor), "base64": base64, "text": text])
    }
    guard isShown else { return item.value.withBytes { Output.bytes($0) } }
    guard let text else {
      throw UsageError("the value of \(item) is not text; pipe it, or give --output FILE")
    }
    Output.line(text)
  }
}
