extension SuiteResult {
  /// How many fixtures came out so.
  package func count(_ state: FixtureResult.State) -> Int { fixtures.count { $0.state == state } }

  /// The counts in words: `14 fixtures: 12 passed, 1 failed, 1 known failure`.
  package var counts: String {
    let states: [(FixtureResult.State, String, String)] = [
      (.passed, "passed", "passed"), (.failed, "failed", "failed"),
      (.knownFailure, "known failure", "known failures"), (.notRun, "not run", "not run"),
    ]
    let words = states.compactMap { state, one, many in
      let number = count(state)
      return number == 0 ? nil : "\(number) \(number == 1 ? one : many)"
    }
    let fixtures = "\(self.fixtures.count) \(self.fixtures.count == 1 ? "fixture" : "fixtures")"
    return words.isEmpty ? fixtures : fixtures + ": " + words.joined(separator: ", ")
  }
}
