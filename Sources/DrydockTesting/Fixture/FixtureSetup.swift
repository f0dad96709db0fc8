import AppContainer
import AppStores
import Cryptography
import FileSystem
import Formats

/// What version control does not keep of a container: empty directories, flags, attributes, modes, the vault, and how a
/// database lies on disk.
package struct FixtureSetup: Sendable {
  /// A path, with the place in `fixture.yaml` that names it.
  struct Place: Sendable {
    var path: ContainerPath
    var position: YAMLPosition
  }

  /// Directories to make, as far as no file makes them.
  let directories: [Place]
  let attributes: [(place: Place, attribute: ExtendedAttribute)]
  /// The deepest first, since one may close a directory.
  let modes: [(place: Place, mode: UInt16)]
  /// Databases whose rows lie in the `-wal` alone, as after a crash of the app.
  let onlyInWAL: [Place]
  /// Files that are taken as they are although their names say that something is made of them.
  let verbatim: [Place]
  /// The vault's items, with made-up values; nil when there is no vault.
  package let vault: [FixtureVaultItem]?

  var isEmpty: Bool { directories.isEmpty && vault == nil }

  init(_ node: YAMLNode?) throws {
    let reader = try node.map {
      try YAMLReader(
        $0, what: "container",
        keys: [
          "directories", "excluded", "attributes", "modes", "protection", "only-in-wal", "verbatim", "vault",
        ])
    }
    directories = try Self.places(reader, "directories") { try $0.path($1) }
    onlyInWAL = try Self.places(reader, "only-in-wal") { try $0.path($1) }
    verbatim = try Self.places(reader, "verbatim") { try $0.path($1) }
    vault = try FixtureVaultItem.items(reader?["vault"])
    var attributes = try Self.places(reader, "excluded") { try $0.pathOrRoot($1) }.map {
      (place: $0, attribute: Exclusion.appleFlag)
    }
    for pair in try reader?["protection"]?.pairs("`protection`").pairs ?? [] {
      let name = try pair.value.protection().appleName
      let attribute = ExtendedAttribute(name: ProtectionClass.attribute, value: Array(name.utf8))
      attributes.append((try pair.place(), attribute))
    }
    for pair in try reader?["attributes"]?.pairs("`attributes`").pairs ?? [] {
      for attribute in try pair.value.pairs("the attributes of a path").pairs {
        attributes.append((try pair.place(), try attribute.attribute()))
      }
    }
    self.attributes = attributes
    let modes = try reader?["modes"]?.pairs("`modes`").pairs ?? []
    self.modes = try modes.map { (try $0.place(), try $0.value.mode()) }.sorted { $0.0.path > $1.0.path }
  }

  private static func places(
    _ reader: YAMLReader?, _ key: String, _ path: (YAMLNode, String) throws -> ContainerPath
  ) throws -> [Place] {
    guard let node = reader?[key] else { return [] }
    return try (node.sequence ?? [node]).map {
      Place(path: try path($0, "an element of `\(key)`"), position: $0.position)
    }
  }
}

extension YAMLNode {
  fileprivate func mode() throws -> UInt16 {
    guard let mode = UInt16(exactly: try integer("a mode")), mode <= 0o7777 else {
      throw position.error("a mode is written like 0o644 and is at most 0o7777")
    }
    return mode
  }
}

extension YAMLMapping.Pair {
  fileprivate func place() throws -> FixtureSetup.Place {
    FixtureSetup.Place(path: try path(), position: keyPosition)
  }

  fileprivate func attribute() throws -> ExtendedAttribute {
    guard case .string(let name) = key.value, !name.isEmpty, !name.utf8.contains(0) else {
      throw keyPosition.error("an attribute's name is text, not \(key.value.summary)")
    }
    switch value.scalar?.value {
    case .string(let text): return ExtendedAttribute(name: name, value: Array(text.utf8))
    case .data(let bytes): return ExtendedAttribute(name: name, value: bytes)
    default: throw value.position.error("an attribute's value is text or !data, not \(value.summary)")
    }
  }
}

/// A vault item of a fixture, with a made-up value: what the container has, or what it must have afterwards.
///
/// `class`, `accessible`, `synchronizable`, `access-control`, every text attribute under its name in the vault's
/// document with `-` for `_` (`service`, `account`, `access-group`, `label`, `server`, …), and `value`: text, or
/// `!data`.
package struct FixtureVaultItem: Sendable {
  package var item: VaultItem
  package var position: YAMLPosition

  static func key(_ attribute: VaultItem.Attribute) -> String {
    attribute.rawValue.replacing("_", with: "-")
  }

  private static let keys =
    ["class", "accessible", "synchronizable", "access-control", "value"]
    + VaultItem.Attribute.allCases.map(key)

  package init(_ node: YAMLNode) throws {
    let reader = try YAMLReader(node, what: "a vault item", keys: Self.keys)
    position = node.position
    _ = try reader.required("accessible")
    item = VaultItem(
      try reader.choice("class") ?? .genericPassword,
      accessibility: try reader.choice("accessible") ?? .whenUnlocked,
      value: try Self.value(reader.required("value")))
    item.isSynchronizable = try reader.boolean("synchronizable") ?? false
    for attribute in VaultItem.Attribute.allCases {
      item[attribute] = try reader[Self.key(attribute)].map { try Self.text($0, attribute) }
    }
    let flags = try reader["access-control"].map { node in
      try (node.sequence ?? [node]).map { node -> VaultItem.AccessControl.Flag in
        try node.choice("an element of `access-control`", "an access control flag")
      }
    }
    if let flags, !flags.isEmpty { item.accessControl = VaultItem.AccessControl(flags) }
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
  private static func text(_ node: YAMLNode, _ attribute: VaultItem.Attribute) throws -> String {
    if attribute == .port || attribute == .keySize, case .integer(let number) = node.scalar?.value {
      return "\(number)"
    }
    return try node.text("`\(key(attribute))`")
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

/// Paths of a container as `fixture.yaml` writes them.
extension YAMLNode {
  /// A path below a container's root.
  func path(_ what: String) throws -> ContainerPath {
    try Self.path(text(what), what, position)
  }

  /// A path in a container; `.` is its root.
  func pathOrRoot(_ what: String) throws -> ContainerPath {
    let text = try text(what)
    return text == "." ? .root : try Self.path(text, what, position)
  }

  fileprivate static func path(
    _ text: String, _ what: String, _ position: YAMLPosition
  ) throws -> ContainerPath {
    guard let path = try? ContainerPath(text), !path.isRoot else {
      throw position.error(
        "\(what): `\(text)` is not a path below the container; write it without a leading `/` or `..`")
    }
    return path
  }

  func protection() throws -> ProtectionClass { try choice("a protection class", "a protection class") }

  /// One of the words of an enumeration.
  ///
  /// - Parameters:
  ///   - place: names the value in errors, where it is not a text.
  ///   - noun: what such a word is.
  fileprivate func choice<Choice: RawRepresentable & CaseIterable>(
    _ place: String, _ noun: String
  ) throws -> Choice where Choice.RawValue == String {
    let word = try text(place)
    if let choice = Choice(rawValue: word) { return choice }
    let hint = NearestWord.hint(for: word, among: Choice.allCases.map(\.rawValue))
    throw position.error("`\(word)` is not \(noun); \(hint)")
  }
}

extension YAMLMapping.Pair {
  /// The key as a path in a container; `.` is its root.
  func path() throws -> ContainerPath {
    key.source == "." ? .root : try YAMLNode.path(key.source, "a key", keyPosition)
  }
}
