@testable import Formats

extension FuzzTarget {
  /// What an archive holds must survive being written, in both forms, with all options.
  func readKeyedArchive(_ bytes: [UInt8]) throws {
    var options = KeyedArchiveOptions()
    options.classes = ["A": .init(names: ["a": "b"], dropped: ["c"])]
    for keys in KeyedArchiveOptions.Keys.allCases {
      for decimals in KeyedArchiveOptions.Decimals.allCases {
        (options.keys, options.decimals) = (keys, decimals)
        let value = try KeyedArchiveReader.read(bytes, options)
        let list = PropertyListDocument(format: .binary, value: value)
        guard try PropertyListDocument(bytes: list.encoded()).value.matches(value) || value.hasNoNumber else {
          fatalError("what is written is not what is read")
        }
        let json = try JSONValue(keyedArchive: value, dates: .since2001)
        guard try JSONDocument(bytes: JSONDocument(json, isIndented: true).bytes).value.matches(json) else {
          fatalError("what is written as JSON is not what is read")
        }
      }
    }
  }
}

extension PropertyListValue {
  /// Whether there is a NaN in it, which is not even equal to itself.
  fileprivate var hasNoNumber: Bool {
    switch self {
    case .real(let real): real.isNaN
    case .single(let real): real.isNaN
    case .date(let date): date.timeIntervalSinceReferenceDate.isNaN
    case .array(let values): values.contains(where: \.hasNoNumber)
    case .dictionary(let values): values.values.contains(where: \.hasNoNumber)
    default: false
    }
  }
}
