/// The known word that somebody probably meant.
package enum NearestWord {
  /// The candidate with the smallest edit distance (a swap of neighbours counts one), or nil when none is near.
  package static func to(_ word: String, among candidates: [String]) -> String? {
    let typed = Array(word.lowercased().unicodeScalars)
    let limit = max(1, typed.count / 4)
    var best: (distance: Int, word: String)?
    for candidate in candidates {
      let known = Array(candidate.lowercased().unicodeScalars)
      guard abs(known.count - typed.count) <= limit else { continue }
      let distance = distance(typed, known)
      if distance <= limit, distance < best?.distance ?? .max { best = (distance, candidate) }
    }
    return best?.word
  }

  /// The end of an error message: "did you mean `x`?" or the known words, when they are few.
  package static func hint(for word: String, among candidates: [String]) -> String {
    if let near = to(word, among: candidates) { return "did you mean `\(near)`?" }
    if candidates.isEmpty { return "none is known here" }
    return "known here: " + candidates.sorted().joined(separator: ", ")
  }

  private static func distance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    if left.isEmpty || right.isEmpty { return left.count + right.count }
    var older = [Int](repeating: 0, count: right.count + 1)
    var previous = Array(0...right.count)
    for row in 1...left.count {
      var current = [row] + [Int](repeating: 0, count: right.count)
      for column in 1...right.count {
        let cost = left[row - 1] == right[column - 1] ? 0 : 1
        current[column] = min(previous[column] + 1, current[column - 1] + 1, previous[column - 1] + cost)
        if row > 1, column > 1, left[row - 1] == right[column - 2], left[row - 2] == right[column - 1] {
          current[column] = min(current[column], older[column - 2] + 1)
        }
      }
      older = previous
      previous = current
    }
    return previous[right.count]
  }
}
