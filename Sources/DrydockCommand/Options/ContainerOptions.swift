import ArgumentParser
import Drydock
import Foundation

/// A command with the options that all have.
protocol Subcommand: ParsableCommand {
  var common: CommonOptions { get }
}

/// The sections of a help text below the options of the command itself.
enum OptionTitle {
  static let extent = "What is restored"
  static let imported = "iPhone backups"
  static let attributes = "Attributes of the item"
  static let tool = "Migrations of another tool"
  static let keys = "Keys"
  static let batch = "Batches and jobs"
  static let reports = "Reports"
  static let limits = "Waiting and limits"
  static let output = "Output and configuration"

  /// In the order of a help text.
  static let all = [extent, imported, attributes, keys, tool, reports, batch, limits, output]
}

struct CommonOptions: ParsableArguments {
  @Flag(help: "Print JSON instead of text.")
  var json = false

  @Flag(
    name: .shortAndLong,
    help:
      "Print only results, warnings and errors; a command that changes something prints only what is incomplete."
  )
  var quiet = false

  @Option("Colours: auto (on a terminal, unless NO_COLOR is set), always, never.", value: "when")
  var color: ColorChoice = .auto

  @Option("Use this drydock.yaml instead of the one in the working directory or above.", value: "file")
  var config: String?

  /// Flags win over `DRYDOCK_*` variables, those over `drydock.yaml`.
  func configuration() throws -> ContainerConfiguration {
    try Self.readingUserFile {
      if let file = config ?? Environment["CONFIG"] { return try ContainerConfiguration(file: file) }
      return try ContainerConfiguration.find(from: FileManager.default.currentDirectoryPath)
    }
  }

  /// Reads a file that the user wrote, not one of a container's: a malformed one is validation, as with migrations.
  static func readingUserFile<Value>(_ body: () throws -> Value) throws -> Value {
    do { return try body() } catch var error as DrydockError where error.code == .malformed {
      error.code = .badConfiguration
      throw error
    }
  }
}

/// `DRYDOCK_…` variables; an empty one counts as absent.
enum Environment {
  static subscript(_ name: String) -> String? {
    ProcessInfo.processInfo.environment["DRYDOCK_" + name].flatMap { $0.isEmpty ? nil : $0 }
  }

  /// The files that an option names, or without any those of a variable, separated by colons.
  static func files(_ given: [String], or name: String) -> [String] {
    given.isEmpty ? Environment[name]?.split(separator: ":").map(String.init) ?? [] : given
  }

  /// The directory for caches: `DRYDOCK_CACHE`, or the user's; nil for `none`, and for a user without a home directory.
  static var cache: String? {
    if let path = Environment["CACHE"] { return path == "none" ? nil : path }
    let variables = ProcessInfo.processInfo.environment
    let places = [variables["XDG_CACHE_HOME"], variables["HOME"].map { $0 + "/.cache" }]
    return places.compactMap { $0 }.first { $0.hasPrefix("/") }.map { $0 + "/drydock" }
  }
}

/// The options of every command on a container.
struct ContainerOptions: ParsableArguments {
  static let help = ArgumentHelp(
    "The app's data: a directory or .xcappdata bundle, or, for commands that only read, a .zip or .tar.",
    valueName: "container")

  @Argument(help: Self.help, completion: .file()) var path: String
  @OptionGroup var name: InstanceOption
  @OptionGroup(title: OptionTitle.limits) var wait: WaitOptions

  var instance: String? { name.instance }

  /// Opens the container, first ending what an interrupted command left.
  func open(_ configuration: ContainerConfiguration) throws -> Container {
    try refuseForeign()
    return try openDirectory(configuration)
  }

  private func openDirectory(_ configuration: ContainerConfiguration) throws -> Container {
    if let encryption = try? Archive.encryption(path: path) {
      throw DrydockError(
        .notAContainer,
        "this file is \(encryption); `drydock restore` creates a container from a Drydock archive; anything else "
          + "opens with `age -d`", path: path)
    }
    let container = try Container(at: path, configuration: configuration, instance: instance)
    let recovered = try Self.recovering(container)
    for notice in recovered { Output.write(notice) }
    // A recovery may have replaced the container.
    return recovered.isEmpty ? container : try container.reopened()
  }

  /// Ends what an interrupted command left, and reports it.
  static func recover(_ container: Container) throws {
    for notice in try recovering(container) { Output.write(notice) }
  }

  /// Ends what an interrupted command left; returns what to report.
  static func recovering(_ container: Container) throws -> [Notice] {
    let found = try Transaction.recoverForReading(container)
    return (lines(found.reports, container) + found.notes).map { Notice(.note, Advice.added(to: $0)) }
  }

  /// Whether it is a foreign archive, which is unpacked to be read.
  var isForeign: Bool { ForeignContainer.isForeignArchive(path) }

  /// The root as reports name it: the private directory that a foreign archive was unpacked to means nothing to the user.
  func shownRoot(of opened: Container) -> String { isForeign ? realPath(path) ?? path : opened.root }

  /// Opens the container for reading; a foreign archive is unpacked while the body runs.
  func reading<T>(
    _ configuration: ContainerConfiguration, _ expansion: ExpansionOptions, _ body: (Container) throws -> T
  ) throws -> T {
    guard isForeign else { return try body(openDirectory(configuration)) }
    return try Container.reading(
      at: path, configuration: configuration, instance: instance, limit: expansion.limit(), body)
  }

  /// Throws for a foreign archive, which can only be read.
  func refuseForeign() throws {
    guard isForeign else { return }
    throw UsageError(
      "\(path) is a foreign archive of a container, which is only read; unpack it (bsdtar -xpf FILE -C DIRECTORY) and "
        + "give the directory")
  }

  /// The lines that report what was found of interrupted transactions.
  static func lines(_ reports: [RecoveryReport], _ container: Container) -> [String] {
    reports.flatMap { report in
      let copies = report.conflicts.map(\.description)
      switch report.outcome {
      case .writtenLater:
        return [
          "\(container.root): a program that still had them open wrote into files after transaction \(report.transaction) "
            + "had replaced them; copies are kept in conflict/\(report.transaction): \(copies.joined(separator: ", "))"
        ]
      case .old, .new:
        let state = report.outcome == .old ? "the container is unchanged" : "its change is now complete"
        return ["recovered \(container.root): transaction \(report.transaction) was interrupted; \(state)"]
          + copies.map { "both sides changed it; conflict copy kept: \($0)" }
      }
    }
  }
}

/// The name of a container among others.
struct InstanceOption: ParsableArguments {
  @Option(
    "The instance, its name in archives (default: the container ID, or else the directory's name).",
    value: "name")
  var instance: String?
}

/// How long a command waits for others.
struct WaitOptions: ParsableArguments {
  @Option("Seconds to wait for another drydock command on the same container (default: 0).", value: "seconds")
  var lockTimeout: Double?

  @Option("Seconds to wait for a locked database (default: 5).", value: "seconds") var busyTimeout: Double?

  /// How transactions are run, with the keys that open the vault.
  func transaction(
    _ deviceKeys: DeviceKeyOptions? = nil, _ use: UseOptions? = nil
  ) throws -> TransactionOptions {
    var options = TransactionOptions()
    options.lockTimeout = try Self.lockTimeout(lockTimeout)
    options.busyTimeout = try busyTimeout ?? Self.seconds("BUSY_TIMEOUT") ?? 5
    options.seams = try Self.faults()
    options.commit = try Self.strategy()
    options.deviceKeys = try deviceKeys?.deviceKeys()
    options.requiresVisible = use?.requireVisible ?? false
    return options
  }

  /// The seconds that the option gives, or else the variable.
  static func lockTimeout(_ option: Double?) throws -> Double { try option ?? seconds("LOCK_TIMEOUT") ?? 0 }

  private static func seconds(_ name: String) throws -> Double? {
    guard let text = Environment[name] else { return nil }
    guard let value = Double(text), value >= 0 else {
      throw UsageError("DRYDOCK_\(name) is \(text): give a number of seconds")
    }
    return value
  }

  /// `DRYDOCK_COMMIT`, the commit strategy: `exchange` fails where only journaled replacement works, `in-place` always
  /// uses journaled replacement.
  private static func strategy() throws -> StateDirectory.Place? {
    guard let name = Environment["COMMIT"], name != "automatic" else { return nil }
    if let place = StateDirectory.Place(rawValue: name) { return place }
    let strategies = ["automatic"] + StateDirectory.Place.allCases.map(\.rawValue)
    throw UsageError("DRYDOCK_COMMIT is \(name): one of \(strategies.joined(separator: ", "))")
  }

  /// For tests: `DRYDOCK_KILL_AT=exchanged` makes the process die at that step of a commit, `moved:3` when it comes
  /// there for the third time.
  private static func faults() throws -> Seams {
    guard let name = Environment["KILL_AT"] else { return .none }
    let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
    guard let point = parts.first.flatMap(FaultPoint.init), let count = Int(parts.count > 1 ? parts[1] : "1")
    else {
      throw UsageError(
        "DRYDOCK_KILL_AT is \(name): one of \(FaultPoint.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return .kill(at: point, count: count)
  }
}

/// How long a command waits for others that write to the repository.
struct RepositoryWaitOptions: ParsableArguments {
  @Option("Seconds to wait for commands that write to the repository (default: 0).", value: "seconds")
  var lockTimeout: Double?

  func timeout() throws -> Double { try WaitOptions.lockTimeout(lockTimeout) }
}

/// The options of commands that change a container that an app may have open.
struct UseOptions: ParsableArguments {
  @Flag(
    help: """
      Fail with exit code 5 if a process that may have the container open cannot be inspected, such as another user's \
      (unless run as root) or one outside the PID namespace (default: a note).
      """)
  var requireVisible = false
}

/// A name that becomes a file's, or a line of one, must not be a secret that was pasted by mistake.
func refuseSecret(as name: String) throws {
  guard SecretPattern.isSecret(text: name) else { return }
  throw UsageError("the name looks like a secret, and would be written to a file: give another one")
}
