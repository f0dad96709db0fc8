extension JUnitReport {
  /// A test case: a fixture, or a check over all of them.
  struct Case {
    /// What a case has in it that did not simply pass.
    struct Outcome {
      enum Kind: String {
        case failure, error, skipped
      }

      var kind: Kind
      /// In place of the first finding's headline.
      var message: String? = nil
      /// What stands in `type` without findings.
      var type = ""
      var findings: [FixtureFinding] = []
      /// Lines behind the findings.
      var remarks: [String] = []
    }

    var name: String
    var seconds = 0.0
    /// Nil when it passed.
    var outcome: Outcome?
  }
}

extension JUnitReport.Case {
  init(_ fixture: FixtureResult) {
    // A name is one line there, with single blanks.
    name = fixture.name.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    seconds = fixture.seconds
    let remarks = fixture.kept.map { ["the containers are kept in \($0)"] } ?? []
    switch fixture.state {
    case .passed: outcome = nil
    case .notRun:
      outcome = Outcome(
        kind: .skipped, message: "not run: another fixture failed before", type: fixture.state.rawValue)
    case .knownFailure:
      outcome = Outcome(
        kind: .skipped, message: "known failure: \(fixture.knownFailure ?? "")", findings: fixture.findings,
        remarks: remarks)
    case .failed:
      let kind: Outcome.Kind = fixture.findings.first?.check == .build ? .error : .failure
      outcome = Outcome(kind: kind, findings: fixture.findings, remarks: remarks)
    }
  }

  /// The checks over all fixtures; those that could not be made are skipped.
  static func overAll(_ result: SuiteResult) -> [JUnitReport.Case] {
    var names: [(FixtureFinding.Check, String)] = [
      (.coverage, "every step has an effect on some fixture"), (.release, "every release has its fixtures"),
      (.fresh, "migrated containers are like fresh ones"),
    ]
    for finding in result.findings where !names.contains(where: { $0.0 == finding.check }) {
      names.append((finding.check, finding.check.rawValue))
    }
    return names.map { check, name in
      let findings = result.findings.filter { $0.check == check }
      if !findings.isEmpty { return Self(name: name, outcome: Outcome(kind: .failure, findings: findings)) }
      if result.notes.isEmpty { return Self(name: name, outcome: nil) }
      return Self(
        name: name,
        outcome: Outcome(kind: .skipped, message: result.notes.joined(separator: "; "), type: "not-run"))
    }
  }
}
