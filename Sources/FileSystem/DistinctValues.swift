/// Numbers for values of which many are the same: of these one is kept.
package struct DistinctValues<Value: Hashable & Sendable>: Sendable {
  @usableFromInline package var values: [Value] = []
  @usableFromInline package var numbers: [Value: UInt32] = [:]

  @inlinable package init() {}

  @inlinable package subscript(number: UInt32) -> Value { values[Int(number)] }

  /// The number of a value, which may be new.
  @inlinable package mutating func number(of value: Value) -> UInt32 {
    if let known = numbers[value] { return known }
    let number = UInt32(values.count)
    values.append(value)
    numbers[value] = number
    return number
  }
}
