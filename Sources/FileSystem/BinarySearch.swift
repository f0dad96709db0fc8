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
