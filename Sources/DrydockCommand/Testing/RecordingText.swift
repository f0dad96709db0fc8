import Drydock
import FixtureTesting
import Foundation

/// What became of goldens, for people.
enum RecordingText {
  /// The goldens of one fixture that are other ones now, each with what it says differently; a problem goes to standard
  /// error in any case.
  static func tell(_ recording: FixtureSuite.Recording, isShown: Bool) {
    if let problem = recording.problem {
      let failure = Failure(problem) ?? Failure(unforeseen: problem)
      Output.note("drydock: error: fixture \(recording.fixture): nothing recorded: \(failure.text)".printable)
    }
    guard isShown else { return }
    for golden in recording.goldens where golden.change != .unchanged {
      Output.line(
        "\(golden.change.rawValue) \(FindingText.path(golden.directory, from: directory))".printable)
      if let difference = golden.difference { DifferenceText().write(difference) }
    }
  }

  /// How many became what.
  static func end(_ recordings: [FixtureSuite.Recording]) {
    let goldens = recordings.flatMap(\.goldens)
    let counts = [RecordedGolden.Change.written, .updated, .removed, .unchanged].compactMap { change in
      let number = goldens.count { $0.change == change }
      return number == 0 ? nil : "\(number) \(change.rawValue)"
    }
    let words = counts.isEmpty ? "" : ": " + counts.joined(separator: ", ")
    Output.line(Output.count(goldens.count, "golden") + words)
  }

  private static var directory: String { FileManager.default.currentDirectoryPath }
}
