import ArgumentParser
import Drydock

/// An error as the program reports it: an exit code, a message, a path.
struct Failure {
  let status: ExitStatus
  let code: String
  let message: String
  let path: String?
  /// The archives that cannot be read, if that is the error.
  private(set) var unreadable: [UnreadableArchive]?

  /// Nil for errors of others, such as the argument parser.
  init?(known error: any Error) {
    switch error {
    case let error as DrydockError:
      self.init(
        ExitStatus(rawValue: error.code.exitCode) ?? .failed, error.code.rawValue, error.advised.message,
        error.place)
      unreadable = (error.cause as? UnreadableArchives)?.archives
    case let error as UsageError: self.init(.usage, "usage", error.message, nil)
    default: return nil
    }
  }

  init(_ error: any Error) {
    self = Failure(known: error) ?? Failure(.failed, "failed", String(describing: error), nil)
  }

  init(_ status: ExitStatus, _ code: String, _ message: String, _ path: String?) {
    // The library's messages have no secrets, but they quote command lines and the user's files.
    let redactor = Redactor()
    (self.status, self.code) = (status, code)
    (self.message, self.path) = (redactor.shown(message: message), path.map(redactor.shown(message:)))
  }

  /// What the argument parser says of an invalid command line, without what looks like a secret in it: a
  /// mistyped `vault` or `defaults` command may have a value where none belongs.
  static func usage(_ text: String, arguments: [String]) -> String {
    var text = Redactor().shown(message: text)
    guard arguments.first == "vault" || arguments.first == "defaults" else { return text }
    for argument in arguments.dropFirst(2) where !argument.hasPrefix("-") {
      text.replace("'\(argument)'", with: "(\(argument.count) characters)")
    }
    return text
  }

  /// Prints the failure: a line on standard error, and with `--json` a document on standard output.
  func report(asJSON: Bool) {
    Output.error("\(text)")
    guard asJSON else { return }
    var detail = detail(status: status)
    detail["unreadable_archives"] = unreadable
    Output.json(["error": detail] as ResultObject)
  }

  var text: String { DrydockError(.io, message, path: path).description }

  /// The failure in JSON, with the exit code of the command as a whole.
  func detail(status: ExitStatus) -> ResultObject {
    ["code": code, "message": message, "path": path, "exit_code": status.rawValue]
  }
}

/// A command line that the argument parser accepts, but that is invalid.
struct UsageError: Error {
  var message: String

  init(_ message: String) { self.message = message }

  /// Reads the value of an option: what is wrong with it is wrong with the command line.
  static func reading<Value>(_ option: String, _ value: () throws -> Value) throws -> Value {
    do { return try value() } catch let error as DrydockError {
      throw UsageError("\(option): \(error.message)")
    }
  }
}

enum ExitStatus: Int32 {
  /// Failed; nothing changed.
  case failed = 1
  case pending = 2
  case incomplete = 3
  /// Edited, missing, out of order, unknown version, damaged archive, other instance.
  case validation = 4
  /// Locked, in use, or changed meanwhile.
  case busy = 5
  case conflict = 6
  case usage = 64

  /// Thrown at the end of a command.
  var code: ExitCode { ExitCode(rawValue) }
}
