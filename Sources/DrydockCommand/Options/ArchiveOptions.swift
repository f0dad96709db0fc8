import ArgumentParser
import Drydock
import Foundation

/// How far an archive may expand.
struct ExpansionOptions: ParsableArguments {
  @Option(
    """
    Allow an archive to expand to this size, such as 20GB (default: 1 GiB, or 250 times the archive's size if that is \
    more).
    """, value: "size")
  var maxSize: String?

  func limit() throws -> ExpansionLimit {
    guard let text = maxSize ?? Environment["MAX_SIZE"] else { return .standard }
    return ExpansionLimit(bytes: try Self.bytes(text))
  }

  /// A size: bytes, or a number with a unit.
  static func bytes(_ text: String) throws -> UInt64 {
    let units: [String: UInt64] = [
      "": 1, "B": 1, "KB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000,
    ]
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let unit = text.dropFirst(digits.count).trimmingCharacters(in: .whitespaces).uppercased()
    guard let number = UInt64(digits), let factor = units[unit],
      case let (bytes, overflow) = number.multipliedReportingOverflow(by: factor), !overflow
    else { throw UsageError("\(text) is not a size; give bytes, or a number with kB, MB, GB or TB") }
    return bytes
  }
}

struct RateOptions: ParsableArguments {
  @Option(
    """
    Limit transfers to and from a remote repository to this many bytes per second, such as 2MB (default: no limit).
    """, value: "size")
  var limitRate: String?

  /// Once the options are read, before any remote place is open.
  func validate() throws {
    let rate: UInt64?
    do { rate = try (limitRate ?? Environment["LIMIT_RATE"]).map(ExpansionOptions.bytes) } catch let error
      as UsageError
    { throw ValidationError("--limit-rate: \(error.message)") }
    if rate == 0 { throw ValidationError("--limit-rate 0 would transfer nothing; give 1 or more") }
    Repository.configureRemotePlaces(rateLimit: rate, cache: Environment.cache)
  }
}

struct RepositoryOptions: ParsableArguments {
  @Option(
    name: [.short, .long],
    "A directory, s3://BUCKET/PREFIX or sftp://HOST/PATH (default: `repository:` of drydock.yaml).",
    value: "repository", completion: .directory)
  var repository: String?

  @OptionGroup(title: OptionTitle.limits) var rate: RateOptions

  func path(_ configuration: ContainerConfiguration) -> String? {
    repository ?? Environment["REPOSITORY"] ?? configuration.repository
  }

  /// The repository's path, for a command that needs one.
  func required(
    _ configuration: ContainerConfiguration,
    or problem: String = "no repository is named; give -r DIRECTORY, or `repository:` in drydock.yaml"
  ) throws -> String {
    if let path = path(configuration) { return path }
    throw UsageError(problem)
  }

  /// Whether a text may be an archive's name in a repository: `APP/INSTANCE@latest` has a slash, as paths do.
  static func isName(_ text: String) -> Bool { !text.contains("/") || text.contains("@") }

  /// An archive by its file's path, or else by its name in the repository.
  ///
  /// - Parameter keys: what opens encrypted archives; without keys they are found by their files' names.
  /// - Parameter container: whose archives `latest` means.
  /// - Parameter warnsOfClocks: whether to warn when times of archives of the same app and instance cannot be right.
  func archive(
    _ name: String, _ configuration: ContainerConfiguration, _ keys: ArchiveKeys,
    for container: @autoclosure () -> Container? = nil, warnsOfClocks: Bool = false
  ) throws -> String {
    try find(name, configuration, keys, for: container(), warnsOfClocks: warnsOfClocks).path
  }

  /// The path as ``archive(_:_:_:for:warnsOfClocks:)``, and the listing of the repository that it was found in.
  private func find(
    _ name: String, _ configuration: ContainerConfiguration, _ keys: ArchiveKeys,
    for container: @autoclosure () -> Container?, warnsOfClocks: Bool
  ) throws -> (path: String, listing: Repository.Listing?) {
    if Repository.isRemote(name) || FileManager.default.fileExists(atPath: name) { return (name, nil) }
    guard let path = path(configuration), Self.isName(name) else {
      throw DrydockError(
        .notFound, "no such archive; give a file, or -r REPOSITORY with an id or INSTANCE@latest", path: name)
    }
    let listing = try Repository(path).list(keys: keys.quick)
    let found = try listing.find(name, for: container())
    // Of an encrypted one that was named by hand nothing is known without a key.
    let unknown = listing.unreadable.map(\.path) + listing.locked.filter { $0.label == nil }.map(\.path)
    if let first = unknown.first, !unknown.contains(found) {
      let number = NumberText.count(unknown.count, "archive")
      Output.note(
        "\(number) of \(path) cannot be read and could not be chosen, such as \(first)"
          .printable)
    }
    if warnsOfClocks { Output.warn(listing.clockWarnings(of: found)) }
    return (found, listing)
  }
}

extension RepositoryOptions {
  /// Opens an archive by its file's path, or by its name in the repository.
  func open(
    _ name: String, _ configuration: ContainerConfiguration, _ keys: inout ArchiveKeys,
    _ expansion: ExpansionOptions, for container: @autoclosure () -> Container? = nil,
    trusted: TrustedKeys? = nil, warnsOfClocks: Bool = false, acceptsGap: Bool = false
  ) throws -> Archive {
    let (path, listing) = try find(
      name, configuration, keys, for: container(), warnsOfClocks: warnsOfClocks)
    return try Archive(
      path: path, among: listing, keys: keys.opening(path), limit: expansion.limit(), trusted: trusted,
      acceptsGap: acceptsGap)
  }

  /// A path as it was given, or an archive's that the repository knows by this name.
  func archive(
    orContainer name: String, _ configuration: ContainerConfiguration, _ keys: ArchiveKeys
  ) throws -> String {
    guard !Repository.isRemote(name), !FileManager.default.fileExists(atPath: name),
      path(configuration) != nil, Self.isName(name)
    else { return name }
    return try archive(name, configuration, keys)
  }
}

/// Archives, or all of a repository.
struct ArchivesOptions: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      """
      Archives: files, or with -r their IDs, INSTANCE@latest, INSTANCE@2026-11-14 or latest (default: all of the \
      repository).
      """, valueName: "archives"), completion: .file())
  var names: [String] = []
  @OptionGroup var repository: RepositoryOptions

  /// What the repository has; nil for a command that was given archives.
  ///
  /// - Parameter verb: what the command does with archives.
  func listing(
    _ configuration: ContainerConfiguration, _ keys: ArchiveKeys, _ verb: String
  ) throws -> Repository.Listing? {
    guard names.isEmpty else { return nil }
    let path = try repository.required(
      configuration, or: "nothing to \(verb); give archives, or -r REPOSITORY")
    return try Repository(path).list(keys: keys.quick)
  }
}

/// An archive, and how it is read.
struct ArchiveOptions: ParsableArguments {
  @Argument(
    help: "An archive: its file, or with -r its ID, INSTANCE@latest, INSTANCE@2026-11-14 or latest.",
    completion: .file())
  var archive: String
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
}
