import AgeEncryption

/// One secret of a vault, with the meaning that an item of Apple's keychain has.
package struct VaultItem: Sendable {
  /// What kind of secret it is.
  package var itemClass: VaultItemClass
  /// The text attributes. An empty one is the same as none, as in the keychain.
  package private(set) var attributes: [VaultAttribute: String] = [:]
  /// When a device can read it.
  package var accessibility: VaultAccessibility
  /// Whether the keychain copies it to the owner's other devices.
  package var isSynchronizable = false
  /// What a person has to show to read it; nil when nothing.
  package var accessControl: VaultAccessControl?
  /// When it was made and last changed, UTC: `2026-11-20T10:15:00Z`; nil when it is not known.
  package var created: String?, modified: String?
  /// The secret: bytes, which may be text.
  package var value: SecretBytes
  /// Fields of the document that this version does not know, as they stand there.
  var unknown: [String: SecretBytes] = [:]

  /// An item.
  package init(
    _ itemClass: VaultItemClass = .genericPassword, service: String? = nil, account: String? = nil,
    accessGroup: String? = nil, accessibility: VaultAccessibility = .whenUnlocked, value: SecretBytes
  ) {
    (self.itemClass, self.accessibility, self.value) = (itemClass, accessibility, value)
    self[.service] = service
    self[.account] = account
    self[.accessGroup] = accessGroup
  }

  /// A text attribute; nil when there is none.
  package subscript(attribute: VaultAttribute) -> String? {
    get { attributes[attribute] }
    set { attributes[attribute] = newValue.flatMap { $0.isEmpty ? nil : $0 } }
  }

  /// What the secret is for.
  package var service: String? {
    get { self[.service] }
    set { self[.service] = newValue }
  }

  /// Whose it is.
  package var account: String? {
    get { self[.account] }
    set { self[.account] = newValue }
  }

  /// The group of apps that may read it; nil for the app's own.
  package var accessGroup: String? {
    get { self[.accessGroup] }
    set { self[.accessGroup] = newValue }
  }

  /// A name for people.
  package var label: String? {
    get { self[.label] }
    set { self[.label] = newValue }
  }

  /// Whether the document says more of it than this version knows.
  package var hasFurtherFields: Bool { !unknown.isEmpty }

  /// What it says more, to compare.
  package var furtherFields: SecretBytes {
    SecretJSONWriter.document { writer in
      writer.object { writer in
        for (name, value) in unknown.sorted(by: { $0.key < $1.key }) {
          writer.field(name)
          writer.raw(value)
        }
      }
    }
  }

  /// What makes it unique.
  package var id: ID { ID(self) }
}

extension VaultItem: Equatable {
  /// In every byte of every attribute, and in its value.
  package static func == (left: Self, right: Self) -> Bool {
    left.itemClass == right.itemClass && left.accessibility == right.accessibility
      && left.isSynchronizable == right.isSynchronizable && left.accessControl == right.accessControl
      && left.created == right.created && left.modified == right.modified && left.value == right.value
      && left.unknown == right.unknown && left.attributes.count == right.attributes.count
      && left.attributes.allSatisfy { right[$0.key]?.utf8.elementsEqual($0.value.utf8) ?? false }
  }
}

extension VaultItem: CustomStringConvertible {
  /// Its name; never its value.
  package var description: String { id.description }
}
