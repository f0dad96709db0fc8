import FileSystem

extension VaultItem {
  /// What makes an item unique in its vault: two items may be the same in all but one of these.
  package struct ID: Sendable {
    /// What kind of secret it is.
    package let itemClass: VaultItemClass
    /// The attributes that count for the class (``VaultItemClass/identifying``).
    package let attributes: [VaultAttribute: String]
    /// Whether the keychain copies it to the owner's other devices.
    package let isSynchronizable: Bool
    /// All of it as bytes: text that Unicode takes for equal may be two items, as in the keychain.
    private let key: [[UInt8]]

    init(_ item: VaultItem) {
      self.init(item.itemClass, item.attributes, isSynchronizable: item.isSynchronizable)
    }

    /// What tells a generic password from others.
    package init(
      service: String? = nil, account: String? = nil, accessGroup: String? = nil,
      isSynchronizable: Bool = false
    ) {
      let given = [(VaultAttribute.service, service), (.account, account), (.accessGroup, accessGroup)]
      let attributes = given.compactMap { pair in pair.1.map { (pair.0, $0) } }
      self.init(
        .genericPassword, Dictionary(uniqueKeysWithValues: attributes), isSynchronizable: isSynchronizable)
    }

    private init(
      _ itemClass: VaultItemClass, _ attributes: [VaultAttribute: String], isSynchronizable: Bool
    ) {
      let identifying = itemClass.identifying
      self.itemClass = itemClass
      self.attributes = attributes.filter { identifying.contains($0.key) && !$0.value.isEmpty }
      self.isSynchronizable = isSynchronizable
      key =
        [[UInt8(VaultItemClass.allCases.firstIndex(of: itemClass) ?? 0)]]
        + identifying.reversed().map { Array((attributes[$0] ?? "").utf8) } + [[isSynchronizable ? 1 : 0]]
    }
  }
}

extension VaultItem.ID: Hashable, Comparable {
  /// By every byte.
  package static func == (left: Self, right: Self) -> Bool { left.key == right.key }

  /// See `Hashable`.
  package func hash(into hasher: inout Hasher) { hasher.combine(key) }

  /// By class, then attribute by attribute.
  package static func < (left: Self, right: Self) -> Bool {
    for (a, b) in zip(left.key, right.key) where a != b { return a.lexicographicallyPrecedes(b) }
    return false
  }
}

extension VaultItem.ID: CustomStringConvertible {
  /// A name for people, such as `com.example.notes/auth [group.x]`, or `imap://auth@mail.example.com:143` for an internet
  /// password. It holds no secret, and nothing that acts on a terminal.
  package var description: String {
    let text = isDetailed ? "\(name) [\(details.joined(separator: ", "))]" : name
    return ContainerPath.printable(Array(text.utf8))
  }

  /// Whether the description says more than the name.
  var isDetailed: Bool { !details.isEmpty }

  private var details: [String] {
    [attributes[.accessGroup], isSynchronizable ? "synchronizable" : nil].compactMap { $0 }
  }

  /// The name without what is in brackets, as it is: `service/account`.
  package var name: String {
    let special: String? =
      switch itemClass {
      case .genericPassword: nil
      case .internetPassword: address
      case .certificate: joined([.issuer, .serialNumber])
      case .key: joined([.applicationTag, .applicationLabel])
      }
    if let special { return special }
    guard let account = attributes[.account] else { return attributes[.service] ?? "(no name)" }
    return (attributes[.service] ?? "") + "/" + account
  }

  private var address: String? {
    guard let server = attributes[.server] else { return nil }
    let scheme = attributes[.protocol].map { $0 + "://" } ?? ""
    let account = attributes[.account].map { $0 + "@" } ?? ""
    let port = attributes[.port].map { ":" + $0 } ?? ""
    let path = attributes[.path].map { $0.hasPrefix("/") ? $0 : "/" + $0 } ?? ""
    return scheme + account + server + port + path
  }

  private func joined(_ names: [VaultAttribute]) -> String? {
    let parts = names.compactMap { attributes[$0] }
    return parts.isEmpty ? nil : parts.joined(separator: "/")
  }
}
