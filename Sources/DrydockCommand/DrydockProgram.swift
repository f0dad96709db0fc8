import ArgumentParser
import Drydock
import Foundation

/// The program: arguments in, words or JSON out, exit codes; nothing else.
public enum DrydockProgram {
  /// Runs the command line of this process, and ends the process with its exit code where it is not 0.
  public static func main() {
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
      let asJSON = CommandLine.arguments.contains("--json")
      let status = RootCommand.exitCode(for: error)
      // The argument parser's own: help and version, which succeed, and command lines that make no sense.
      guard let failure = Failure(error) ?? (status == .failure ? Failure(unforeseen: error) : nil) else {
        if status == .success { RootCommand.exit(withError: error) }
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
