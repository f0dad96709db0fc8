import ArgumentParser
import Drydock

/// The exit codes, as documented.
enum ExitStatus: Int32 {
  /// Failed; nothing changed.
  case failed = 1
  /// Changes are pending.
  case pending = 2
  /// Done, but incomplete.
  case incomplete = 3
  /// Edited, missing, out of order, unknown version, damaged archive, other instance.
  case validation = 4
  /// Locked, in use, or changed meanwhile.
  case busy = 5
  /// Both sides changed the same thing.
  case conflict = 6
  /// The command line makes no sense.
  case usage = 64

  /// To be thrown once everything has been said.
  var code: ExitCode { ExitCode(rawValue) }
}

extension TransactionOutcome {
  /// The code for what a person still has to look at; nil for nothing.
  var exit: ExitStatus? {
    if !conflicts.isEmpty { return .conflict }
    return isFinished ? nil : .incomplete
  }

  /// Ends the program with that code.
  func throwUnlessClean() throws {
    if let exit { throw exit.code }
  }

  /// What a person is to know of it, first who could not be seen.
  var allNotes: [String] { (unseen.map { [$0.note] } ?? []) + notes }

  /// Remarks, for standard error, but for who could not be seen: that is the same for many containers.
  var remarks: [String] {
    notes.map { "drydock: note: \($0)" }
      + conflicts.map { "drydock: the app changed it at the same moment, kept aside: \($0)" }
  }
}
