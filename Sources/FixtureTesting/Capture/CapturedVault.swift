import AgeEncryption
import AppContainer
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

/// A vault's item as a fixture holds it: with a made-up value.
struct CapturedItem {
  typealias Field = (name: String, yaml: String)

  /// The fields of `fixture.yaml`, in order, with their values as YAML.
  var fields: [Field]
}

/// The vault of a container that is captured.
struct CapturedVault {
  private let items: [VaultItem]
  private let path: ContainerPath

  /// Opens it; nil when there is none.
  ///
  /// - Throws: `DrydockError` with code `notCaptured` when no key is given: its secrets could not be found in other files.
  init?(of container: Container, in root: Directory, _ keys: DeviceKeys?) throws {
    path = container.vaultPath
    guard try root.status(path) != nil else { return nil }
    guard let keys else {
      throw DrydockError(
        .notCaptured,
        "\(path) is the vault: without its key its secrets cannot be found in other files; give "
          + "the device key, or leave the vault out")
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

  func made(_ replacer: inout ValueReplacer, _ report: inout CaptureReport) throws -> [CapturedItem] {
    report.vaultItems = items.count
    return try items.map { item in
      if item.hasUnknownFields {
        report.notes.append(
          "\(path): \(replacer.shown("\(item)")): fields that this version does not know are left out")
      }
      var fields: [CapturedItem.Field] = []
      if item.itemClass != .genericPassword { fields.append(("class", item.itemClass.rawValue)) }
      for (attribute, text) in attributes(of: item) {
        let made = try ValueWalk.text(text, place(attribute, replacer), &replacer)
        fields.append((attribute.rawValue.replacing("_", with: "-"), GoldenYAML.quoted(made, isKey: false)))
      }
      fields.append(("accessible", item.accessibility.rawValue))
      if item.isSynchronizable { fields.append(("synchronizable", "true")) }
      if let flags = item.accessControl?.flags {
        fields.append(("access-control", "[\(flags.joined(separator: ", "))]"))
      }
      var bytes = item.value.withBytes { Array($0) }
      defer { _ = SecretBytes(wiping: &bytes) }
      let place = LeafPlace(name: .secret, isChosen: true, label: "\(path)")
      fields.append(("value", CapturedSetup.yaml(try ValueWalk.data(bytes, place, &replacer))))
      return CapturedItem(fields: fields)
    }
  }
}

/// Settings that are captured, key by key.
enum CapturedSettings {
  static func visited<Visitor: LeafVisitor>(
    _ settings: PropertyListDictionary, of path: ContainerPath, _ visitor: inout Visitor
  ) throws -> PropertyListDictionary {
    let names = SecretFields(settings, inside: .plain)
    var result: PropertyListDictionary = [:]
    for (key, value) in settings.sorted() {
      let isSecret = names.isSecret(key: key)
      let label = isSecret ? "\(path): a key" : "\(path): \(key)"
      let place = LeafPlace(
        name: names[key], isChosen: visitor.keys.contains(key), isIdentifier: DeviceIdentifiers.isKey(key),
        label: label)
      let newKey = try visitor.key(key, isSecret: isSecret, LeafPlace(label: path.description))
      result[newKey] = try ValueWalk.value(value, place, &visitor)
    }
    return result
  }
}
