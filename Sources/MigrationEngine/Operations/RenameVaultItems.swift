import AppContainer
import ContainerTransaction
import Formats

/// `vault.rename`: gives vault items another service or account; or, chosen by a prefix, another prefix.
struct RenameVaultItems: MigrationOperation {
  static let name = "vault.rename"
  static let keys = ["to", "if-missing", "if-exists"] + VaultSelection.keys
  static let needsVault = true

  private static let targetKeys = ["service", "account", "service-prefix", "account-prefix"]

  private let selection: VaultSelection
  private let service: Rename?
  private let account: Rename?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  /// What an attribute becomes.
  private enum Rename: Sendable {
    case whole(String)
    case prefix(old: String, new: String)

    func applied(to text: String?) -> String {
      switch self {
      case .whole(let new): new
      case .prefix(let old, let new):
        new + String(decoding: (text ?? "").utf8.dropFirst(old.utf8.count), as: UTF8.self)
      }
    }
  }

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    selection = try VaultSelection(reading: reader)
    let node = try reader.required("to")
    let target = try YAMLReader(node, what: "`to` of \(Self.name)", keys: Self.targetKeys)
    service = try Self.rename("service", .service, target, selection)
    account = try Self.rename("account", .account, target, selection)
    if service == nil && account == nil {
      throw node.position.error("`to` names a new `service`, `account`, `service-prefix` or `account-prefix`")
    }
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  private static func rename(
    _ key: String, _ attribute: VaultAttribute, _ target: YAMLReader, _ selection: VaultSelection
  ) throws -> Rename? {
    let whole = try target.text(key)
    guard let node = target[key + "-prefix"] else { return whole.map { .whole($0) } }
    if whole != nil { throw node.position.error("name either `\(key)` or `\(key)-prefix`, not both") }
    guard let old = selection.prefix(of: attribute) else {
      throw node.position.error("a prefix replaces a prefix: choose the items by `\(key)-prefix`, too")
    }
    return .prefix(old: old, new: try node.text("`\(key)-prefix`"))
  }

  var wayBack: WayBack { .byMemory }

  func revert(on stage: StagedContainer, _ memory: StepMemory?) throws -> [String] {
    try StepMemory.required(memory).revertItems(on: stage)
  }

  func apply(to stage: StagedContainer, _ memory: inout StepMemory) throws -> [String] {
    var edit = try VaultEdit(stage)
    let items = try edit.items(selection, ifMissing)
    try edit.change(items, ifExists) { item in
      if let service { item.service = service.applied(to: item.service) }
      if let account { item.account = account.applied(to: item.account) }
    }
    return try edit.save(to: stage, &memory)
  }
}
