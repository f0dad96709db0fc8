import AgeEncryption
import AppContainer
import Foundation

/// A vault's item as a fixture holds it: with a made-up value.
struct CapturedItem {
  /// The fields of `fixture.yaml`, in order.
  var fields: [(name: String, value: String)]
}

/// The vault of a container that is captured.
struct CapturedVault {
  private let items: [VaultItem]
  private let path: ContainerPath

  /// Opens it; nil when there is none.
  ///
  /// - Throws: `FixtureError` with code `notCaptured` when no key is given: nobody could look for its values elsewhere.
  init?(of container: Container, in root: Directory, _ keys: DeviceKeys?) throws {
    path = container.vaultPath
    guard try root.status(path) != nil else { return nil }
    guard let keys else {
      throw FixtureError(
        .notCaptured,
        "\(path) is the vault, and without its key nobody can tell whether its secrets stand elsewhere, too; give "
          + "--device-key, or leave the vault out with --drop")
    }
    items = try Vault(opening: root.contents(path), with: keys, path: path.description).sorted
  }

  /// Shows every secret and every attribute to the one who looks for originals.
  func collect(_ collector: inout OriginalCollector) throws {
    for item in items {
      var bytes = item.value.withBytes { Array($0) }
      defer { _ = SecretBytes(wiping: &bytes) }
      try collector.add(secret: bytes, LeafPlace(label: "\(path)"))
      for (attribute, text) in attributes(of: item) {
        _ = try ValueWalk.text(text, place(attribute, collector), &collector)
      }
    }
  }

  private func attributes(of item: VaultItem) -> [(VaultAttribute, String)] {
    VaultAttribute.allCases.compactMap { attribute in item[attribute].map { (attribute, $0) } }
  }

  private func place(_ attribute: VaultAttribute, _ visitor: some LeafVisitor) -> LeafPlace {
    LeafPlace(isChosen: visitor.keys.contains(attribute.rawValue), label: "\(path): \(attribute.words)")
  }

  /// The items with made-up values.
  func made(_ replacer: inout ValueReplacer, _ report: inout CaptureReport) throws -> [CapturedItem] {
    try items.compactMap { item in
      let name = replacer.shown("\(item)")
      guard item.itemClass == .genericPassword else {
        report.notes.append("\(path): \(name) is left out: a fixture's vault holds generic passwords only")
        return nil
      }
      if item.isSynchronizable || item.accessControl != nil {
        report.notes.append(
          "\(path): \(name): a fixture cannot say that it is synchronizable or has access control")
      }
      var fields: [(String, String)] = []
      for (attribute, key) in [
        (VaultAttribute.service, "service"), (.account, "account"), (.accessGroup, "access-group"),
        (.label, "label"),
      ] {
        guard let text = item[attribute] else { continue }
        fields.append((key, try ValueWalk.text(text, place(attribute, replacer), &replacer)))
      }
      fields.append(("accessible", item.accessibility.rawValue))
      var bytes = item.value.withBytes { Array($0) }
      defer { _ = SecretBytes(wiping: &bytes) }
      let place = LeafPlace(name: .secret, isChosen: true, label: "\(path)")
      let made = try ValueWalk.data(bytes, place, &replacer)
      if let text = String(validating: made, as: UTF8.self) {
        fields.append(("value", text))
      } else {
        report.notes.append("\(path): \(name) is binary; the fixture has its made-up value as Base64")
        fields.append(("value", Data(made).base64EncodedString()))
      }
      report.vaultItems += 1
      return CapturedItem(fields: fields)
    }
  }
}
