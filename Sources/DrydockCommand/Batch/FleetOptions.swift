import ArgumentParser
import Drydock
import Foundation

/// The options of a job that does a part of the work, and records what became of it.
struct JobOptions: ParsableArguments {
  @Option(
    """
    Only this part of the work: I/N, such as 3/8 (needs --run); or slurm, kubernetes or kubernetes/N, which read the \
    part from the job's environment variables.
    """, value: "shard")
  var shard: String?

  @Option(
    "The name of the run, which all its jobs share (default: that of the scheduler's job, or a random one).",
    value: "id")
  var run: String?

  @Option(
    "Also append each result to this file, as a line of JSON; `drydock summary` reads it.", value: "file")
  var result: String?

  /// An option that was given.
  var given: String? {
    [("--shard", shard), ("--run", run), ("--result", result)].first { $0.1 != nil }?.0
  }

  /// - Parameter command: its name, for the result.
  func job(_ command: String) throws -> Job {
    let part = try shard.map { try JobShard($0, variables: ProcessInfo.processInfo.environment) }
    for name in [run, result].compactMap({ $0 }) { try refuseSecret(as: name) }
    if let part, let shard, run == nil, part.run == nil {
      let reason = part.missing.map { ", because the variable \($0) is not set" } ?? ""
      throw UsageError(
        "--shard \(shard) needs --run ID\(reason): all jobs of a run have the same name, by which `drydock summary` and "
          + "`drydock rollback` find what they did")
    }
    do {
      return Job(
        command: command, shard: part?.shard, run: try run.map { try RunID($0) } ?? part?.run ?? RunID.new(),
        isNamed: run != nil || part?.run != nil)
    } catch let error as DrydockError where error.code == .usage {
      throw UsageError("--run: \(error.message)")
    }
  }
}

/// One of the processes that share the work of a run.
struct Job: Sendable {
  var command: String
  var shard: Shard?
  var run: RunID
  /// Whether the run's name was given: others may work on it, or it may be done again.
  var isNamed: Bool
}

/// The options of commands that work on many containers.
struct FleetOptions: ParsableArguments {
  @Option(
    """
    Work on all containers in this directory, or on those listed in this file, one path per line; - reads the list \
    from standard input. With --json the output is JSON Lines: one object per container, then a summary.
    """, value: "directory|file", completion: .file())
  var all: String?

  @Option(
    """
    With --all: how many containers to process in parallel (default: the number of processors; 1 if drydock.yaml has \
    `groups:`).
    """, value: "number")
  var jobs: Int?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "With --all: only this many containers, or this share of them, such as 1%; the same ones each time.",
      valueName: "number"),
    transform: { try Portion(reading: $0) })
  var first: Portion?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      """
      With --all: begin no more containers once more than this many, or than this share, such as 5%, have failed \
      (default: no limit).
      """, valueName: "number"),
    transform: { try Portion(reading: $0) })
  var maxFailures: Portion?

  func validate() throws {
    if let jobs, jobs < 1 { throw ValidationError("--jobs \(jobs) would do nothing; give 1 or more") }
    if let first, first.isNone { throw ValidationError("--first \(first) would do nothing; give 1 or more") }
    let options = [
      ("--jobs", jobs != nil), ("--first", first != nil), ("--max-failures", maxFailures != nil),
    ]
    if all == nil, let (option, _) = options.first(where: { $0.1 }) {
      throw ValidationError("\(option) goes with --all")
    }
  }

  /// The batch of containers that was asked for; nil for a single one.
  ///
  /// - Parameters:
  ///   - options: the part of the work, and where its results go.
  ///   - command: its name, for the result.
  func batch(
    _ configuration: ContainerConfiguration, _ options: JobOptions, _ command: String, asJSON: Bool
  ) throws -> Batch? {
    guard let all else { return nil }
    let job = try options.job(command)
    let found = try containers(all, configuration, job.shard)
    let wave = first.map { $0.wave(of: found.containers) } ?? found.containers
    // Containers beside each other share their groups, and who changes one locks them.
    let most = configuration.groups.isEmpty ? ProcessInfo.processInfo.activeProcessorCount : 1
    return Batch(
      path: all, containers: wave, skipped: found.skipped, leftOut: found.containers.count - wave.count,
      configuration: configuration, jobs: jobs ?? most, log: try JobLog(options, job),
      mostFailures: maxFailures.map { $0.most(of: wave.count) }, asJSON: asJSON)
  }

  private func containers(
    _ path: String, _ configuration: ContainerConfiguration, _ shard: Shard?
  ) throws -> ContainerDirectory {
    if path == "-" {
      let list = try FileHandle.standardInput.readToEnd() ?? Data()
      return try ContainerDirectory(list: Array(list), at: "standard input", relativeTo: "", shard: shard)
    }
    guard FollowedStatus.identity(path) != nil, !FollowedStatus.isDirectory(path) else {
      return try ContainerDirectory(path, configuration: configuration, shard: shard)
    }
    guard let file = FileHandle(forReadingAtPath: path) else {
      throw DrydockError(
        .permission, "cannot read the list of containers; check its permissions", path: path)
    }
    defer { try? file.close() }
    let list = try file.readToEnd() ?? Data()
    let above = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    return try ContainerDirectory(list: Array(list), at: path, relativeTo: above, shard: shard)
  }
}

/// A number of containers, or a percentage of them.
enum Portion: Equatable, Sendable, CustomStringConvertible {
  case count(Int)
  case percent(Double)

  /// - Throws: `ValidationError` with the reason.
  init(reading text: String) throws {
    if text.hasSuffix("%") {
      let number = text.dropLast()
      guard number.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
        let percent = Double(number), percent <= 100
      else { throw ValidationError("give a percentage of at most 100%") }
      self = .percent(percent)
    } else if let count = Shard.number(text) {
      self = .count(count)
    } else {
      throw ValidationError("give a number such as 20, or a percentage such as 1%")
    }
  }

  var isNone: Bool { self == .count(0) || self == .percent(0) }

  var description: String {
    switch self {
    case .count(let count): "\(count)"
    case .percent(let percent): percent == percent.rounded() ? "\(Int(percent))%" : "\(percent)%"
    }
  }

  /// The containers whose hashes are the smallest, by name: a percentage is rounded up.
  func wave(of containers: [ContainerDirectory.Child]) -> [ContainerDirectory.Child] {
    let count =
      switch self {
      case .count(let count): min(count, containers.count)
      case .percent(let percent): Int((Double(containers.count) * percent / 100).rounded(.up))
      }
    let hashes = containers.map { (hash: Shard.hash($0.name), child: $0) }
    let first = hashes.sorted { ($0.hash, $0.child.name) < ($1.hash, $1.child.name) }.prefix(count)
    return first.map(\.child).sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
  }

  /// How many may fail: a percentage is rounded down.
  func most(of total: Int) -> Int {
    switch self {
    case .count(let count): count
    case .percent(let percent): Int((Double(total) * percent / 100).rounded(.down))
    }
  }
}

/// The options of commands that work on one container, or on many.
///
/// The argument parser's debug builds check each group five times for every group around it: what the tests run would take
/// seconds to start if these were nested deeper.
struct ContainersOptions: ParsableArguments {
  @Argument(help: ContainerOptions.help, completion: .file()) var path: String?
  @OptionGroup(title: OptionTitle.batch) var fleet: FleetOptions
  @OptionGroup(title: OptionTitle.batch) var job: JobOptions
  @OptionGroup var name: InstanceOption
  @OptionGroup(title: OptionTitle.limits) var wait: WaitOptions

  var all: String? { fleet.all }

  func validate() throws {
    if all == nil, let option = job.given { throw ValidationError("\(option) goes with --all") }
    if path != nil, all != nil {
      throw ValidationError("give one container, or --all with a directory of containers")
    }
    if all != nil, name.instance != nil {
      throw ValidationError("--instance names one instance, and --all takes many")
    }
  }

  /// The one container that was given.
  var one: ContainerOptions {
    var options = ContainerOptions()
    (options.path, options.name, options.wait) = (path ?? "", name, wait)
    return options
  }

  /// Throws for a command that needs a container, or several.
  func requireAny() throws {
    if path == nil, all == nil {
      throw ValidationError("give a container, or --all with a directory of containers")
    }
  }

  /// The batch of containers that was asked for instead.
  func batch(_ configuration: ContainerConfiguration, _ command: String, asJSON: Bool) throws -> Batch? {
    try fleet.batch(configuration, job, command, asJSON: asJSON)
  }
}
