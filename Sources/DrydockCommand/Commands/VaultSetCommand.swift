import ArgumentParser
import Drydock

struct VaultSetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Put an item into a vault; without a vault one is made.",
    discussion: """
      The value comes from standard input or a file, never from an argument, which
      other users could see. It is taken as it is, byte by byte; with --text a line
      break at its end is dropped. A terminal is asked for it.

      Examples:
        drydock vault set Notes com.example.notes/auth --value-file token.bin
        pass show notes | drydock vault set Notes com.example.notes/auth --text \\
          --accessible afterFirstUnlock
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var item: VaultItemOptions
  @Option(help: ArgumentHelp("Take the value from this file, not from standard input.", valueName: "file"))
  var valueFile: String?
  @Flag(help: "The value is text: drop a line break at its end.") var text = false
  @Flag(help: "An empty value is meant so.") var empty = false
  @Option(
    help: ArgumentHelp(
      "What to do when the item is there: fail (by default), keep it, or replace its value.",
      valueName: "action"))
  var ifExists: VaultChange.IfExists = .fail
  @OptionGroup var change: VaultChangeOptions

  func run() throws {
    // Whoever may not write should not have to type a secret first.
    try container.refusePacked()
    let name = try item.name()
    guard try change.deviceKeys.deviceKeys() != nil else {
      throw DrydockError(
        .vaultLocked,
        "a vault needs the device key; give it with --device-key FILE, or name it in DRYDOCK_DEVICE_KEY: `drydock keygen` "
          + "makes one")
    }
    let new = try item.item(name, value: VaultValue(file: valueFile, isText: text, mayBeEmpty: empty).read())
    try change.run(.set(new, ifExists: ifExists), on: container)
  }
}

/// What is said about an item that is put into a vault.
struct VaultItemOptions: ParsableArguments {
  @Argument(help: "The item's name: SERVICE/ACCOUNT, or of an internet password SERVER/ACCOUNT.")
  var itemName: String?

  @Option(help: ArgumentHelp("The service, where it holds a slash.", valueName: "text")) var service: String?
  @Option(help: ArgumentHelp("The account.", valueName: "text")) var account: String?
  @Option(help: ArgumentHelp("The access group.", valueName: "group")) var accessGroup: String?
  @Option(
    name: .customLong("class"),
    help: ArgumentHelp("What kind of secret it is; by default genericPassword.", valueName: "class"))
  var itemClass = VaultItemClass.genericPassword
  @Option(
    help: ArgumentHelp("When it can be read; a new item is whenUnlocked by default.", valueName: "class"))
  var accessible: VaultAccessibility?
  @Flag(help: "The keychain copies it to the owner's other devices.") var synchronizable = false
  @Option(
    help: ArgumentHelp(
      "What a person has to show to read it, such as userPresence or devicePasscode; repeatable.",
      valueName: "flag"))
  var accessControl: [VaultAccessControl.Flag] = []
  @Option(help: ArgumentHelp("A name for people.", valueName: "text")) var label: String?
  @Option(help: ArgumentHelp("What kind of secret it is, for people.", valueName: "text")) var description:
    String?
  @Option(help: ArgumentHelp("A remark.", valueName: "text")) var comment: String?
  @Option(help: ArgumentHelp("An internet password's server.", valueName: "name")) var server: String?
  @Option(help: ArgumentHelp("An internet password's protocol.", valueName: "name")) var `protocol`: String?
  @Option(help: ArgumentHelp("An internet password's port.", valueName: "number")) var port: UInt16?
  @Option(
    name: .customLong("url-path"), help: ArgumentHelp("An internet password's path.", valueName: "path"))
  var urlPath: String?

  func name() throws -> VaultName {
    let single = Self.given([(.service, service), (.account, account), (.server, server)])
    guard itemName != nil || !single.isEmpty else {
      throw UsageError(message: "no item is named; give SERVICE/ACCOUNT, or --service and --account")
    }
    return VaultName(itemName, attributes: single)
  }

  func item(_ name: VaultName, value: SecretBytes) -> NewVaultItem {
    var item = NewVaultItem(name, value: value)
    item.itemClass = itemClass
    item.attributes = Self.given([
      (.accessGroup, accessGroup), (.label, label), (.description, description), (.comment, comment),
      (.protocol, `protocol`), (.port, port.map(String.init)), (.path, urlPath),
    ])
    item.accessibility = accessible
    item.isSynchronizable = synchronizable
    if !accessControl.isEmpty { item.accessControl = VaultAccessControl(accessControl) }
    return item
  }

  private static func given(_ all: [(VaultAttribute, String?)]) -> [VaultAttribute: String] {
    Dictionary(uniqueKeysWithValues: all.compactMap { pair in pair.1.map { (pair.0, $0) } })
  }
}

extension VaultAccessControl.Flag: ExpressibleByArgument {}
