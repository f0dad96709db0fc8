import FileSystem
import Formats
import Foundation

/// What type a setting had that became a vault item: its value with all that it says taken out of it.
struct SettingType: Sendable, Codable, Equatable {
  let file: ContainerPath
  @ExactText var key: String
  /// The same value with empty texts and data, and numbers of 0.
  private let emptied: StoredValue

  init(of value: PropertyListValue, _ key: String, in file: ContainerPath) {
    (self.file, self.key) = (file, key)
    emptied = StoredValue(value.emptied)
  }

  /// The type.
  var value: PropertyListValue { emptied.value }
}

extension PropertyListValue {
  fileprivate var emptied: PropertyListValue {
    switch self {
    case .string, .unknown: .string("")
    case .boolean: .boolean(false)
    case .integer: .integer(0)
    case .unsigned: .unsigned(0)
    case .real: .real(0)
    case .single: .single(0)
    case .date: .date(Date(timeIntervalSinceReferenceDate: 0))
    case .data: .data([])
    case .array(let values): .array(values.map(\.emptied))
    case .dictionary(let values): .dictionary(values.mapValues(\.emptied))
    }
  }

  /// The value with its numbers in the types of another one, where that changes nothing else: JSON has one type for all.
  func typed(like other: PropertyListValue?) -> PropertyListValue {
    switch (self, other) {
    case (.integer(let number), .real?): .real(Double(number))
    case (.integer(let number), .single?): .single(Float(number))
    case (.integer(let number), .unsigned?): UInt64(exactly: number).map { .unsigned($0) } ?? self
    case (.real(let real), .single?): .single(Float(real))
    case (.array(let values), .array(let others)?) where values.count == others.count:
      .array(zip(values, others).map { $0.typed(like: $1) })
    case (.dictionary(let values), .dictionary(let others)?):
      .dictionary(PropertyListDictionary(values.map { ($0, $1.typed(like: others[$0])) }))
    default: self
    }
  }
}
