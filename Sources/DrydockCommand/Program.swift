import ArgumentParser
@_exported import Drydock
import Foundation

/// A program with Drydock's command line over the migrations of a plan.
///
/// ```swift
/// import DrydockCommand
///
/// @main
/// struct NotesTool: DrydockTool {
///   static let plan = NotesPlan.self
/// }
/// ```
public protocol DrydockTool {
  /// The plan's type, inferred from ``plan``.
  associatedtype Plan: MigrationPlan
  /// The migrations that the commands use, in place of a directory.
  static var plan: Plan.Type { get }
  /// The program's name in its help and messages; the name of its file unless declared otherwise.
  static var name: String { get }
}

extension DrydockTool {
  /// The name of the program's file.
  public static var name: String {
    processArguments.first.map { ($0 as NSString).lastPathComponent } ?? "drydock"
  }

  /// Runs the command line of this process, and ends the process with its exit code where it is not 0.
  public static func main() {
    Program.$current.withValue(Program(name: name, plan: plan)) { Program.run() }
  }
}

/// The program that runs: arguments in, words or JSON out, exit codes; nothing else. By itself it is `drydock`, whose
/// migrations are in a directory.
package struct Program: Sendable {
  var name = "drydock"
  /// Migrations that it brings with it; nil when they are in a directory.
  var plan: (any MigrationPlan.Type)?

  /// Commands are made by the argument parser, which can hand them nothing: they find the program here.
  @TaskLocal static var current = Program()

  /// Help and messages with the program's own name, and without the directory that one with a plan has no use for.
  func named(_ text: String) -> String {
    guard plan != nil else { return text }
    return text.replacing(" -m Migrations", with: "")
      .replacing(#/(?m)(^ *|`|Example: )drydock(?=[ :])/#) { "\($0.output.1)\(name)" }
  }

  /// Runs the command line of this process, and ends the process with its exit code where it is not 0.
  package static func run() {
    StandardStreams.prepare()
    raiseFileLimit()
    returnLargeBlocks()
    // What a killed command left there may be plain data of an encrypted archive.
    try? ScratchDirectory.removeStaleTemporary()
    do {
      try RootCommand.refuseUnknownCommand()
      var command = try RootCommand.parseAsRoot(Array(processArguments.dropFirst()))
      if let options = (command as? any Subcommand)?.common {
        StandardStreams.configure(options)
        try Container.requireProcessFiles()
      }
      try command.run()
      finish(0)
    } catch let code as ExitCode {
      finish(code.rawValue)
    } catch {
      end(error)
    }
  }

  /// Ends a command that did its work; with 0 it returns.
  private static func finish(_ status: Int32) {
    switch StandardStreams.finish() {
    case nil: if status != 0 { Foundation.exit(status) }
    case .closedPipe:
      // As other tools end then, once everything is in order.
      signal(SIGPIPE, SIG_DFL)
      raise(SIGPIPE)
      Foundation.exit(128 + SIGPIPE)
    case .failed(let reason):
      Output.error(
        "cannot write standard output: \(reason); the output is incomplete, the rest of the work is done"
      )
      Foundation.exit(ExitStatus.failed.rawValue)
    }
  }

  private static func end(_ error: any Error) {
    // The argument parser cannot lay out its texts for fewer columns.
    if StandardStreams.width < 40 { setenv("COLUMNS", "40", 1) }
    let asJSON = processArguments.contains("--json")
    let status = RootCommand.exitCode(for: error)
    // The argument parser's own: help and version, which succeed, and command lines that make no sense.
    guard let failure = Failure(known: error) ?? (status == .failure ? Failure(error) : nil) else {
      if status == .success {
        Output.line(current.named(UsageText.help(RootCommand.fullMessage(for: error))))
        return finish(status.rawValue)
      }
      let arguments = Array(processArguments.dropFirst())
      if asJSON {
        let message = UsageText.sentence(RootCommand.message(for: error))
        let usage: ResultObject = [
          "code": "usage", "message": Failure.usage(message, arguments: arguments),
          "exit_code": status.rawValue,
        ]
        Output.json(["error": usage])
      }
      Output.error(Failure.usage(UsageText(RootCommand.fullMessage(for: error)).text, arguments: arguments))
      Foundation.exit(status.rawValue)
    }
    failure.report(asJSON: asJSON)
    // The exit code stays the failure's, which is on standard error in any case.
    if case .failed(let reason) = StandardStreams.finish() {
      Output.note("cannot write standard output: \(reason); the output is incomplete")
    }
    Foundation.exit(failure.status.rawValue)
  }

  /// A container with many databases needs a descriptor for the lock on each.
  private static func raiseFileLimit() {
    var limit = rlimit()
    #if os(Linux)
      let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
      let resource = RLIMIT_NOFILE
    #endif
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }
}
