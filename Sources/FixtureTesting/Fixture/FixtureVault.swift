import AgeEncryption
import AppContainer

/// A vault item of a fixture, with a made-up value: what the container has, or what it must have afterwards.
public struct FixtureVaultItem: Sendable {
  /// The item.
  public var item: VaultItem

  init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(
      node, what: "a vault item",
      keys: ["service", "account", "access-group", "accessible", "label", "value"])
    var value = Array(try reader.required("value").text("`value`").utf8)
    _ = try reader.required("accessible")
    item = VaultItem(
      service: try reader.text("service"), account: try reader.text("account"),
      accessGroup: try reader.text("access-group"),
      accessibility: try reader.choice("accessible") ?? .whenUnlocked, value: SecretBytes(wiping: &value))
    item.label = try reader.text("label")
  }

  static func items(_ node: YAMLNode?) throws -> [VaultItem]? {
    try node?.elements("`vault`").map { try FixtureVaultItem($0).item }
  }
}

extension FixtureSetup {
  /// Makes the vault that the fixture's container has, sealed to a key of this run.
  func makeVault(in target: Directory, at path: ContainerPath, _ keys: DeviceKeys?) throws {
    guard let items = vault else { return }
    guard let keys else {
      throw FixtureError(
        .notBuilt, "the fixture has a vault, and no device key is given to seal it to", path: target.path)
    }
    var vault = try Vault(new: keys)
    for item in items { vault.put(item) }
    try target.createDirectories(path.parent, mode: 0o755)
    try target.create(path, vault.sealed(), mode: 0o600)
  }
}

extension FixtureExpectation {
  /// What is not as expected in the vault. Values are made up, and still not shown.
  func vaultFindings(_ root: Directory, _ path: ContainerPath, _ keys: DeviceKeys?) throws -> [String] {
    guard let expected = vault else { return [] }
    var found: [VaultItem.ID: VaultItem] = [:]
    if try root.status(path) != nil {
      guard let keys else { return ["the vault cannot be opened: no device key is given"] }
      found = try Vault(opening: root.contents(path), with: keys, path: path.description).items
    }
    var lines: [String] = []
    for item in expected {
      guard let other = found.removeValue(forKey: item.id) else {
        lines.append("the vault item \(item) is absent")
        continue
      }
      if other.accessibility != item.accessibility {
        lines.append(
          "the vault item \(item) is accessible \(other.accessibility.rawValue), expected "
            + item.accessibility.rawValue)
      }
      if other.value != item.value {
        lines.append("the vault item \(item) has another value (\(other.value.count) bytes)")
      }
      if let label = item.label, other.label != label {
        lines.append("the vault item \(item) has another label, expected `\(label)`")
      }
    }
    return lines + found.keys.sorted().map { "the vault item \($0) exists, expected none" }
  }
}
