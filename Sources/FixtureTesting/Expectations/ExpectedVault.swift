import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

/// Exactly these vault items, by name, accessibility and value.
package struct ExpectedVault: Sendable {
  /// The items.
  let items: [FixtureVaultItem]
  private let position: YAMLPosition

  init(_ node: YAMLNode) throws {
    position = node.position
    items = try FixtureVaultItem.items(node) ?? []
  }

  /// Values are made up, and still not shown.
  func findings(_ stage: StagedContainer) throws -> [FixtureFinding] {
    let path = stage.container.vaultPath
    var found: [VaultItem.ID: VaultItem] = [:]
    if try stage.live.status(path) != nil {
      guard let keys = stage.deviceKeys else {
        return [
          FixtureFinding(
            at: position, "the vault cannot be opened: no device key is given", place: path.description)
        ]
      }
      do {
        found = try Vault(opening: stage.live.contents(path), with: keys, path: path.description).items
      } catch let error as DrydockError where error.code == .vaultLocked || error.code == .badVault {
        return [
          FixtureFinding(
            at: position, "the vault cannot be opened: \(error.message)", place: path.description)
        ]
      }
    }
    var findings = items.flatMap { expected in
      self.findings(expected, found.removeValue(forKey: expected.item.id), path)
    }
    for id in found.keys.sorted() {
      findings.append(
        FixtureFinding(at: position, "the vault item exists, expected none", place: "\(path): \(id)"))
    }
    return findings
  }

  private func findings(
    _ expected: FixtureVaultItem, _ found: VaultItem?, _ path: ContainerPath
  ) -> [FixtureFinding] {
    let item = expected.item
    let place = "\(path): \(item)"
    func finding(_ message: String, _ wanted: String? = nil, _ got: String? = nil) -> FixtureFinding {
      FixtureFinding(at: expected.position, message, place: place, expected: wanted, found: got)
    }
    guard let found else { return [finding("the vault item is absent")] }
    var findings: [FixtureFinding] = []
    if found.accessibility != item.accessibility {
      findings.append(
        finding(
          "the vault item has another accessibility", item.accessibility.rawValue,
          found.accessibility.rawValue))
    }
    if found.accessControl != item.accessControl {
      findings.append(
        finding(
          "the vault item has another access control", item.accessControl?.description,
          found.accessControl?.description))
    }
    if found.value != item.value {
      findings.append(
        finding(
          "the vault item has another value", "\(item.value.count) bytes", "\(found.value.count) bytes"))
    }
    // What is not said of an item does not matter.
    for attribute in VaultAttribute.allCases where item[attribute] != nil {
      guard !item.itemClass.identifying.contains(attribute), found[attribute] != item[attribute] else {
        continue
      }
      findings.append(
        finding("the vault item has another \(attribute.words)", item[attribute], found[attribute]))
    }
    return findings
  }
}
