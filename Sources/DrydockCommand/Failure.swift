import ArgumentParser
import Drydock
import FixtureTesting
import Foundation

/// An error as the program reports it: an exit code, a message, a path.
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
      (code, path) = (error.code.rawValue, error.place)
      message = Advice.message(of: error)
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

  /// What the argument parser says of an invalid command line, without what looks like a secret in it: a
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

/// Options and commands that help with an error of the library, which knows nothing of them.
enum Advice {
  /// By the beginning of the command, the code of the error, and a part of its message; the first match counts.
  private static let table: [(command: String, code: DrydockError.Code, part: String, text: String)] = [
    ("vault set", .exists, "", "--if-exists replace gives it the new value"),
    ("vault", .notFound, "no vault", "`drydock vault set` creates one"),
    ("vault", .ambiguous, "", "--account, --access-group ('' for none) or --class"),
    ("vault", .missing, "no item", "`drydock vault list` shows all items"),
    ("migrate", .notInArchive, "without a snapshot", "--no-snapshot"),
    ("migrate", .outOfOrder, "", "--allow-out-of-order"),
    ("rollback", .conflict, "", "--discard-newer discards what the app has written since"),
    ("restore", .mismatch, "would be mixed into", "--migrate"),
    ("restore", .mismatch, "must be asked for", "--from-other"),
    ("restore", .mismatch, "version marker", "`drydock baseline CONTAINER --to N`"),
    ("restore", .conflict, "overwrite excluded paths", "--overwrite-excluded"),
    ("restore", .conflict, "do not keep extra paths", "leave --keep-extra out"),
    ("rekey", .overlap, "give the identity", "--identity FILE"),
    ("", .locked, "", "--lock-timeout SECONDS waits longer"),
    ("", .notVisible, "", "leave --require-visible out"),
    ("", .limit, "raise it if you trust", "--max-size SIZE"),
    ("", .vaultLocked, "device key", "--device-key FILE, or DRYDOCK_DEVICE_KEY"),
    ("", .noIdentity, "passphrase", "--identity-passphrase-file FILE"),
    ("", .noIdentity, "", "--identity FILE, or DRYDOCK_IDENTITY"),
    ("", .unknownVersion, "", "`drydock baseline CONTAINER --to N`"),
  ]

  /// The message with the advice, unless it already names an option or a command.
  static func message(of error: DrydockError) -> String {
    let command = ProcessArguments.all.dropFirst().joined(separator: " ")
    let message = error.message
    guard !message.contains(" --"), !message.contains("(--"), !message.contains("`drydock "),
      !message.contains("did you mean"),
      let found = table.first(where: {
        error.code == $0.code && command.hasPrefix($0.command)
          && ($0.part.isEmpty || message.contains($0.part))
      })
    else { return message }
    return "\(message) (\(found.text))"
  }
}

/// A command line that the argument parser took and is invalid all the same.
struct UsageError: Error {
  var message: String
}

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
  /// Invalid command line.
  case usage = 64

  /// Thrown at the end of a command.
  var code: ExitCode { ExitCode(rawValue) }
}

extension TransactionOutcome {
  /// The exit code of an outcome that needs attention; nil for a clean one.
  var exit: ExitStatus? {
    if !conflicts.isEmpty { return .conflict }
    return isFinished ? nil : .incomplete
  }

  /// Ends the program with that code.
  func throwUnlessClean() throws {
    if let exit { throw exit.code }
  }

  /// The lines for standard error, without the unseen processes, which are the same for a whole batch.
  var reportLines: [String] {
    notes.map { "drydock: note: \($0)" }
      + conflicts.map { "drydock: the app changed it at the same moment; conflict copy kept: \($0)" }
  }
}
