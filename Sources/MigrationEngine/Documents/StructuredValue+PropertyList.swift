import AppContainer
import DrydockErrors
import Formats
import Foundation

extension PropertyListValue: StructuredValue {
  var shape: ValueShape {
    switch self {
    case .array(let values): .array(count: values.count)
    case .dictionary: .dictionary
    default: .single(typeName)
    }
  }

  func part(_ place: ValuePlace) -> PropertyListValue? {
    switch (self, place) {
    case (.array(let values), .element(let index)): values.indices.contains(index) ? values[index] : nil
    case (.dictionary(let values), .member(let key)): values[key]
    default: nil
    }
  }

  mutating func replace(_ place: ValuePlace, with value: PropertyListValue) {
    switch (self, place) {
    case (.array(var values), .element(let index)):
      values[index] = value
      self = .array(values)
    case (.dictionary(var values), .member(let key)):
      values[key] = value
      self = .dictionary(values)
    default: break
    }
  }

  mutating func insert(_ value: PropertyListValue, at place: ValuePlace, order: Int?) {
    guard case .array(var values) = self, case .element(let index) = place else {
      return replace(place, with: value)
    }
    values.insert(value, at: index)
    self = .array(values)
  }

  mutating func remove(_ place: ValuePlace) {
    switch (self, place) {
    case (.array(var values), .element(let index)):
      values.remove(at: index)
      self = .array(values)
    case (.dictionary(var values), .member(let key)):
      values[key] = nil
      self = .dictionary(values)
    default: break
    }
  }

  func order(of place: ValuePlace) -> Int? { nil }

  init(_ node: YAMLNode) throws { self = try node.propertyListValue() }
  init(integer: Int64) { self = .integer(integer) }
  init(key: String, value: PropertyListValue) { self = .dictionary([key: value]) }

  init(stored: String) throws {
    guard let data = Data(base64Encoded: stored) else {
      throw DrydockError(.malformed, "a value that was written down is no base64")
    }
    self = try PropertyListDocument(bytes: [UInt8](data)).value
  }

  /// A binary property list in base64, which keeps every type.
  var stored: String {
    let bytes = try? PropertyListDocument(format: .binary, value: self).encoded()
    return Data(bytes ?? []).base64EncodedString()
  }

  var integer: Int64? {
    if case .integer(let number) = self { number } else { nil }
  }

  func shown(_ redactor: Redactor, names: [String]) -> String {
    redactor.typed(self, of: names.last { SecretPattern.isSecret(self, key: $0) } ?? names.last ?? "")
  }
}
