extension Range<Int> {
  /// The first number for which a condition holds that holds for all later ones, too; the upper bound when it holds for none.
  @inlinable package func first(since isReached: (Int) throws -> Bool) rethrows -> Int {
    var (low, high) = (lowerBound, upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if try isReached(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension UnsafeRawBufferPointer {
  /// The first of records of one width that has a number from a given one on, by which they are sorted; their count when
  /// none has.
  ///
  /// - Parameter offset: where a record has its number.
  package func firstRecord(width: Int, at offset: Int, since number: UInt64) -> Int {
    (0..<count / width).first(since: {
      loadUnaligned(fromByteOffset: $0 * width + offset, as: UInt64.self) >= number
    })
  }
}
