import Cryptography
import FileSystem

/// A secret in a vault, with the semantics of an item of Apple's keychain.
public struct VaultItem: Sendable {
  /// What kind of secret it is.
  public var itemClass: VaultItem.Class
  /// The text attributes. As in the keychain, an empty one is the same as none.
  public private(set) var attributes: [VaultItem.Attribute: String] = [:]
  /// When a device can read it.
  public var accessibility: VaultItem.Accessibility
  /// Whether the keychain syncs it to the user's other devices.
  public var isSynchronizable = false
  /// The authentication required to read it, if any.
  public var accessControl: VaultItem.AccessControl?
  /// UTC: `2026-11-20T10:15:00Z`; nil when unknown.
  public var created: String?, modified: String?
  /// The secret bytes, which may be text.
  public var value: SecretBytes
  var unknown = VaultFields()

  /// An item that does not sync.
  public init(
    _ itemClass: VaultItem.Class = .genericPassword, service: String? = nil, account: String? = nil,
    accessGroup: String? = nil, accessibility: VaultItem.Accessibility = .whenUnlocked, value: SecretBytes
  ) {
    (self.itemClass, self.accessibility, self.value) = (itemClass, accessibility, value)
    self[.service] = service
    self[.account] = account
    self[.accessGroup] = accessGroup
  }

  /// A text attribute; nil when there is none.
  public subscript(attribute: VaultItem.Attribute) -> String? {
    get { attributes[attribute] }
    set { attributes[attribute] = newValue.flatMap { $0.isEmpty ? nil : $0 } }
  }

  /// The service of a generic password.
  public var service: String? {
    get { self[.service] }
    set { self[.service] = newValue }
  }

  /// The account, which the name ends with.
  public var account: String? {
    get { self[.account] }
    set { self[.account] = newValue }
  }

  /// The group of apps that may read it; nil for the app alone.
  public var accessGroup: String? {
    get { self[.accessGroup] }
    set { self[.accessGroup] = newValue }
  }

  /// The label, for people.
  public var label: String? {
    get { self[.label] }
    set { self[.label] = newValue }
  }

  /// What makes it unique.
  public var id: ID { ID(self) }

  /// Why a keychain does not accept it; nil when it does.
  package var problem: String? {
    guard isSynchronizable else { return nil }
    if !accessibility.leavesDevice {
      return
        "it cannot be synchronizable and \(accessibility.rawValue): what goes to other devices is whenUnlocked or "
        + "afterFirstUnlock"
    }
    return accessControl == nil
      ? nil : "it cannot be synchronizable and under access control, which belongs to one device"
  }
}

extension VaultItem: Equatable {
  /// Compares every byte of the attributes and of the value.
  public static func == (left: Self, right: Self) -> Bool {
    left.itemClass == right.itemClass && left.accessibility == right.accessibility
      && left.isSynchronizable == right.isSynchronizable && left.accessControl == right.accessControl
      && left.created == right.created && left.modified == right.modified && left.value == right.value
      && left.unknown == right.unknown && left.attributes.count == right.attributes.count
      && left.attributes.allSatisfy { right[$0.key]?.utf8.elementsEqual($0.value.utf8) ?? false }
  }
}

extension VaultItem: CustomStringConvertible {
  /// Its name; never its value.
  public var description: String { id.description }
}

extension VaultItem {
  /// What makes an item unique: its class, the identifying attributes of that, and whether it syncs.
  public struct ID: Sendable {
    /// What kind of secret it is.
    public let itemClass: VaultItem.Class
    /// The identifying attributes of the class (`VaultItem.Class.identifying`).
    public let attributes: [VaultItem.Attribute: String]
    /// Whether the keychain syncs it to the user's other devices.
    public let isSynchronizable: Bool
    /// The identity as bytes: as in the keychain, texts that Unicode considers equal may differ.
    private let key: [[UInt8]]

    init(_ item: VaultItem) {
      self.init(item.itemClass, item.attributes, isSynchronizable: item.isSynchronizable)
    }

    /// The identity of a generic password.
    public init(
      service: String? = nil, account: String? = nil, accessGroup: String? = nil,
      isSynchronizable: Bool = false
    ) {
      let given = [(VaultItem.Attribute.service, service), (.account, account), (.accessGroup, accessGroup)]
      let attributes = given.compactMap { pair in pair.1.map { (pair.0, $0) } }
      self.init(
        .genericPassword, Dictionary(uniqueKeysWithValues: attributes), isSynchronizable: isSynchronizable)
    }

    private init(
      _ itemClass: VaultItem.Class, _ attributes: [VaultItem.Attribute: String], isSynchronizable: Bool
    ) {
      let identifying = itemClass.identifying
      self.itemClass = itemClass
      self.attributes = attributes.filter { identifying.contains($0.key) && !$0.value.isEmpty }
      self.isSynchronizable = isSynchronizable
      key =
        [[UInt8(VaultItem.Class.allCases.firstIndex(of: itemClass) ?? 0)]]
        + identifying.reversed().map { Array((attributes[$0] ?? "").utf8) } + [[isSynchronizable ? 1 : 0]]
    }
  }
}

extension VaultItem.ID: Hashable, Comparable {
  public static func == (left: Self, right: Self) -> Bool { left.key == right.key }

  public func hash(into hasher: inout Hasher) { hasher.combine(key) }

  /// By class, then attribute by attribute.
  public static func < (left: Self, right: Self) -> Bool {
    for (a, b) in zip(left.key, right.key) where a != b { return a.lexicographicallyPrecedes(b) }
    return false
  }
}

extension VaultItem.ID: CustomStringConvertible {
  /// The display name, such as `com.example.notes/auth [group.x]`, or `imap://auth@mail.example.com:143` for an internet
  /// password. It has no secret and no control characters.
  public var description: String {
    let text = isDetailed ? "\(name) [\(details.joined(separator: ", "))]" : name
    return ContainerPath.printable(Array(text.utf8))
  }

  var isDetailed: Bool { !details.isEmpty }

  private var details: [String] {
    [attributes[.accessGroup], isSynchronizable ? "synchronizable" : nil].compactMap { $0 }
  }

  /// The name without brackets and escapes: `service/account`.
  public var name: String {
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

  private func joined(_ names: [VaultItem.Attribute]) -> String? {
    let parts = names.compactMap { attributes[$0] }
    return parts.isEmpty ? nil : parts.joined(separator: "/")
  }
}

extension VaultItem {
  /// The text attributes of a vault item, with their names in the document.
  public enum Attribute: String, Sendable, Hashable, CaseIterable {
    /// The purpose, such as `com.example.notes`.
    case service
    case account
    /// The group of apps that may read it; without one, the app alone.
    case accessGroup = "access_group"
    case label
    case description
    case comment
    // Of internet passwords:
    case server
    case securityDomain = "security_domain"
    case `protocol`
    case authenticationType = "authentication_type"
    case port
    case path
    // Of certificates:
    case issuer
    case serialNumber = "serial_number"
    case certificateType = "certificate_type"
    // Of keys:
    case applicationLabel = "application_label"
    case applicationTag = "application_tag"
    case keyClass = "key_class"
    case keyType = "key_type"
    case keySize = "key_size"

    /// The name in words, such as `access group`.
    package var words: String { rawValue.split(separator: "_").joined(separator: " ") }
  }
}

extension VaultItem {
  /// The kinds of secrets in a keychain.
  public enum Class: String, Sendable, Codable, CaseIterable {
    case genericPassword, internetPassword, certificate, key

    package var code: String {
      switch self {
      case .genericPassword: "genp"
      case .internetPassword: "inet"
      case .certificate: "cert"
      case .key: "keys"
      }
    }

    /// A class by its name or by the keychain's code.
    public init?(_ text: String) {
      guard let found = Self(rawValue: text) ?? Self.allCases.first(where: { $0.code == text }) else {
        return nil
      }
      self = found
    }

    /// The attributes that identify an item of the class. Service and account count for every class, unlike in the keychain, so
    /// that no item is lost.
    package var identifying: [VaultItem.Attribute] {
      let own: [VaultItem.Attribute] =
        switch self {
        case .genericPassword: []
        case .internetPassword: [.server, .securityDomain, .protocol, .authenticationType, .port, .path]
        case .certificate: [.issuer, .serialNumber, .certificateType]
        case .key: [.applicationLabel, .applicationTag, .keyClass, .keyType, .keySize]
        }
      return own.reversed() + [.accessGroup, .account, .service]
    }
  }
}

extension VaultItem {
  /// Selects items of a vault by name, by attributes, or both.
  public struct Address: Sendable, Equatable {
    /// The display name, `service/account`, or the service or server alone.
    public var name: String?
    /// The required class; nil for any.
    public var itemClass: VaultItem.Class?
    /// Required attributes; an empty text requires that there is none.
    public var attributes: [VaultItem.Attribute: String]
    /// Whether the item must sync; nil for any.
    public var isSynchronizable: Bool?

    /// All that is given must match.
    public init(
      name: String? = nil, itemClass: VaultItem.Class? = nil, attributes: [VaultItem.Attribute: String] = [:],
      isSynchronizable: Bool? = nil
    ) {
      (self.name, self.itemClass, self.attributes) = (name, itemClass, attributes)
      self.isSynchronizable = isSynchronizable
    }

    /// Whether it matches every item.
    public var isEmpty: Bool { self == VaultItem.Address() }

    /// The matching items, in order. An item with exactly this name takes precedence over items with this service.
    public func items(in vault: Vault) -> [VaultItem] {
      let matching = vault.sorted.filter(matches)
      guard let name else { return matching }
      let rules: [(VaultItem) -> Bool] = [
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
      return rules.lazy.map { matching.filter($0) }.first { !$0.isEmpty } ?? []
    }

    private func matches(_ item: VaultItem) -> Bool {
      if let itemClass, item.itemClass != itemClass { return false }
      if let isSynchronizable, item.isSynchronizable != isSynchronizable { return false }
      return attributes.allSatisfy { (item[$0.key] ?? "").isExactly($0.value) }
    }
  }
}

extension VaultItem.Address: CustomStringConvertible {
  /// Such as `com.example.notes/auth, access group group.x`.
  public var description: String {
    let parts =
      [name, itemClass?.rawValue].compactMap { $0 }
      + attributes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
        $0.value.isEmpty ? "no \($0.key.words)" : "\($0.key.words) \($0.value)"
      }
      + [isSynchronizable.map { $0 ? "synchronizable" : "not synchronizable" }].compactMap { $0 }
    return ContainerPath.printable(Array(parts.joined(separator: ", ").utf8))
  }
}
