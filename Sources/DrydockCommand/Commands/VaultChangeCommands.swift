import ArgumentParser
import Drydock

/// What every command takes that changes a vault, but for the container, which comes first.
struct VaultChangeOptions: ParsableArguments {
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @OptionGroup var deviceKeys: DeviceKeyOptions
  @OptionGroup var use: UseOptions
  @OptionGroup var common: CommonOptions

  struct Result: Encodable {
    var transaction: String? = nil
    var summary: String
    var item: ShownVaultItem?
    var recipients: [String]
    var notes: [String]
    var difference: ContainerDifference? = nil
    var conflicts: [ContainerPath] = []
    var unseenProcesses: UnseenProcesses? = nil
  }

  /// Makes a change, or shows what it would change.
  func run(_ change: VaultChange, on container: ContainerOptions, newKeys: DeviceKeys? = nil) throws {
    let opened = try container.open(common.configuration())
    let options = try container.transaction().with(deviceKeys).with(use)
    if dryRun {
      let outcome = try opened.dryRunVaultChange(change, newKeys: newKeys, options: options)
      var result = Result(outcome.value, options.redactor)
      result.difference = outcome.difference
      for note in outcome.value.notes { Output.note("drydock: note: \(note)") }
      if common.json { return Output.json(result) }
      Output.line("dry run: nothing was changed; it would have \(outcome.value.summary)")
      return DifferenceText.write(outcome.difference)
    }
    let outcome = try opened.changeVault(change, newKeys: newKeys, options: options)
    ContainerOptions.tell(outcome.recovered, opened)
    for note in outcome.value.notes + outcome.allNotes { Output.note("drydock: note: \(note)") }
    if common.json {
      var result = Result(outcome.value, options.redactor)
      (result.transaction, result.conflicts) = (outcome.transaction?.description, outcome.conflicts)
      result.unseenProcesses = outcome.unseen
      Output.json(result)
    } else {
      Output.line(outcome.value.summary)
      if let transaction = outcome.transaction {
        Output.advice("transaction \(transaction); `drydock rollback` undoes it")
      } else {
        Output.line("nothing had to be changed")
      }
      for path in outcome.conflicts {
        Output.note("drydock: the app changed it at the same moment, kept aside: \(path)")
      }
    }
    try outcome.throwUnlessClean()
  }
}

extension VaultChangeOptions.Result {
  init(_ report: VaultChangeReport, _ redactor: Redactor) {
    summary = report.summary
    item = report.item.map { ShownVaultItem($0, redactor) }
    recipients = report.recipients.map(\.description)
    notes = report.notes
  }
}

struct VaultRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Take an item out of a vault.",
    discussion: "Example: drydock vault remove Notes com.example.notes/auth")

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @OptionGroup var change: VaultChangeOptions

  func run() throws { try change.run(.remove(address.address()), on: container) }
}

struct VaultRenameCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename", abstract: "Give an item another name, or another access group.",
    discussion: """
      The new name is SERVICE/ACCOUNT, of an internet password SERVER/ACCOUNT;
      without a slash the account stays.

      Examples:
        drydock vault rename Notes com.example.notes/auth com.example.notes/token
        drydock vault rename Notes com.example.notes --to-access-group group.notes
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Argument(help: "The new name.") var newName: String?
  @Option(help: ArgumentHelp("The new service; '' for none.", valueName: "text")) var toService: String?
  @Option(help: ArgumentHelp("The new account; '' for none.", valueName: "text")) var toAccount: String?
  @Option(help: ArgumentHelp("The new access group; '' for none.", valueName: "group")) var toAccessGroup:
    String?
  @Option(help: ArgumentHelp("The new server.", valueName: "name")) var toServer: String?
  @OptionGroup var change: VaultChangeOptions

  func run() throws {
    let given: [(VaultAttribute, String?)] = [
      (.service, toService), (.account, toAccount), (.accessGroup, toAccessGroup), (.server, toServer),
    ]
    let attributes = given.compactMap { pair in pair.1.map { (pair.0, $0) } }
    guard newName != nil || !attributes.isEmpty else {
      throw UsageError(
        message: "no new name is given; give it behind the item's, or --to-account and the like")
    }
    let name = VaultName(newName, attributes: Dictionary(uniqueKeysWithValues: attributes))
    try change.run(.rename(address.address(), to: name), on: container)
  }
}

struct VaultSetAccessibilityCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set-accessibility",
    abstract: "Say anew when an item can be read, and so what backups do with it.",
    discussion: """
      Keychains do not change that of an item: a new one is written, read back and
      compared, and only then the old one dropped.

      Example:
        drydock vault set-accessibility Notes com.example.notes/auth whenUnlocked
      """)

  @OptionGroup var container: ContainerOptions
  @OptionGroup var address: VaultAddressOptions
  @Argument(help: "The class, by its name or the keychain's code.") var accessibility: VaultAccessibility
  @OptionGroup var change: VaultChangeOptions

  func run() throws { try change.run(.setAccessibility(address.address(), accessibility), on: container) }
}

struct VaultRekeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey", abstract: "Seal a vault to other device keys.",
    discussion: """
      From then on the vault is sealed to the new keys only; --device-key has the
      one that opens it now. This takes nothing back: the old keys still open every
      copy made before, such as the vaults in archives and in what rollbacks need.
      When an old key got into wrong hands, change the secrets themselves, too.

      Example:
        drydock vault rekey Notes --device-key old.txt --new-device-key new.txt
      """)

  @OptionGroup var container: ContainerOptions
  @Option(
    name: .customLong("new-device-key"),
    help: ArgumentHelp("A file with a key to seal the vault to; repeatable.", valueName: "file"))
  var newKeys: [String] = []
  @Option(
    name: .customLong("recipient"),
    help: ArgumentHelp("A public key to seal the vault to; repeatable.", valueName: "age1…"))
  var recipients: [String] = []
  @OptionGroup var change: VaultChangeOptions

  func run() throws {
    let keys = try DeviceKeys(files: newKeys)
    let others = try recipients.map { text in
      do { return try AgeRecipient(text) } catch let error as DrydockError {
        throw UsageError(message: "--recipient: \(error.message)")
      }
    }
    let all = (keys?.recipients ?? []) + others
    guard !all.isEmpty else {
      throw UsageError(message: "no new key is given; give --new-device-key FILE, or --recipient age1…")
    }
    try change.run(.rekey(all), on: container, newKeys: keys)
  }
}
