/// Values as they are written in Swift: text, `true`, `14`, `1.5`, lists and dictionaries.
extension PropertyListValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Text.
  package init(stringLiteral value: String) { self = .string(value) }

  /// A Bool.
  package init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// An integer.
  package init(integerLiteral value: Int64) { self = .integer(value) }

  /// A real.
  package init(floatLiteral value: Double) { self = .real(value) }

  /// A list.
  package init(arrayLiteral elements: PropertyListValue...) { self = .array(elements) }

  /// A key that is there twice has the value that comes last.
  package init(dictionaryLiteral elements: (String, PropertyListValue)...) {
    self = .dictionary(PropertyListDictionary(elements))
  }
}

extension PropertyListValue: ExpressibleByStringInterpolation {}
