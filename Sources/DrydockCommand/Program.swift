import ArgumentParser
import Drydock
import Foundation

/// The program that runs: arguments in, words or JSON out, exit codes; nothing else.
struct Program: Sendable {
  /// What it is called.
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

  /// Runs the command line of this process.
  static func run() {
    raiseFileLimit()
    // What a killed command left there may be plain data of an encrypted archive.
    try? ScratchDirectory.removeStaleTemporary()
    do {
      try RootCommand.refuseUnknownCommand()
      var command = try RootCommand.parseAsRoot()
      try command.run()
    } catch let code as ExitCode {
      RootCommand.exit(withError: code)
    } catch {
      end(error)
    }
  }

  private static func end(_ error: any Error) -> Never {
    let asJSON = CommandLine.arguments.contains("--json")
    let status = RootCommand.exitCode(for: error)
    // The argument parser's own: help and version, which succeed, and command lines that make no sense.
    guard let failure = Failure(error) ?? (status == .failure ? Failure(unforeseen: error) : nil) else {
      if status == .success {
        print(current.named(RootCommand.fullMessage(for: error)))
        Foundation.exit(status.rawValue)
      }
      let arguments = Array(CommandLine.arguments.dropFirst())
      if asJSON {
        Failure.document(
          code: "usage", message: Failure.usage(RootCommand.message(for: error), arguments: arguments),
          path: nil, status: status.rawValue)
      }
      Output.note(Failure.usage(RootCommand.fullMessage(for: error), arguments: arguments))
      Foundation.exit(status.rawValue)
    }
    failure.report(asJSON: asJSON)
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
