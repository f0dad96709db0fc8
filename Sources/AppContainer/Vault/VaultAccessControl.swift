/// What a person has to show before an item is given out: the flags of the keychain's access control.
package struct VaultAccessControl: Sendable, Hashable {
  /// One flag, under Apple's name.
  package enum Flag: String, Sendable, CaseIterable {
    case userPresence, biometryAny, biometryCurrentSet, devicePasscode, watch, companion, or, and
    case privateKeyUsage, applicationPassword
  }

  /// The names of the flags, sorted, each once. One that this version does not know is kept.
  package let flags: [String]

  /// Access control with these flags.
  package init(_ flags: some Sequence<Flag>) { self.init(names: flags.map(\.rawValue)) }

  /// Access control as a document names it.
  init(names: some Sequence<String>) { flags = Set(names).sorted() }

  /// Whether it holds only as long as nobody enrols another finger or face: then no backup brings the item back. A flag
  /// that this version does not know may be as strict, and counts as that.
  package var isBoundToBiometry: Bool {
    flags.contains { name in Flag(rawValue: name).map { $0 == .biometryCurrentSet } ?? true }
  }
}

extension VaultAccessControl: CustomStringConvertible {
  /// The flags with commas between them.
  package var description: String { flags.joined(separator: ", ") }
}
