import AppContainer
import Formats
import Foundation

/// One run of a program by a script step, and what is said of it.
struct ScriptRun {
  /// Lines of a failed program's output that its error quotes.
  private static let quotedLines = 20

  let command: ScriptCommand
  let executable: String
  let environment: [String: String]
  let directory: String
  let timeout: Double
  let redactor: Redactor

  /// - Parameter users: who still works on the copy, for messages; asked after the program has ended.
  /// - Returns: remarks: what the program wrote.
  /// - Throws: ``StepFailure`` unless it ended in time, with exit code 0, and left nobody behind.
  func run(users: @escaping @Sendable () throws -> [String]) throws -> [String] {
    let process = ScriptProcess(
      executable: executable, arguments: command.arguments, environment: environment, directory: directory,
      timeout: timeout)
    let result: ScriptProcess.Outcome
    do {
      result = try process.run(users: users)
    } catch let failure as ScriptProcess.StartFailure {
      throw StepFailure(message: "\(command) cannot be started: \(failure.reason)")
    }
    let output = redactor.shown(message: result.output.text)
    let errors = redactor.shown(message: result.errors.text)
    if let problem = problem(result) {
      let text = ScriptOutput.lastLines(errors.isEmpty ? output : errors, Self.quotedLines)
      throw StepFailure(
        message: problem
          + (text.isEmpty ? "; it wrote nothing" : "; it wrote\n" + ScriptOutput.indented(text)))
    }
    return [("", output), (" to standard error", errors)].compactMap { stream, text in
      text.isEmpty ? nil : "\(command) wrote\(stream)\n" + ScriptOutput.indented(text)
    }
  }

  private func problem(_ result: ScriptProcess.Outcome) -> String? {
    switch result.end {
    case .timedOut:
      "\(command) was ended after \(PropertyListValue.real(timeout)) seconds, with all that it started: give it more time with `timeout`, or make it quicker"
    case .signal(let number):
      "\(command) was ended by signal \(number) (\(String(cString: strsignal(number))))"
    case .exit(0) where result.left.isEmpty: nil
    case .exit(0):
      "\(command) ended while what it had started went on (\(result.left.joined(separator: "; "))): it must wait for that"
    case .exit(let code): "\(command) ended with exit code \(code)"
    }
  }
}
