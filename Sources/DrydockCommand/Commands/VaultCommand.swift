import ArgumentParser
import Drydock

struct VaultCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "vault", abstract: "Look into a container's vault of secrets, and change it.",
    discussion: """
      The vault is a file of the container, encrypted to the key of its device. Its
      items have the meaning of the Apple keychain's. Each change is one transaction,
      which `drydock rollback` undoes. With --json each prints one JSON document.

      Examples:
        drydock vault list Notes --device-key device.txt
        drydock vault set Notes com.example.notes/auth --value-file token.txt
        drydock vault get Notes com.example.notes/auth | pbcopy
      """,
    subcommands: [
      VaultListCommand.self, VaultGetCommand.self, VaultSetCommand.self, VaultRemoveCommand.self,
      VaultRenameCommand.self, VaultSetAccessibilityCommand.self, VaultRekeyCommand.self,
    ])
}

extension VaultAccessibility: ExpressibleByArgument {
  /// A class by its name or the keychain's code.
  package init?(argument: String) { self.init(argument) }
}

extension VaultItemClass: ExpressibleByArgument {
  /// A class by its name or the keychain's code.
  package init?(argument: String) { self.init(argument) }
}

extension VaultChange.IfExists: ExpressibleByArgument {}

/// Which item is meant.
struct VaultAddressOptions: ParsableArguments {
  @Argument(
    help: "The item: its name as `vault list` prints it, SERVICE/ACCOUNT, or the service or server alone.")
  var name: String?

  @Option(help: ArgumentHelp("Only an item of this service; '' for one without.", valueName: "text"))
  var service: String?
  @Option(help: ArgumentHelp("Only an item of this account; '' for one without.", valueName: "text"))
  var account: String?
  @Option(help: ArgumentHelp("Only an item of this server.", valueName: "name"))
  var server: String?
  @Option(help: ArgumentHelp("Only an item of this access group; '' for one without.", valueName: "group"))
  var accessGroup: String?
  @Option(
    name: .customLong("class"),
    help: ArgumentHelp("Only an item of this class.", valueName: "class"))
  var itemClass: VaultItemClass?
  @Flag(inversion: .prefixedNo, help: "Only an item that is synchronizable, or is not.")
  var synchronizable: Bool?

  /// - Throws: `UsageError` when nothing is said.
  func address() throws -> VaultAddress {
    let given: [(VaultAttribute, String?)] = [
      (.service, service), (.account, account), (.server, server), (.accessGroup, accessGroup),
    ]
    let attributes = given.compactMap { pair in pair.1.map { (pair.0, $0) } }
    let address = VaultAddress(
      name: name, itemClass: itemClass, attributes: Dictionary(uniqueKeysWithValues: attributes),
      isSynchronizable: synchronizable)
    guard !address.isEmpty else {
      throw UsageError(message: "no item is named; give SERVICE/ACCOUNT, or --service and --account")
    }
    return address
  }
}

/// One item as results show it: everything but the value.
struct ShownVaultItem: Encodable {
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
    // What is for people may have a secret in it; what the item is called by has to be told.
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
}

extension ShownVaultItem {
  /// The item as a line of a table.
  var row: [String] {
    let control = accessControl.isEmpty ? [] : ["needs \(accessControl.joined(separator: ", "))"]
    let label = attributes[VaultAttribute.label.rawValue].map { ["\"\($0)\""] } ?? []
    let times = [created.map { "made \($0)" }, modified.map { "changed \($0)" }].compactMap { $0 }
    return [name, `class`, accessible, value, (control + label + times).joined(separator: ", ").printable]
  }
}
