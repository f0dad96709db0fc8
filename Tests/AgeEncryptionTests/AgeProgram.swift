import AgeEncryption
import Foundation
import TestSupport

/// The `age` and `age-keygen` programs, for checking against. When they are missing, tests fail.
struct AgeProgram {
  let directory: TemporaryDirectory
  private let age: String
  private let keygen: String

  /// Keeps its files in `directory`.
  init(in directory: TemporaryDirectory) throws {
    self.directory = directory
    age = try Tools.system("age")
    keygen = try Tools.system("age-keygen")
  }

  /// Writes a file and gives its path.
  func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    try RawFiles.write(bytes, to: Array(directory(name).utf8))
    return directory(name)
  }

  /// What `age` makes of `input`. Throws with its complaint when it does not end well.
  func run(_ arguments: [String], input: [UInt8] = []) throws -> [UInt8] {
    let result = try result(arguments, input: input)
    guard result.succeeded else { throw SystemFailure("age \(arguments): \(result.errors)") }
    return result.outputBytes
  }

  /// How a run of `age` ends.
  func result(_ arguments: [String], input: [UInt8] = []) throws -> CommandResult {
    try Command.run(age, arguments, input: input)
  }

  /// Runs `age` at a terminal, and answers whatever it asks. Throws with what it said when it does not end well.
  func run(_ arguments: [String], answering answer: String) throws {
    let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/at_terminal.py"
    try Command.succeed(Tools.system("python3"), [script, answer, age] + arguments, limit: 60)
  }

  /// The output of `age-keygen`.
  func keygen(_ arguments: [String], input: [UInt8] = []) throws -> CommandResult {
    try Command.run(keygen, arguments, input: input)
  }

  /// A key file with one identity.
  func keyFile(_ identity: AgeIdentity, _ name: String = "key.txt") throws -> String {
    let text = KeyFile.text(of: identity, created: "2026-11-20T10:15:00Z")
    return try file(name, text.withBytes { Array($0) })
  }
}
