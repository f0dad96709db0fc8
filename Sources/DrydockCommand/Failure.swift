import ArgumentParser
import Drydock
import DrydockTesting
import Foundation

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

/// Options and commands that help with an error or a note of the library, which knows nothing of them.
enum Advice {
  /// By the beginning of the command, the code of the error (nil for notes and any error), and a part of the text; the
  /// first match counts. `{again} OPTION` is the command line of this run with another option.
  private static let table: [(command: String, code: DrydockError.Code?, part: String, text: String)] = [
    ("", nil, "recover the container", "`drydock recover CONTAINER`"),
    ("vault set", .exists, "", "--if-exists replace gives it the new value"),
    (
      "vault set", .vaultLocked, "a vault needs",
      "--device-key FILE, or DRYDOCK_DEVICE_KEY; `drydock keygen` makes one"
    ),
    ("vault", .notFound, "no vault", "`drydock vault set` creates one"),
    ("vault", .ambiguous, "", "--account, --access-group ('' for none) or --class"),
    ("vault", .missing, "no item", "`drydock vault list` shows all items"),
    ("defaults", .notFound, "no settings file", "`drydock defaults write` creates one"),
    ("defaults", .missing, "is unknown", "--file PATH"),
    ("defaults", .unsupported, "convert the file", "`drydock defaults convert FILE --as xml`"),
    ("migrate", .notInArchive, "without a snapshot", "--no-snapshot"),
    (
      "rollback", .conflict, "Down migrations",
      "{again} --down` keeps what the app has written since\n  {again} --discard-newer` discards it"
    ),
    ("rollback", .conflict, "undo that one first", "`drydock rollback CONTAINER`"),
    ("rollback", .conflict, "", "{again} --discard-newer` discards what the app has written since"),
    ("rollback", .vaultLocked, "discard what", "--device-key FILE, also of earlier keys, or --discard-newer"),
    ("rollback", .usage, "name the version", "--to VERSION"),
    ("rollback", .nothingToUndo, "name the migrations", "-m DIRECTORY"),
    ("rollback", .nothingToUndo, "is left to undo", "`drydock log` lists them"),
    ("rollback", .nothingToUndo, "the undo log does not contain", "`drydock log` lists what can be undone"),
    ("migrate", .usage, "cannot go back", "`drydock rollback` undoes the last transaction"),
    ("restore", .notInArchive, "does not have this path", "`drydock show` lists its paths"),
    (
      "restore", nil, "is sealed to other keys than the one that opens it",
      "`drydock vault rekey` seals it to yours"
    ),
    (
      "rollback", .irreversible, "",
      "without --down, `drydock rollback` undoes whole transactions by the undo log"
    ),
    ("restore", .mismatch, "would be mixed into", "--migrate"),
    ("restore", .mismatch, "must be asked for", "--from-other"),
    ("restore", .mismatch, "version marker", "`drydock baseline CONTAINER --to N`"),
    ("restore", .conflict, "overwrite excluded paths", "--overwrite-excluded"),
    ("restore", .conflict, "do not keep extra paths", "leave --keep-extra out"),
    ("restore", nil, ", which affects ", "--partial restores everything else"),
    ("restore", nil, "overwrite other devices' items", "--include-synchronizable restores it"),
    ("restore", nil, "no device key was given", "--device-key FILE, or DRYDOCK_DEVICE_KEY"),
    ("restore", nil, "that its vault was sealed to then", "--device-key FILE"),
    ("forget", .usage, "no rule", "--keep-last, --keep-daily and others, or `retention:` in drydock.yaml"),
    ("forget", .usage, "whose archives", "--instance NAME or --app APP"),
    ("forget", .checkFailed, "the rules keep no archive", "--instance NAME --everything erases one"),
    ("rekey", .overlap, "give the identity", "--identity FILE"),
    ("fixture capture", .notCaptured, "the container has version", "leave --at out"),
    ("fixture capture", .notCaptured, "or give the version", "--at VERSION"),
    ("fixture capture", .notCaptured, "keep more rows", "--rows NUMBER"),
    ("fixture capture", .notCaptured, "the device key", "--device-key FILE, or --drop PATTERN"),
    (
      "fixture capture", .notCaptured, "would still contain",
      "--replace TABLE.COLUMN, --replace-key KEY, --replace-file PATTERN, --drop PATTERN, --keep NAME"
    ),
    ("fixture capture", .notCaptured, "leave", "--drop PATTERN"),
    ("test", .notFound, "no fixtures yet", "`drydock fixture capture CONTAINER NAME` makes the first one"),
    ("test", nil, "or record goldens", "`drydock test --record`"),
    ("", nil, "capture a fixture of it", "`drydock fixture capture CONTAINER NAME`"),
    ("test", nil, ": record ", "`drydock test --record`"),
    ("", .catalog, "no migrations yet", "`drydock new NAME` creates the first one"),
    ("", nil, "there is no audit rule", "`drydock audit --rules` lists them"),
    ("release", nil, ": record ", "`drydock test --record`"),
    ("", .missingMigration, "from the history", "`drydock repair CONTAINER --remove NUMBER`"),
    ("", .edited, "accept number", "`drydock repair CONTAINER --accept NUMBER`"),
    ("", .edited, "renumber it", "`drydock repair CONTAINER --renumber`"),
    ("", .outOfOrder, "", "`drydock migrate CONTAINER --allow-out-of-order`"),
    (
      "", .unknownVersion, "no drydock.yaml",
      "`drydock init CONTAINER` writes one with the marker that it finds; `drydock baseline CONTAINER --to N`"
    ),
    ("", nil, "set the version", "`drydock baseline CONTAINER --to N`"),
    ("", .unknownVersion, "", "`drydock baseline CONTAINER --to N`"),
    ("", .notFound, "the configuration file does not exist", "`drydock init` writes one"),
    ("", .notFound, "no archive matches", "`drydock list` lists the archives"),
    ("", .ambiguousArchive, "differ in size", "`drydock verify` finds the good one"),
    ("", .io, "then verify it", "`drydock verify ARCHIVE`"),
    (
      "", .notAnArchive, "a directory, not an archive",
      "`drydock verify ARCHIVE --container` compares a container with an archive"
    ),
    (
      "", .notAContainer, "not a foreign archive",
      "`drydock show` lists it, `drydock restore` makes a container of it"
    ),
    ("", .badFixture, "must not be encrypted", "`drydock fixture capture` makes a fixture of one"),
    ("", .vaultLocked, "the vault names other keys", "`drydock vault rekey` seals it to yours"),
    ("", .vaultLocked, "no identity", "`drydock keygen -o FILE` makes one"),
    ("", .locked, "", "--lock-timeout SECONDS waits longer"),
    ("", .notVisible, "", "leave --require-visible out"),
    ("", .limit, "raise it if you trust", "--max-size SIZE"),
    ("import", .missing, "list its apps", "--list"),
    ("", .notAContainer, "a directory of device backups (", "`drydock import DIRECTORY/NAME --list`"),
    ("", .notAContainer, "import the data of an app", "`drydock import BACKUP --list`"),
    (
      "", .vaultLocked, "needs the device key, and none",
      "--device-key FILE, or DRYDOCK_DEVICE_KEY; `drydock keygen` makes one"
    ),
    ("", .vaultLocked, "device key", "--device-key FILE, or DRYDOCK_DEVICE_KEY"),
    ("", .noIdentity, "passphrase", "--identity-passphrase-file FILE"),
    ("", .noIdentity, "", "--identity FILE, or DRYDOCK_IDENTITY"),
    ("", .badKey, "the signing key is encrypted", "--sign-passphrase-file FILE"),
    ("", .unsupported, "give the signing key", "--sign FILE"),
    ("rekey", nil, "write a full copy", "`drydock export ARCHIVE`"),
    ("rekey", .untrusted, "give the signing key", "--sign FILE"),
    ("rekey", .untrusted, "not signed", "`drydock sign ARCHIVE --sign FILE` signs it"),
    ("export", .untrusted, "not signed", "`drydock sign ARCHIVE --sign FILE` signs it"),
    ("", .untrusted, "not a trusted key", "--trusted FILE, if you know the key"),
    ("", .badKey, "a secret key, not a recipient", "`drydock keygen -y FILE` prints it"),
    ("", .badKey, "no identity", "`drydock keygen -o FILE` makes one"),
  ]

  /// The text with the advice, unless it already names a command.
  static func added(to text: String, code: DrydockError.Code? = nil) -> String {
    let arguments = processArguments.dropFirst()
    let command = arguments.joined(separator: " ")
    guard !text.contains("`drydock "), !text.contains("did you mean"),
      let found = table.first(where: {
        ($0.code == nil || $0.code == code) && command.hasPrefix($0.command)
          && ($0.part.isEmpty || text.contains($0.part))
      })
    else { return text }
    if found.text.contains("{again}") {
      let again = (["`drydock"] + arguments.map(Output.word)).joined(separator: " ")
      return "\(text)\n  \(found.text.replacing("{again}", with: again))"
    }
    return "\(text)\(text.contains("\n") ? "\n  " : " ")(\(found.text))"
  }
}

extension DrydockError {
  /// The error with the advice for the command line.
  var advised: DrydockError {
    var error = self
    error.message = Advice.added(to: message, code: code)
    return error
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

extension DryRunOutcome {
  /// The JSON result, with what all dry runs have.
  func document(_ members: ResultObject) -> ResultObject {
    var document = members
    document["difference"] = difference
    document["conflicts"] = [ContainerPath]()
    return document
  }
}

extension TransactionOutcome {
  /// The exit code of an outcome that needs attention; nil for a clean one.
  var exit: ExitStatus? {
    if !conflicts.isEmpty { return .conflict }
    return isFinished ? nil : .incomplete
  }

  /// The JSON result, with what all transactions have.
  func document(_ members: ResultObject) -> ResultObject {
    var document = members
    document["transaction"] = transaction?.description
    document["conflicts"] = conflicts
    document["unseen_processes"] = unseen
    return document
  }

  /// Prints the notes, and without `--json` also the value as text, the transaction and the conflict copies.
  ///
  /// - Parameters:
  ///   - undo: the command that undoes the transaction, before the container.
  ///   - options: what that command needs besides, after the container.
  func report(
    on container: Container, asJSON: Bool, undo: String? = "drydock rollback", options: String = "",
    text: (Value) -> Void
  ) {
    for line in ContainerOptions.lines(recovered, container) { Output.note(line) }
    for note in allNotes { Output.note(Advice.added(to: note)) }
    if asJSON { return }
    if Output.isQuiet { return conflictNotices.forEach(Output.write) }
    text(value)
    if let transaction {
      let place = FindingText.path(container.root, from: FileManager.default.currentDirectoryPath)
      Output.advice(
        "transaction \(transaction)\(undo.map { "; `\($0) \(Output.word(place))\(options)` undoes it" } ?? "")"
      )
    }
    conflictNotices.forEach(Output.write)
  }

  /// Ends the program with the exit code, unless the outcome is clean.
  func throwUnlessClean() throws {
    if let exit { throw exit.code }
  }

  private var conflictNotices: [Notice] {
    conflicts.map { Notice(.warning, "the app changed it at the same moment; conflict copy kept: \($0)") }
  }

  /// What standard error gets, without the unseen processes, which are the same for a whole batch.
  var notices: [Notice] { notes.map { Notice(.note, Advice.added(to: $0)) } + conflictNotices }
}
