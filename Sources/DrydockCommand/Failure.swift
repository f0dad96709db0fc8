import Drydock
import FixtureTesting
import Foundation

/// An error of any module as the program tells it: an exit code, a message, a path.
struct Failure {
  let status: ExitStatus
  let code: String
  let message: String
  let path: String?

  /// Nil for what is not an error of Drydock's, such as those of the argument parser.
  init?(_ error: any Error) {
    let (message, path): (String, String?)
    switch error {
    case let error as DrydockError:
      (code, message, path) = (error.code.rawValue, error.messageWithOption, error.place)
      status = ExitStatus(rawValue: error.code.exitCode) ?? .failed
    case let error as UsageError:
      (code, message, path) = ("usage", error.message, nil)
      status = .usage
    default: return nil
    }
    // Messages are without secrets; but they quote what a command line and files of the user's say.
    let redactor = Redactor()
    self.message = redactor.shown(message: message)
    self.path = path.map(redactor.shown(message:))
  }

  /// An error that no module has put into its own words.
  init(unforeseen error: any Error) {
    (status, code, path) = (.failed, "failed", nil)
    message = Redactor().shown(message: String(describing: error))
  }

  /// What the argument parser says of a command line that makes no sense, without what looks like a secret in it: a
  /// mistyped `vault` command may have the value of an item where none belongs.
  static func usage(_ text: String, arguments: [String]) -> String {
    var text = Redactor().shown(message: text)
    guard arguments.first == "vault" else { return text }
    for argument in arguments.dropFirst(2) where !argument.hasPrefix("-") {
      text.replace("'\(argument)'", with: "(\(argument.count) characters)")
    }
    return text
  }

  /// Says it: one line on standard error, and with `--json` a document on standard output.
  func report(asJSON: Bool) {
    Output.note("drydock: error: \(text)")
    guard asJSON else { return }
    Self.document(code: code, message: message, path: path, status: status.rawValue)
  }

  /// The message with its path.
  var text: String { DrydockError(.io, message, path: path).description }

  /// A failure in JSON.
  struct Detail: Encodable, Sendable {
    var code: String
    var message: String
    var path: String?
    var exitCode: Int32
  }

  /// It in JSON, with the exit code of the command as a whole.
  func detail(status: ExitStatus) -> Detail {
    Detail(code: code, message: message, path: path, exitCode: status.rawValue)
  }

  /// The one JSON document of a command that failed.
  static func document(code: String, message: String, path: String?, status: Int32) {
    struct Document: Encodable {
      var error: Detail
    }
    Output.json(Document(error: .init(code: code, message: message, path: path, exitCode: status)))
  }
}

/// A command line that the argument parser took and that makes no sense all the same.
struct UsageError: Error {
  var message: String
}
