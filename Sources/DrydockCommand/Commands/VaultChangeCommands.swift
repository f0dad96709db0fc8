import ArgumentParser
import Drydock
import Foundation

struct VaultSetCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract:
      "Add a vault item, or with --if-exists replace set its value; creates the vault if there is none.",
    discussion: """
      The value comes from standard input or a file, never from an argument, which \
      other users could see. It is stored byte for byte; with --text a line break at \
      its end is dropped. On a terminal, it is asked for.

      Examples, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault set Notes com.example.notes/auth --value-file token.bin
        pass show notes | drydock vault set Notes com.example.notes/auth --text \\
          --accessible afterFirstUnlock
      """)

  @OptionGroup var container: ContainerOptions
  @Argument(help: "The item's name: SERVICE/ACCOUNT, or of an internet password SERVER/ACCOUNT.")
  var itemName: String?
  @OptionGroup(title: OptionTitle.attributes) var item: VaultItemOptions
  @Option("Read the value from this file, not from standard input.", value: "file") var valueFile: String?
  @Flag(help: "The value is text: drop a line break at its end.") var text = false
  @Flag(help: "Allow an empty value.") var empty = false
  @Option("What to do if the item exists: fail, keep it, or replace its value.", value: "action")
  var ifExists: IfExists = .fail
  @OptionGroup var change: StoreChangeOptions

  func run() throws {
    // Refuse before the user types a secret.
    try container.refuseForeign()
    let name = try item.name(itemName)
    guard try change.deviceKeys.deviceKeys() != nil else {
      throw DrydockError(.vaultLocked, "a vault needs the device key")
    }
    try change.run(.set(item.item(name, value: value()), ifExists: ifExists), on: container)
  }

  /// The largest value of an item.
  private static let limit = 16 << 20

  private func value() throws -> SecretBytes {
    let value = try trimmed(given())
    // As a rule an empty value is that of a command in front of the pipe that failed.
    guard value.count > 0 || empty else {
      throw UsageError("the value is empty; give --empty when that is meant, nothing was changed")
    }
    return value
  }

  private func given() throws -> SecretBytes {
    if let valueFile { return try SecretFile.read(valueFile, limit: Self.limit) }
    if isatty(STDIN_FILENO) == 1 {
      guard Passphrase.canAsk else {
        throw UsageError("no value is given; pipe it in, or give --value-file FILE")
      }
      return try Passphrase.ask("the item's value")
    }
    return try SecretFile.readStandardInput(limit: Self.limit)
  }

  private func trimmed(_ value: SecretBytes) throws -> SecretBytes {
    try value.withBytes { bytes in
      let ending = bytes.suffix(2).elementsEqual("\r\n".utf8) ? 2 : bytes.last == UInt8(ascii: "\n") ? 1 : 0
      guard text else {
        if ending > 0 {
          Output.note("the value ends with a line break, which is part of it; --text drops it")
        }
        return value
      }
      guard value.isText else {
        throw UsageError("the value is not UTF-8 text; leave --text out, nothing was changed")
      }
      return SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes.dropLast(ending)))
    }
  }
}

/// The item that is added to a vault.
struct VaultItemOptions: ParsableArguments {
  @Option("The service, where it contains a slash.", value: "text") var service: String?
  @Option("The account.", value: "text") var account: String?
  @Option("The access group.", value: "group") var accessGroup: String?
  @Option(name: .customLong("class"), "What kind of secret it is.", value: "class")
  var itemClass = VaultItem.Class.genericPassword
  @Option("When it can be read (default for a new item: whenUnlocked).", value: "accessibility")
  var accessible: VaultItem.Accessibility?
  @Flag(help: "The keychain copies it to the owner's other devices.") var synchronizable = false
  @Option(
    "What a user must present to read it, such as userPresence or devicePasscode; repeatable.", value: "flag")
  var accessControl: [VaultItem.AccessControl.Flag] = []
  @Option("A label.", value: "text") var label: String?
  @Option("A description.", value: "text") var description: String?
  @Option("A comment.", value: "text") var comment: String?
  @Option("An internet password's server.", value: "name") var server: String?
  @Option("An internet password's protocol.", value: "name") var `protocol`: String?
  @Option("An internet password's port.", value: "number") var port: UInt16?
  @Option(name: .customLong("url-path"), "An internet password's path.", value: "path") var urlPath: String?

  func name(_ itemName: String?) throws -> VaultChange.Name {
    let single = VaultItem.Attribute.given([(.service, service), (.account, account), (.server, server)])
    guard itemName != nil || !single.isEmpty else {
      throw UsageError("no item is named; give SERVICE/ACCOUNT, or --service and --account")
    }
    return VaultChange.Name(itemName, attributes: single)
  }

  func item(_ name: VaultChange.Name, value: SecretBytes) -> VaultChange.NewItem {
    var item = VaultChange.NewItem(name, value: value)
    item.itemClass = itemClass
    item.attributes = VaultItem.Attribute.given([
      (.accessGroup, accessGroup), (.label, label), (.description, description), (.comment, comment),
      (.protocol, `protocol`), (.port, port.map(String.init)), (.path, urlPath),
    ])
    item.accessibility = accessible
    item.isSynchronizable = synchronizable
    if !accessControl.isEmpty { item.accessControl = VaultItem.AccessControl(accessControl) }
    return item
  }
}

extension VaultItem.AccessControl.Flag: ExpressibleByArgument {}

struct VaultRemoveCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove an item from a vault.",
    discussion: """
      Example, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault remove Notes com.example.notes/auth
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @OptionGroup var change: StoreChangeOptions

  func run() throws { try change.run(.remove(address.address()), on: container) }
}

struct VaultRenameCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename", abstract: "Give an item another name, or another access group.",
    discussion: """
      The new name is SERVICE/ACCOUNT, of an internet password SERVER/ACCOUNT; \
      without a slash the account stays.

      Examples, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault rename Notes com.example.notes/auth com.example.notes/token
        drydock vault rename Notes com.example.notes \\
          --to-access-group group.com.example.notes
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Argument(help: "The new name.") var newName: String?
  @Option("The new service; '' for none.", value: "text") var toService: String?
  @Option("The new account; '' for none.", value: "text") var toAccount: String?
  @Option("The new access group; '' for none.", value: "group") var toAccessGroup: String?
  @Option("The new server.", value: "name") var toServer: String?
  @OptionGroup var change: StoreChangeOptions

  func run() throws {
    let attributes = VaultItem.Attribute.given([
      (.service, toService), (.account, toAccount), (.accessGroup, toAccessGroup), (.server, toServer),
    ])
    guard newName != nil || !attributes.isEmpty else {
      throw UsageError("no new name is given; give it behind the item's, or --to-account and the like")
    }
    let name = VaultChange.Name(newName, attributes: attributes)
    try change.run(.rename(address.address(), to: name), on: container)
  }
}

struct VaultSetAccessibilityCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "set-accessibility",
    abstract: "Change when an item can be read, and so how backups treat it.",
    discussion: """
      As in a keychain, a new item is written, read back and compared, and only then \
      the old one is removed.

      Example, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault set-accessibility Notes com.example.notes/auth whenUnlocked
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Argument(help: "When the item can be read; also by the keychain's code.")
  var accessibility: VaultItem.Accessibility
  @OptionGroup var change: StoreChangeOptions

  func run() throws { try change.run(.setAccessibility(address.address(), accessibility), on: container) }
}

struct VaultSetAccessControlCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "set-access-control",
    abstract: "Change what a user must present to read an item.",
    discussion: """
      The flags given replace those that the item has. An item under access control \
      stays on its device, and cannot be synchronizable.

      Examples, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault set-access-control Notes com.example.notes/auth \\
          --access-control userPresence
        drydock vault set-access-control Notes com.example.notes/auth --none
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Option("A flag, such as userPresence or devicePasscode; repeatable.", value: "flag")
  var accessControl: [VaultItem.AccessControl.Flag] = []
  @Flag(help: "Remove the access control.") var none = false
  @OptionGroup var change: StoreChangeOptions

  func run() throws {
    guard none == accessControl.isEmpty else {
      throw UsageError("give --access-control FLAG, or --none to remove the access control")
    }
    let control = none ? nil : VaultItem.AccessControl(accessControl)
    try change.run(.setAccessControl(address.address(), control), on: container)
  }
}

struct VaultSetSynchronizableCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "set-synchronizable",
    abstract: "Change whether a keychain copies an item to the user's other devices.",
    discussion: """
      This is a part of the item's identity: another item may have the name already. \
      A synchronizable item is whenUnlocked or afterFirstUnlock, and not under access \
      control.

      Example, with DRYDOCK_DEVICE_KEY=device.key:
        drydock vault set-synchronizable Notes com.example.notes/auth true
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Argument(help: ArgumentHelp("Whether it is synchronizable: true or false.", valueName: "value"))
  var isSynchronizable: Bool
  @OptionGroup var change: StoreChangeOptions

  func run() throws { try change.run(.setSynchronizable(address.address(), isSynchronizable), on: container) }
}

struct VaultRekeyCommand: StoreChangeCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Encrypt a vault to other device keys.",
    discussion: """
      From then on only the new keys open the vault; --device-key names the key that \
      opens it now. This revokes nothing: the old keys still open every copy \
      made before, such as the vaults in archives and in the undo log. If an old key \
      was stolen, change the secrets as well.

      Example:
        drydock vault rekey Notes --device-key old.txt --new-device-key new.txt
      """)

  @OptionGroup var container: ContainerOptions
  @Option(
    name: .customLong("new-device-key"), "A file with a key to encrypt the vault to; repeatable.",
    value: "file")
  var newKeys: [String] = []
  @Option(name: .customLong("recipient"), "A public key to encrypt the vault to; repeatable.", value: "age1…")
  var recipients: [String] = []
  @OptionGroup var change: StoreChangeOptions

  func run() throws {
    let keys = try DeviceKeys(files: newKeys)
    let all =
      try (keys?.recipients ?? []) + recipients.map { try RecipientOptions.recipient($0, "--recipient") }
    guard !all.isEmpty else {
      throw UsageError("no new key is given; give --new-device-key FILE, or --recipient age1…")
    }
    try change.run(.rekey(all), on: container, newKeys: keys)
  }
}
