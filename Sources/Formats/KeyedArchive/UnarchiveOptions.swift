/// What becomes of the things in an archive that property lists and JSON have no single form for.
package struct UnarchiveOptions: Sendable {
  /// What becomes of an instance of one of the app's own classes: a dictionary of its fields.
  package struct ClassRule: Sendable {
    /// New names of fields, by the old ones.
    package var names: [String: String]
    /// Fields that are left out, such as one that leads back to the owner.
    package var dropped: Set<String>

    /// A rule from its parts; without them all fields keep their names.
    package init(names: [String: String] = [:], dropped: Set<String> = []) {
      (self.names, self.dropped) = (names, dropped)
    }
  }

  /// What becomes of a dictionary whose keys are not all text.
  package enum Keys: String, CaseIterable, Sendable {
    /// It cannot be converted.
    case fail
    /// Numbers, Bools and dates become text.
    case text
    /// It becomes a list of key, value, key, value and so on, which is what Swift's `Codable` reads.
    case pairs
  }

  /// What becomes of a decimal number.
  package enum Decimals: String, CaseIterable, Sendable {
    /// An integer or a real; one that has more digits than these hold cannot be converted.
    case number
    /// Its digits, as text.
    case text
  }

  /// The app's own classes, by name.
  package var classes: [String: ClassRule] = [:]
  /// The key under which a dictionary made by a ``ClassRule`` gets the name of its class; nil for none.
  package var classKey: String?
  /// Dictionaries whose keys are not all text.
  package var keys = Keys.fail
  /// Decimal numbers.
  package var decimals = Decimals.number

  /// The defaults: Foundation's classes only, and nothing that would need a guess.
  package init() {}
}
