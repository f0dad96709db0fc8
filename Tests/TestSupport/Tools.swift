import Foundation

/// Where the programs under test lie: beside the test bundle, as the package manager built them.
public enum Tools {
  /// The `drydock` command.
  public static func drydock() throws -> String { try built("drydock") }

  /// The sample app, for tests that need a second process.
  public static func notesApp() throws -> String { try built("NotesApp") }

  /// A built product by name.
  ///
  /// - Throws: when it is not there: a test must not pass because its tool is missing.
  public static func built(_ name: String) throws -> String {
    for directory in candidates() where access("\(directory)/\(name)", X_OK) == 0 {
      return "\(directory)/\(name)"
    }
    throw SystemFailure(
      "\(name) is not built beside the tests; looked in \(candidates().joined(separator: ", "))")
  }

  /// A system program found through `PATH`, such as `bsdtar`.
  ///
  /// - Throws: when it is not installed: `Scripts/test` installs what the tests need.
  public static func system(_ name: String) throws -> String {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    for directory in path.split(separator: ":") where access("\(directory)/\(name)", X_OK) == 0 {
      return "\(directory)/\(name)"
    }
    throw SystemFailure("\(name) is not installed; run Scripts/test, which installs what the tests need")
  }

  /// Arguments of `strace`, before a program and its arguments. Unless it sends signals, it sees these calls alone: to stop at all
  /// others takes far longer.
  ///
  /// - Parameters:
  ///   - calls: names, separated by commas.
  ///   - change: what becomes of them, such as `signal=SIGKILL:when=3`.
  ///   - log: is given a line for each.
  public static func tracing(_ calls: String, _ change: String? = nil, log: String = "/dev/null") -> [String]
  {
    (change?.hasPrefix("signal") == true ? [] : ["--seccomp-bpf"]) + [
      "-f", "-qq", "-o", log, "-e", "trace=\(calls)",
    ]
      + (change.map { ["-e", "inject=\(calls):\($0)"] } ?? [])
  }

  private static func candidates() -> [String] {
    // On macOS the test code is a loaded bundle; elsewhere it is the running program itself.
    let bundles = Bundle.allBundles.map(\.bundlePath).filter { $0.hasSuffix(".xctest") }
    let programs = [Bundle.main.executablePath, CommandLine.arguments.first].compactMap { $0 }
    return (bundles + programs).map { ($0 as NSString).deletingLastPathComponent }
  }
}
