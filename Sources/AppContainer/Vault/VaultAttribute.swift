/// The attributes of a vault item that are text, under the names that they have in the document.
package enum VaultAttribute: String, Sendable, Hashable, CaseIterable {
  /// What the secret is for, such as `com.example.notes`.
  case service
  /// Whose it is.
  case account
  /// The group of apps that may read it; without one it is the app's own.
  case accessGroup = "access_group"
  /// A name for people.
  case label
  /// What kind of secret it is, for people.
  case description
  /// A remark.
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

/// What kind of secret an item is.
package enum VaultItemClass: String, Sendable, Codable, CaseIterable {
  case genericPassword, internetPassword, certificate, key

  /// The keychain's own code, such as `genp`.
  package var code: String {
    switch self {
    case .genericPassword: "genp"
    case .internetPassword: "inet"
    case .certificate: "cert"
    case .key: "keys"
    }
  }

  /// A class by its name or by the keychain's code.
  package init?(_ text: String) {
    guard let found = Self(rawValue: text) ?? Self.allCases.first(where: { $0.code == text }) else {
      return nil
    }
    self = found
  }

  /// The attributes that tell an item from others of its class. Service and account count for every class, though the
  /// keychain does not have them for all: what two items differ in must not be lost.
  package var identifying: [VaultAttribute] {
    let own: [VaultAttribute] =
      switch self {
      case .genericPassword: []
      case .internetPassword: [.server, .securityDomain, .protocol, .authenticationType, .port, .path]
      case .certificate: [.issuer, .serialNumber, .certificateType]
      case .key: [.applicationLabel, .applicationTag, .keyClass, .keyType, .keySize]
      }
    return own.reversed() + [.accessGroup, .account, .service]
  }
}
