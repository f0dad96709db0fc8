import ArgumentParser
import Drydock
import Foundation

/// What a command takes that works on one container, or on all of a directory.
struct ContainersOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      """
      The container: the directory with one app's data, or an .xcappdata bundle; to read it, also a .zip, .tar, .tar.gz \
      or .tar.zst of one.
      """, valueName: "container"))
  var path: String?

  @Option(
    help: ArgumentHelp(
      "Instead of one container: all in this directory, each by itself.", valueName: "directory"))
  var all: String?

  @Option(
    help: ArgumentHelp(
      "With --all: work on so many at the same time; by default as many as there are processors, with `groups:` one.",
      valueName: "number"))
  var jobs: Int?

  @Option(
    name: .customLong("container"),
    help: ArgumentHelp(
      "Name of this instance; by default Apple's UUID of it, or the directory's name.", valueName: "name"))
  var instance: String?

  @OptionGroup var wait: WaitOptions

  func validate() throws {
    switch (path, all) {
    case (nil, nil): throw ValidationError("give a container, or --all with a directory of containers")
    case (_?, _?): throw ValidationError("give one container, or --all with a directory of containers")
    case (nil, _?):
      if instance != nil { throw ValidationError("--container names one instance, and --all takes many") }
    case (_?, nil): if jobs != nil { throw ValidationError("--jobs goes with --all") }
    }
    if let jobs, jobs < 1 { throw ValidationError("--jobs \(jobs) would do nothing; give 1 or more") }
  }

  /// The one container that was given.
  var one: ContainerOptions {
    var options = ContainerOptions()
    (options.path, options.instance, options.wait) = (path ?? "", instance, wait)
    return options
  }

  /// The many containers that were asked for instead.
  func many(_ configuration: ContainerConfiguration, asJSON: Bool) throws -> ManyContainers? {
    guard let all else { return nil }
    // Containers beside each other share their groups, and who changes one locks them.
    let most = configuration.groups.isEmpty ? ProcessInfo.processInfo.activeProcessorCount : 1
    return ManyContainers(
      directory: try ContainerDirectory(all, configuration: configuration), configuration: configuration,
      jobs: jobs ?? most, asJSON: asJSON)
  }

  /// As for one container.
  func open(_ configuration: ContainerConfiguration) throws -> Container { try one.open(configuration) }

  /// As for one container.
  func reading<T>(
    _ configuration: ContainerConfiguration, _ expansion: ExpansionOptions, _ body: (Container) throws -> T
  ) throws -> T { try one.reading(configuration, expansion, body) }

  /// How transactions are run.
  func transaction() throws -> TransactionOptions { try wait.transaction() }
}
