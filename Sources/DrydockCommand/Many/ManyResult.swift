import Drydock

/// What a command did to one container of many.
struct ManyResult: Sendable {
  /// How the container stands, for the summary.
  enum State: String, Encodable, CaseIterable {
    /// The command changed it.
    case changed
    /// It is to be changed: nothing was done yet.
    case pending
    /// There was nothing to do.
    case unchanged
    /// It is as it was, for the reason that is told.
    case failed
  }

  /// See ``State``.
  var state: State
  /// What was done, in a few words.
  var text: String
  /// What the command prints for one container with `--json`; nil for one that is past what was asked for.
  var document: (any Encodable & Sendable)?
  /// What the command would exit with for this container; nil for 0.
  var exit: ExitStatus?
  /// Remarks, for standard error.
  var notes: [String] = []
  /// Processes that may have had the container open without being seen.
  var unseen: UnseenProcesses?
}

/// One line of the report with `--json`.
struct ManyLine: Encodable {
  /// The container's name in the directory, and its path.
  var container: String, path: String
  /// See ``ManyResult/State``.
  var state: ManyResult.State
  /// What the command would exit with for this container.
  var exitCode: Int32
  /// Remarks, which also go to standard error.
  var notes: [String]
  /// What the command prints for one container.
  var result: Document?
  /// Why it failed.
  var error: Failure.Detail?

  /// A document of any command.
  struct Document: Encodable {
    let value: any Encodable & Sendable
    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
  }
}

/// The last line of the report with `--json`.
struct ManySummary: Encodable {
  struct Counts: Encodable {
    var containers = 0, changed = 0, pending = 0, unchanged = 0, failed = 0

    subscript(_ state: ManyResult.State) -> Int {
      get {
        switch state {
        case .changed: changed
        case .pending: pending
        case .unchanged: unchanged
        case .failed: failed
        }
      }
      set {
        switch state {
        case .changed: changed = newValue
        case .pending: pending = newValue
        case .unchanged: unchanged = newValue
        case .failed: failed = newValue
        }
      }
    }
  }

  var summary = Counts()
  /// What the program exits with.
  var exitCode: Int32 = 0
  /// What else is in the directory.
  var passedOver: [String] = []
  /// As for one container, over all of them.
  var exposed: [ExposedSecret] = [], notSearched: [String] = []

  /// One exit code for many: the one that they share; that changes are pending, when all else is done; that of the first,
  /// when none is done; else that not all is.
  static func exitCode(of codes: [Int32]) -> Int32 {
    let (kinds, good) = (Set(codes), Set([0, ExitStatus.pending.rawValue]))
    if kinds.count > 1, kinds.isSubset(of: good) { return ExitStatus.pending.rawValue }
    if kinds.count <= 1 || kinds.isDisjoint(with: good) { return codes.first ?? 0 }
    return ExitStatus.incomplete.rawValue
  }
}
