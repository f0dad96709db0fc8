/// The types of settings, as migrations, assertions, SQL and the command line name them.
package enum SettingType: String, CaseIterable, Sendable {
  case string, integer, real, boolean, date, data, array, dictionary
  /// Android's numbers of 32 and 64 bits, its real of 32 bits, and its set of strings.
  case int, long, float, set

  /// By its name, or by a shorter one: SQL says `text`.
  package init?(rawValue: String) {
    let others: [String: SettingType] = ["text": .string, "bool": .boolean, "dict": .dictionary]
    guard let type = others[rawValue] ?? Self.allCases.first(where: { "\($0)" == rawValue }) else {
      return nil
    }
    self = type
  }

  /// The type of a setting; nil for a value that only its app understands.
  package init?(of value: PropertyListValue) {
    switch value {
    case .string: self = .string
    case .integer, .unsigned: self = .integer
    case .real: self = .real
    case .boolean: self = .boolean
    case .date: self = .date
    case .data: self = .data
    case .array: self = .array
    case .dictionary: self = .dictionary
    case .int: self = .int
    case .long: self = .long
    case .single: self = .float
    case .set: self = .set
    case .unknown: return nil
    }
  }
}
