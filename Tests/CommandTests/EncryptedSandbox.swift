import Foundation
import TestSupport

extension Sandbox {
  /// Makes a key file with age's own program; gives its public key.
  func key(_ file: String) throws -> String {
    try run(Tools.system("age-keygen"), "-o", directory(file))
    return try run(Tools.system("age-keygen"), "-y", directory(file)).trimmingCharacters(in: .newlines)
  }

  /// Takes an encrypted snapshot as a file in the sandbox.
  func sealed(_ file: String, to recipients: String..., container: String = "Notes") throws {
    let result = try drydock(
      ["snapshot", container, "-o", file] + recipients.flatMap { ["--recipient", $0] })
    guard result.succeeded else { throw SystemFailure("\(result)") }
  }

  /// Runs a shell script in the sandbox, which must succeed; gives its output.
  @discardableResult
  func shell(_ script: String) throws -> String {
    let result = try Command.run(
      "/bin/bash", ["-euo", "pipefail", "-c", script], environment: environment, directory: directory.path)
    guard result.succeeded else { throw SystemFailure("\(script): \(result)") }
    return result.output
  }

  /// Runs `drydock` at a terminal, where each of its questions gets this answer, after a shell command.
  func atTerminal(
    _ answer: String, _ arguments: [String], before command: String? = nil
  ) throws -> CommandResult {
    let script = Self.repository + "/Tests/AgeEncryptionTests/at_terminal.py"
    return try Command.run(
      Tools.system("python3"), [script, answer, program] + arguments,
      environment: environment.merging(["BEFORE_ANSWER": command]) { $1 },
      directory: directory.path, limit: 60)
  }

  /// The files of the sandbox, hidden ones too, that have a text in their content or name; containers aside.
  func files(with text: String, except containers: [String]) throws -> [String] {
    let skipped = containers.map { "-path ./\($0) -prune -o" }.joined(separator: " ")
    return try shell(
      """
      find . \(skipped) -name '*\(text)*' -print
      find . \(skipped) -type f -print0 | xargs -0 --no-run-if-empty grep -laF -- '\(text)' || true
      """
    ).split(separator: "\n").map(String.init)
  }
}

extension Sandbox {
  /// Runs `drydock`, which must succeed; gives its output.
  @discardableResult
  func succeed(_ arguments: [String]) throws -> String {
    let result = try drydock(arguments)
    guard result.succeeded else {
      throw SystemFailure("drydock \(arguments.joined(separator: " ")): \(result)")
    }
    return result.output
  }
}
