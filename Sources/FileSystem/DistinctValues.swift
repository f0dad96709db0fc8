/// Numbers for values of which many are the same: of these one is kept.
package struct DistinctValues<Value: Hashable & Sendable>: Sendable {
  @usableFromInline package var values: [Value] = []
  @usableFromInline package var numbers: [Value: UInt32] = [:]
  /// The number that was asked for last: mostly it is the next one, too, and a value is compared sooner than hashed.
  @usableFromInline package var last: UInt32 = 0

  @inlinable package init() {}

  @inlinable package subscript(number: UInt32) -> Value { values[Int(number)] }

  /// The number of a value, which may be new.
  @inlinable package mutating func number(of value: Value) -> UInt32 {
    if last < values.count, values[Int(last)] == value { return last }
    if let known = numbers[value] {
      last = known
    } else {
      last = UInt32(values.count)
      values.append(value)
      numbers[value] = last
    }
    return last
  }
}
