/// Which version a container has, and how that was found out.
package struct DetectedVersion: Sendable, Equatable {
  /// What said it.
  package enum Source: Sendable, Equatable, CustomStringConvertible {
    /// The history of migrations.
    case history
    /// Another tool's own record, named in words.
    case tool(String)
    /// A version marker of the app, named in words.
    case marker(String)
    /// There is nothing in the container yet.
    case newContainer

    /// Words for people: "the history", "the setting `x`", "a new container".
    package var description: String {
      switch self {
      case .history: "the history"
      case .marker(let name), .tool(let name): name
      case .newContainer: "a new container"
      }
    }
  }

  /// The schema version.
  package var version: Int
  /// What said it.
  package var source: Source
  /// The history as it is in the container; empty when there is none.
  package var history: MigrationHistory
  /// What the container has beyond the history, because the app migrated itself: to be recorded.
  package var elsewhere: MigratedElsewhere
  /// What a container without a history is judged by, when that is a version marker without `at:`: its number may be
  /// from before there were migrations of Drydock's. Nil for one that somebody has vouched for.
  package var firstContact: FirstContact? = nil

  package struct FirstContact: Sendable, Equatable {
    /// The marker in words, and its number.
    package var marker: String, number: Int
  }
}

/// Which migrations a container has although Drydock did not run them.
package enum MigratedElsewhere: Sendable, Equatable {
  /// None.
  case none
  /// All numbers from one to another, as a version marker tells that knows the last one only.
  case through(ClosedRange<Int>)
  /// These, as another tool's table tells that has a row for each.
  case each(Set<Int>)

  /// Whether a number is among them.
  package func contains(_ number: Int) -> Bool {
    switch self {
    case .none: false
    case .through(let range): range.contains(number)
    case .each(let numbers): numbers.contains(number)
    }
  }

  /// Without what a history would have, had it been run: a tool that keeps one number for all does not know which ones
  /// below it were there then.
  func beyond(_ history: MigrationHistory) -> MigratedElsewhere {
    guard case .through(let range) = self, history.version >= range.lowerBound else { return self }
    return history.version < range.upperBound ? .through(history.version + 1...range.upperBound) : .none
  }

  /// The newest of them; 0 without any.
  var newest: Int {
    switch self {
    case .none: 0
    case .through(let range): range.upperBound
    case .each(let numbers): numbers.max() ?? 0
    }
  }
}
