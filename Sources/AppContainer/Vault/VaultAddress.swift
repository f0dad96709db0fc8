import FileSystem

/// Which item of a vault is meant: by its name, by attributes, or both.
package struct VaultAddress: Sendable, Equatable {
  /// What the item is called: as a list prints it, `service/account`, or the service or server alone.
  package var name: String?
  /// What kind of secret it is.
  package var itemClass: VaultItemClass?
  /// The attributes it has to have; an empty text wants an item without.
  package var attributes: [VaultAttribute: String]
  /// Whether the keychain copies it to the owner's other devices.
  package var isSynchronizable: Bool?

  /// An address from its parts.
  package init(
    name: String? = nil, itemClass: VaultItemClass? = nil, attributes: [VaultAttribute: String] = [:],
    isSynchronizable: Bool? = nil
  ) {
    (self.name, self.itemClass, self.attributes) = (name, itemClass, attributes)
    self.isSynchronizable = isSynchronizable
  }

  /// Whether it says anything.
  package var isEmpty: Bool { self == VaultAddress() }

  /// The items that it fits, in order.
  ///
  /// A name that is some item's whole name means that one, and not those whose service it also is.
  package func items(in vault: Vault) -> [VaultItem] {
    let fitting = vault.sorted.filter(fits)
    guard let name else { return fitting }
    let ways: [(VaultItem) -> Bool] = [
      { item in
        let id = item.id
        return id.isDetailed && id.description.isExactly(name)
      },
      { item in
        let own = item.id.name
        return own.isExactly(name) || ContainerPath.printable(Array(own.utf8)).isExactly(name)
      },
      { item in item.service?.isExactly(name) == true || item[.server]?.isExactly(name) == true },
    ]
    return ways.lazy.map { fitting.filter($0) }.first { !$0.isEmpty } ?? []
  }

  private func fits(_ item: VaultItem) -> Bool {
    if let itemClass, item.itemClass != itemClass { return false }
    if let isSynchronizable, item.isSynchronizable != isSynchronizable { return false }
    return attributes.allSatisfy { (item[$0.key] ?? "").isExactly($0.value) }
  }
}

extension VaultAddress: CustomStringConvertible {
  /// Such as `com.example.notes/auth, access group group.x`.
  package var description: String {
    let parts =
      [name, itemClass?.rawValue].compactMap { $0 }
      + attributes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
        $0.value.isEmpty ? "no \($0.key.words)" : "\($0.key.words) \($0.value)"
      }
      + [isSynchronizable.map { $0 ? "synchronizable" : "not synchronizable" }].compactMap { $0 }
    return ContainerPath.printable(Array(parts.joined(separator: ", ").utf8))
  }
}
