import AgeEncryption
import AppContainer
import Formats

/// A vault item of a fixture, with a made-up value: what the container has, or what it must have afterwards.
///
/// `class`, `accessible`, `synchronizable`, `access-control`, every text attribute under its name in the vault's document
/// with `-` for `_` (`service`, `account`, `access-group`, `label`, `server`, …), and `value`: text, or `!data`.
package struct FixtureVaultItem: Sendable {
  /// The item.
  package var item: VaultItem
  /// Where it is written.
  package var position: YAMLPosition

  private static func key(_ attribute: VaultAttribute) -> String {
    attribute.rawValue.replacing("_", with: "-")
  }

  private static let keys =
    ["class", "accessible", "synchronizable", "access-control", "value"] + VaultAttribute.allCases.map(key)

  /// Reads an item.
  ///
  /// - Throws: `DrydockError` with `file:line:column`.
  package init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "a vault item", keys: Self.keys)
    position = node.position
    _ = try reader.required("accessible")
    item = VaultItem(
      try reader.choice("class") ?? .genericPassword,
      accessibility: try reader.choice("accessible") ?? .whenUnlocked,
      value: try Self.value(reader.required("value")))
    item.isSynchronizable = try reader.boolean("synchronizable") ?? false
    for attribute in VaultAttribute.allCases {
      item[attribute] = try reader[Self.key(attribute)].map { try Self.text($0, attribute) }
    }
    let flags = try reader["access-control"].map { node in
      try (node.sequence ?? [node]).map { try Self.flag($0) }
    }
    if let flags, !flags.isEmpty { item.accessControl = VaultAccessControl(flags) }
  }

  private static func value(_ node: YAMLNode) throws -> SecretBytes {
    var bytes: [UInt8]
    if case .data(let data) = node.scalar?.value {
      bytes = data
    } else {
      bytes = Array(try node.text("`value`").utf8)
    }
    return SecretBytes(wiping: &bytes)
  }

  /// A port and a key's size are numbers to most who write them.
  private static func text(_ node: YAMLNode, _ attribute: VaultAttribute) throws -> String {
    if attribute == .port || attribute == .keySize, case .integer(let number) = node.scalar?.value {
      return "\(number)"
    }
    return try node.text("`\(key(attribute))`")
  }

  private static func flag(_ node: YAMLNode) throws -> VaultAccessControl.Flag {
    let word = try node.text("an element of `access-control`")
    guard let flag = VaultAccessControl.Flag(rawValue: word) else {
      let known = VaultAccessControl.Flag.allCases.map(\.rawValue)
      throw node.position.error(
        "`\(word)` is no flag of access control; \(NearestWord.hint(for: word, among: known))")
    }
    return flag
  }

  static func items(_ node: YAMLNode?) throws -> [FixtureVaultItem]? {
    guard let node else { return nil }
    var seen: Set<VaultItem.ID> = []
    return try node.elements("`vault`").map { node in
      let item = try FixtureVaultItem(node)
      guard seen.insert(item.item.id).inserted else {
        throw node.position.error("the vault item \(item.item) is there twice; a vault has one of a name")
      }
      return item
    }
  }
}
