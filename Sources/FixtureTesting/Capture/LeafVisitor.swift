import AppContainer
import Foundation

/// Where a value stands.
struct LeafPlace {
  /// What its name says.
  var name = SecretName.plain
  /// Whether its value was chosen to be made up.
  var isChosen = false
  /// Whether its name says that it is an identifier of the device or of a container.
  var isIdentifier = false
  /// Whether data stay here although nobody can look into them.
  var isKept = false
  /// The place for people.
  var label: String
}

/// Looks at each value in a container, and may give another one for it.
protocol LeafVisitor {
  /// Whether the fields of keyed archives are wanted beside their names. They cannot be written back then.
  var resolvesArchives: Bool { get }
  /// Keys whose values are chosen.
  var keys: Set<String> { get }

  /// A text that is no document.
  mutating func text(_ text: String, _ place: LeafPlace) throws -> String
  /// Bytes that are neither text nor a document.
  mutating func data(_ bytes: [UInt8], _ place: LeafPlace) throws -> [UInt8]
  /// A number without a fraction, as it is written.
  mutating func number(_ digits: String, _ place: LeafPlace) throws -> String
  /// A point in time.
  mutating func date(_ date: Date, _ place: LeafPlace) throws -> Date
  /// A key of a dictionary; whether it is a secret by itself.
  mutating func key(_ key: String, isSecret: Bool, _ place: LeafPlace) throws -> String
}

extension LeafVisitor {
  /// The place of what a key holds.
  func place(of key: String, _ name: SecretName, in place: LeafPlace) -> LeafPlace {
    var inner = place
    (inner.name, inner.isChosen) = (name, place.isChosen || keys.contains(key))
    inner.isIdentifier = DeviceIdentifiers.isKey(key)
    return inner
  }
}
