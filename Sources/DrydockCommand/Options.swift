import ArgumentParser
import Drydock
import Foundation

/// What every command takes.
struct CommonOptions: ParsableArguments {
  @Flag(help: "Print one JSON document instead of text.")
  var json = false

  @Option(
    help: ArgumentHelp(
      "Use this drydock.yaml instead of the one in the working directory or above.", valueName: "file"))
  var config: String?

  /// Flags win over `DRYDOCK_*` variables, those over `drydock.yaml`.
  func configuration() throws -> ContainerConfiguration {
    do {
      if let file = config ?? Environment["CONFIG"] { return try ContainerConfiguration(file: file) }
      return try ContainerConfiguration.find(from: FileManager.default.currentDirectoryPath)
    } catch var error as DrydockError where error.code == .malformed {
      // A file that the user wrote, not one of the container's: validation, as with migrations.
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
}

/// What every command on a container takes.
struct ContainerOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      """
      The container: the directory with one app's data, or an .xcappdata bundle; to read it, also a .zip, .tar, .tar.gz \
      or .tar.zst of one.
      """, valueName: "container"))
  var path: String

  @Option(
    name: .customLong("container"),
    help: ArgumentHelp(
      "Name of this instance; by default Apple's UUID of it, or the directory's name.", valueName: "name"))
  var instance: String?

  @OptionGroup var wait: WaitOptions

  /// The container; what an interrupted command left is ended first, and told.
  func open(_ configuration: ContainerConfiguration) throws -> Container {
    try refusePacked()
    if let encryption = try? ArchiveEncryption.of(path: path) {
      throw DrydockError(
        .notAContainer,
        "this file is \(encryption); `drydock restore` makes a container of an archive of drydock's, and of anything "
          + "else `age -d`", path: path)
    }
    let container = try Container(at: path, configuration: configuration, instance: instance)
    try Self.recover(container)
    return container
  }

  /// Ends what an interrupted command left, and tells it.
  static func recover(_ container: Container) throws {
    for line in try recovering(container) { Output.note(line) }
  }

  /// Ends what an interrupted command left; gives what is to be told.
  static func recovering(_ container: Container) throws -> [String] {
    let found = try container.recoverForReading()
    return lines(found.reports, container) + found.notes.map { "drydock: note: \($0)" }
  }

  /// Whether it is a file that has to be unpacked to be read.
  var isPacked: Bool { ForeignContainer.isOne(path) }

  /// Runs a body with the container for reading only: packed into one file, it is unpacked for as long.
  func reading<T>(
    _ configuration: ContainerConfiguration, _ expansion: ExpansionOptions, _ body: (Container) throws -> T
  ) throws -> T {
    guard isPacked else { return try body(open(configuration)) }
    return try Container.reading(
      at: path, configuration: configuration, instance: instance, limit: expansion.limit(), body)
  }

  /// Throws for a file: what is packed has no state beside it, and no step that replaces it as a whole.
  func refusePacked() throws {
    guard isPacked else { return }
    throw UsageError(
      message:
        "\(path) is a foreign archive, which is only read; unpack it (bsdtar -xpf FILE -C DIRECTORY) and give the "
        + "directory")
  }

  static func tell(_ reports: [RecoveryReport], _ container: Container) {
    for line in lines(reports, container) { Output.note(line) }
  }

  /// What was found of interrupted transactions, for standard error.
  static func lines(_ reports: [RecoveryReport], _ container: Container) -> [String] {
    reports.flatMap { report in
      if report.outcome == .writtenLater { return [writtenLater(report, container)] }
      let state =
        report.outcome == .old
        ? "the container is as before it, and what it left is removed"
        : "its change is complete now"
      return [
        "drydock: recovered \(container.root): transaction \(report.transaction) was interrupted; \(state)"
      ] + report.conflicts.map { "drydock: kept aside, for both changed it: \($0)" }
    }
  }

  /// What was written into files that had been replaced.
  static func writtenLater(_ report: RecoveryReport, _ container: Container) -> String {
    let paths = report.conflicts.map(\.description).joined(separator: ", ")
    return
      "drydock: \(container.root): a program that still had them open wrote into files after transaction "
      + "\(report.transaction) had replaced them; copies are kept in conflict/\(report.transaction): \(paths)"
  }

  /// How its transactions are run.
  func transaction() throws -> TransactionOptions { try wait.transaction() }
}

/// How long a command waits for others.
struct WaitOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Wait so long for another drydock command on the same container; 0 by default.", valueName: "seconds"))
  var lockTimeout: Double?

  @Option(
    help: ArgumentHelp("Wait so long for a database that is locked; 5 by default.", valueName: "seconds"))
  var busyTimeout: Double?

  /// How its transactions are run.
  func transaction() throws -> TransactionOptions {
    var options = TransactionOptions()
    options.lockTimeout = try lockTimeout ?? Self.seconds("LOCK_TIMEOUT") ?? 0
    options.busyTimeout = try busyTimeout ?? Self.seconds("BUSY_TIMEOUT") ?? 5
    options.hooks.faults = try Self.faults()
    options.commit = try Self.preference()
    return options
  }

  private static func seconds(_ name: String) throws -> Double? {
    guard let text = Environment[name] else { return nil }
    guard let value = Double(text), value >= 0 else {
      throw UsageError(message: "DRYDOCK_\(name) is \(text): give a number of seconds")
    }
    return value
  }

  /// `DRYDOCK_COMMIT`: `exchange` refuses where only a commit in place works, `in-place` takes that way everywhere.
  private static func preference() throws -> CommitPreference {
    guard let name = Environment["COMMIT"] else { return .automatic }
    guard let preference = CommitPreference(rawValue: name) else {
      let known = CommitPreference.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError(message: "DRYDOCK_COMMIT is \(name): one of \(known)")
    }
    return preference
  }

  /// For tests: `DRYDOCK_KILL_AT=exchanged` makes the process die at that step of a commit, `moved:3` when it comes
  /// there for the third time.
  private static func faults() throws -> FaultInjection {
    guard let name = Environment["KILL_AT"] else { return .none }
    let parts = name.split(separator: ":", maxSplits: 1).map(String.init)
    guard let point = parts.first.flatMap(FaultPoint.init), let count = Int(parts.count > 1 ? parts[1] : "1")
    else {
      throw UsageError(
        message:
          "DRYDOCK_KILL_AT is \(name): one of \(FaultPoint.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return .kill(at: point, count: count)
  }
}

/// What every command takes that changes a container which an app may have open.
struct UseOptions: ParsableArguments {
  @Flag(
    help: """
      Refuse, with exit code 5, where a process may have the container open without being seen: of another user \
      without root, or outside a PID namespace.
      """)
  var requireVisible = false
}

extension TransactionOptions {
  /// With what a command demands of the look at who uses the container.
  func with(_ use: UseOptions) -> TransactionOptions {
    var options = self
    options.requiresVisible = use.requireVisible
    return options
  }
}

/// Where migrations are.
struct CatalogOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The directory of migrations; by default `migrations:` of drydock.yaml.", valueName: "directory",
      visibility: Program.current.plan == nil ? .default : .hidden))
  var migrations: String?

  @Option(
    help: ArgumentHelp(
      "Whose files they are, if another tool's.", valueName: "tool",
      visibility: Program.current.plan == nil ? .default : .hidden))
  var format: MigrationTool.Format?

  @Option(
    help: ArgumentHelp(
      "The database of drydock.yaml that they are for.", valueName: "name",
      visibility: Program.current.plan == nil ? .default : .hidden))
  var database: String?

  /// The other tool whose files the migrations are; nil for Drydock's own.
  func tool(_ configuration: ContainerConfiguration) throws -> MigrationTool? {
    guard let format = format ?? configuration.migrationTool?.format else { return nil }
    let known = configuration.databases.keys.sorted()
    guard let name = database ?? configuration.migrationTool?.database ?? (known.count == 1 ? known[0] : nil)
    else {
      throw UsageError(
        message: "files of \(format.rawValue) are for one database: say with --database which one"
          + (known.isEmpty ? "; drydock.yaml names none" : ": " + known.joined(separator: ", ")))
    }
    guard known.contains(name) else {
      throw UsageError(
        message: "drydock.yaml has no database \(name); \(NearestWord.hint(for: name, among: known))")
    }
    return MigrationTool(format, database: name)
  }

  /// Whether there are any: in a directory, or in a plan.
  func areNamed(_ configuration: ContainerConfiguration) -> Bool {
    Program.current.plan != nil || directory(configuration) != nil
  }

  /// Whether there are any yet: `drydock init` names a directory that somebody has to make.
  func areThere(_ configuration: ContainerConfiguration) -> Bool {
    guard let directory = directory(configuration), directory == configuration.migrations else {
      return areNamed(configuration)
    }
    return FollowedStatus.identity(directory) != nil
  }

  /// Where migrations in files are; a program with a plan has none of these.
  func directory(_ configuration: ContainerConfiguration) -> String? {
    if Program.current.plan != nil { return nil }
    return migrations ?? Environment["MIGRATIONS"] ?? configuration.migrations
  }

  /// For what reads or writes files of migrations, which a program with a plan has none of.
  func requiredDirectory(_ configuration: ContainerConfiguration) throws -> String {
    if let plan = Program.current.plan {
      throw UsageError(
        message: "the migrations of \(Program.current.name) are in Swift, in \(plan), and in no file")
    }
    guard let directory = directory(configuration) else {
      throw UsageError(
        message: "no migrations are named; give -m DIRECTORY, or `migrations: DIRECTORY` in drydock.yaml")
    }
    return directory
  }

  /// The plan that the program brings with it, if it does.
  func plan() throws -> (any MigrationPlan.Type)? {
    guard let plan = Program.current.plan else { return nil }
    guard migrations == nil else {
      throw UsageError(message: "\(Program.current.name) brings its migrations with it: leave -m out")
    }
    return plan
  }

  func catalog(_ configuration: ContainerConfiguration) throws -> MigrationCatalog {
    if let plan = try plan() { return try MigrationCatalog(plan) }
    let catalog = try MigrationCatalog.load(requiredDirectory(configuration), tool: tool(configuration))
    for warning in catalog.warnings { Output.note("drydock: warning: \(warning)") }
    for note in catalog.notes { Output.note("drydock: note: \(note)") }
    return catalog
  }
}

/// How far an archive may expand.
struct ExpansionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      Trust an archive that expands to so much, such as 20GB; by default no more than 1 GiB, or 250 times its own size \
      where that is more.
      """, valueName: "size"))
  var maxSize: String?

  func limit() throws -> ExpansionLimit {
    guard let text = maxSize ?? Environment["MAX_SIZE"] else { return .standard }
    let units: [String: UInt64] = [
      "": 1, "B": 1, "KB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000,
    ]
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let unit = text.dropFirst(digits.count).trimmingCharacters(in: .whitespaces).uppercased()
    guard let number = UInt64(digits), let factor = units[unit],
      case let (bytes, overflow) = number.multipliedReportingOverflow(by: factor), !overflow
    else { throw UsageError(message: "\(text) is no size; give bytes, or a number with kB, MB, GB or TB") }
    return ExpansionLimit(bytes: bytes)
  }
}

/// Where archives are.
struct RepositoryOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The directory of archives; by default `repository:` of drydock.yaml.", valueName: "directory"))
  var repository: String?

  func path(_ configuration: ContainerConfiguration) -> String? {
    repository ?? Environment["REPOSITORY"] ?? configuration.repository
  }

  /// An archive by its file's path, or else by its name in the repository.
  ///
  /// - Parameter keys: what opens encrypted ones: without, they are found by what their files' names tell.
  /// - Parameter warnsOfClocks: whether to warn when times of archives of the same app and instance cannot be right.
  func archive(
    _ name: String, _ configuration: ContainerConfiguration, _ keys: ArchiveKeys, warnsOfClocks: Bool = false
  ) throws -> String {
    if FileManager.default.fileExists(atPath: name) { return name }
    // `APP/INSTANCE@latest` has a slash, too.
    guard let path = path(configuration), !name.contains("/") || name.contains("@") else {
      throw DrydockError(
        .notFound, "no such archive; give a file, or -r REPOSITORY with an id or INSTANCE@latest", path: name)
    }
    let listing = try Repository(path).list(keys: keys.quick)
    let found = try listing.find(name)
    if let first = listing.unreadable.first, !listing.unreadable.contains(where: { $0.path == found }) {
      let number = Output.count(listing.unreadable.count, "archive")
      Output.note(
        "drydock: note: \(number) of \(path) cannot be read and could not be chosen, such as \(first.path)"
          .printable)
    }
    if warnsOfClocks { Output.warn(listing.clockWarnings(of: found)) }
    return found
  }
}

extension RepositoryOptions {
  /// A path as it was given, or an archive's that the repository knows by this name.
  func archive(
    orContainer name: String, _ configuration: ContainerConfiguration, _ keys: ArchiveKeys
  ) throws -> String {
    guard !FileManager.default.fileExists(atPath: name), path(configuration) != nil,
      !name.contains("/") || name.contains("@")
    else { return name }
    return try archive(name, configuration, keys)
  }
}

extension MigrationTool.Format: ExpressibleByArgument {}

/// A name that becomes a file's, or a line of one, must not be a secret that was pasted by mistake.
func refuseSecret(as name: String) throws {
  guard SecretPattern.isSecret(text: name) else { return }
  throw UsageError(message: "the name looks like a secret, and would be written to a file: give another one")
}
