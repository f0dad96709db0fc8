/// What tells whether two findings are about the same thing. A database that moves takes its differences along.
struct FindingDifference: Hashable {
  let place: String?
  private let part: String?
  private let expected: String?, found: String?

  init(_ finding: FixtureFinding) {
    place = finding.place
    part = finding.place.map { place in
      place.firstRange(of: ": ").map { String(place[$0.upperBound...]) } ?? place
    }
    (expected, found) = (finding.expected, finding.found)
  }

  static func == (a: FindingDifference, b: FindingDifference) -> Bool {
    (a.part, a.expected, a.found) == (b.part, b.expected, b.found)
  }

  func hash(into hasher: inout Hasher) { hasher.combine(part) }
}
