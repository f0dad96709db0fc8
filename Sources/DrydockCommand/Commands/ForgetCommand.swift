import ArgumentParser
import Drydock
import Foundation

/// The rules of `forget`; each option has restic's name and meaning.
struct RetentionOptions: ParsableArguments {
  @Option("Keep the last <number> archives.", value: "number") var keepLast: Int?
  @Option("Keep the last <number> hourly archives.", value: "number") var keepHourly: Int?
  @Option("Keep the last <number> daily archives.", value: "number") var keepDaily: Int?
  @Option("Keep the last <number> weekly archives.", value: "number") var keepWeekly: Int?
  @Option("Keep the last <number> monthly archives.", value: "number") var keepMonthly: Int?
  @Option("Keep the last <number> yearly archives.", value: "number") var keepYearly: Int?
  @Option("Keep all archives of this period before the newest one, such as 90d or 1y6m.", value: "period")
  var keepWithin: String?
  @Option(
    name: .customLong("keep-tag"), "Keep archives with this tag, or with all of TAG,TAG; repeatable.",
    value: "tag")
  var keepTags: [String] = []

  /// The rules of the options; those of drydock.yaml if there is no option.
  func policy(_ configuration: ContainerConfiguration) throws -> RetentionPolicy {
    let counts: [(String, Int?, WritableKeyPath<RetentionPolicy, Int>)] = [
      ("last", keepLast, \.last), ("hourly", keepHourly, \.hourly), ("daily", keepDaily, \.daily),
      ("weekly", keepWeekly, \.weekly), ("monthly", keepMonthly, \.monthly), ("yearly", keepYearly, \.yearly),
    ]
    guard areGiven else { return configuration.retention }
    var policy = RetentionPolicy()
    for (name, number, path) in counts {
      guard let number else { continue }
      guard number >= 0 else { throw UsageError("--keep-\(name) is \(number); give the number of archives") }
      policy[keyPath: path] = number
    }
    policy.within = try UsageError.reading("--keep-within") {
      try keepWithin.map { try RetentionPolicy.Period($0) }
    }
    policy.tags = keepTags.map(RetentionPolicy.tagList)
    return policy
  }

  var areGiven: Bool {
    [keepLast, keepHourly, keepDaily, keepWeekly, keepMonthly, keepYearly].contains { $0 != nil }
      || keepWithin != nil || !keepTags.isEmpty
  }
}

struct ForgetCommand: ProgressSubcommand {
  static let configuration = CommandConfiguration(
    commandName: "forget", abstract: "Remove old archives by rules, or all archives of one instance.",
    discussion: """
      An archive stays if one rule keeps it, or if a kept archive needs it. The rules \
      apply to each instance of each app by itself. A daily archive is the newest one of \
      a day, in UTC, a weekly one of a week, from Monday; days and weeks without archives \
      do not count. Without rules on the command line those of `retention:` in \
      drydock.yaml apply.

      Examples:
        drydock forget -r Backups --keep-daily 14 --keep-monthly 12 --dry-run
        drydock forget -r Backups --keep-within 90d --keep-tag release
        drydock forget -r Backups --instance ada --everything
      """)

  @OptionGroup var repository: RepositoryOptions
  @OptionGroup var rules: RetentionOptions
  @Option("Only archives of this app.", value: "app") var app: String?
  @Option("Only archives of this instance.", value: "name") var instance: String?
  @Flag(help: "Remove all archives of --instance or --app.") var everything = false
  @Option(
    defaultAsFlag: "25%",
    help: ArgumentHelp(
      """
      Also rewrite chains of archives without what no kept archive needs, if that frees more than this share of their \
      size; --sign signs them.
      """, valueName: "share"))
  var compact: String?
  @OptionGroup(title: OptionTitle.keys) var signing: SigningOptions
  @OptionGroup(title: OptionTitle.limits) var expansion: ExpansionOptions
  @Flag(help: "Show what would be removed, and remove nothing.") var dryRun = false
  @Flag(help: "Do not ask before --everything removes archives.") var yes = false
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.limits) var wait: RepositoryWaitOptions
  @OptionGroup(title: OptionTitle.output) var showing: ProgressOptions

  func run() throws {
    let configuration = try common.configuration()
    let path = try repository.required(configuration)
    guard !everything || !rules.areGiven else {
      throw UsageError("--everything goes with no --keep rule; leave one out")
    }
    guard !everything || compact == nil else {
      throw UsageError("--everything leaves nothing to compact; leave one out")
    }
    let (place, keys) = (Repository(path), try key.keys().all)
    let timeout = try wait.timeout()
    let compaction = try compaction(configuration)
    if everything {
      guard try dryRun || isConfirmed(place, keys) else { throw ExitStatus.failed.code }
    }
    let report = try showing.during { progress in
      everything
        ? try place.forgetEverything(
          app: app, instance: instance, keys: keys, cache: Environment.cache, dryRun: dryRun,
          lockTimeout: timeout, progress: progress)
        : try place.forget(
          keeping: rules.policy(configuration), app: app, instance: instance, keys: keys,
          compacting: compaction, dryRun: dryRun, lockTimeout: timeout, progress: progress)
    }
    if common.json { Output.json(document(report)) } else { write(report) }
    if !report.unreadable.isEmpty || !report.unattributed.isEmpty || !report.notCompacted.isEmpty {
      throw ExitStatus.incomplete.code
    }
  }

  private func compaction(_ configuration: ContainerConfiguration) throws -> CompactionOptions? {
    guard let compact else { return nil }
    guard compact.hasSuffix("%"), let percent = Int(compact.dropLast()), (0...100).contains(percent) else {
      throw UsageError("--compact is \(compact); give a percentage, such as 25%")
    }
    var options = CompactionOptions()
    options.share = Double(percent) / 100
    options.signing = try signing.copies(configuration)
    (options.recipients, options.limit) = (
      try RecipientOptions.standing(configuration), try expansion.limit()
    )
    return options
  }

  /// Nothing undoes it, so that a script must say that it is meant.
  private func isConfirmed(_ place: Repository, _ keys: AgeKeys) throws -> Bool {
    if yes { return true }
    guard !common.json, isatty(STDIN_FILENO) == 1 else {
      throw UsageError("--everything asks for confirmation, which needs a terminal; give --yes")
    }
    let report = try place.forgetEverything(app: app, instance: instance, keys: keys, dryRun: true)
    let isConfirmed = Output.isConfirmed(
      Set(report.removed.map(\.owner)).sorted().map { "- \($0)".printable },
      "\(NumberText.count(report.removed.count, "archive")), \(NumberText.size(report.bytesFreed)), will be removed for good."
    )
    if !isConfirmed { Output.message("nothing was removed") }
    return isConfirmed
  }

  private func document(_ report: Repository.ForgetReport) -> ResultObject {
    let owners = Set((report.kept + report.removed).map { [$0.app, $0.instance] }).sorted {
      $0.lexicographicallyPrecedes($1)
    }
    return [
      "dry_run": dryRun,
      "instances": owners.map { owner -> ResultObject in
        let own = { (archives: [StoredArchive]) in
          archives.filter { [$0.app, $0.instance] == owner }.map(\.document)
        }
        return [
          "app": owner[0], "instance": owner[1], "kept": own(report.kept), "removed": own(report.removed),
        ]
      },
      "bytes_freed": report.bytesFreed,
      "unreadable": report.unreadable.map { ["path": $0.path, "reason": $0.reason] },
      "unattributed": report.unattributed,
      "compacted": report.compacted.map { chain -> ResultObject in
        [
          "app": chain.kept[0].app, "instance": chain.kept[0].instance, "kept": chain.kept.count,
          "removed": chain.needed.count,
          "bytes_before": chain.bytesBefore, "bytes_after": chain.bytesAfter,
        ]
      },
      "not_compacted": report.notCompacted.map { ["path": $0.path, "reason": $0.reason] },
    ]
  }

  private func write(_ report: Repository.ForgetReport) {
    for file in report.unreadable {
      Output.warning("cannot be read, and is kept: \(file.path): \(file.reason)".printable)
    }
    for path in report.unattributed {
      Output.warning(
        "kept, because neither a key nor its name says whose it is: \(path); give its identity"
          .printable)
    }
    for chain in report.notCompacted {
      Output.warning("not compacted: \(chain.path): \(Advice.added(to: chain.reason))".printable)
    }
    if common.quiet { return }
    for owner in Set((report.kept + report.removed).map(\.owner)).sorted() {
      Output.line(owner.printable)
      var rows: [[String]] = []
      for (word, entries) in [("keep", report.kept), (dryRun ? "would remove" : "removed", report.removed)] {
        for entry in entries where entry.owner == owner {
          let reasons = entry.reasons.joined(separator: ", ")
          let tags: [String] = entry.tags.map { "#\($0)" }
          let why = ((reasons.isEmpty ? [] : [reasons]) + tags).joined(separator: " ").printable
          rows.append([word, String(entry.id.prefix(8)), entry.time, NumberText.size(entry.size), why])
        }
      }
      Output.table(rows)
    }
    for chain in report.compacted {
      Output.line(
        "\(dryRun ? "would compact" : "compacted") \(chain.kept[0].owner): "
          + "\(NumberText.count(chain.kept.count, "archive")) without \(chain.needed.count) that they needed, from "
          + "\(NumberText.size(chain.bytesBefore)) to \(dryRun ? "about " : "")\(NumberText.size(chain.bytesAfter))"
          .printable)
    }
    let count = report.removed.count + report.compacted.map(\.needed.count).reduce(0, +)
    let removed = NumberText.count(count, "archive")
    Output.line(
      count == 0
        ? "nothing to remove"
        : dryRun
          ? "dry run: nothing was removed; \(removed), \(NumberText.size(report.bytesFreed)), would be"
          : "removed: \(removed), \(NumberText.size(report.bytesFreed)) freed")
  }
}

extension StoredArchive {
  fileprivate var document: ResultObject {
    ["archive": id, "time": time, "paths": paths, "bytes": size, "tags": tags, "reasons": reasons]
  }
}

struct TagCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "tag", abstract: "Add or remove tags of archives.",
    discussion: """
      Tags are in a small file beside the archive, which itself never changes. They \
      can be read without a key. `drydock forget --keep-tag TAG` keeps the archives \
      with a tag. Prints each archive's tags.

      Examples:
        drydock tag fd243e4d -r Backups --add release
        drydock tag latest -r Backups --add keep --remove release
      """)

  @Argument(
    help: "Archives: files, or with -r their IDs, INSTANCE@latest, INSTANCE@2026-11-14 or latest.",
    completion: .file())
  var archives: [String]
  @Option(name: .customLong("add"), "Add this tag; repeatable.", value: "tag") var added: [String] = []
  @Option(name: .customLong("remove"), "Remove this tag; repeatable.", value: "tag")
  var removed: [String] = []
  @OptionGroup var repository: RepositoryOptions
  @OptionGroup(title: OptionTitle.keys) var key: KeyOptions
  @OptionGroup(title: OptionTitle.limits) var wait: RepositoryWaitOptions
  @OptionGroup(title: OptionTitle.output) var common: CommonOptions

  func run() throws {
    let configuration = try common.configuration()
    guard !added.isEmpty || !removed.isEmpty else {
      throw UsageError("nothing to change; give --add TAG or --remove TAG")
    }
    for tag in added { try refuseSecret(as: tag) }
    let (keys, timeout) = (try key.keys(), try wait.timeout())
    // All are found before the first is changed.
    let paths = try archives.map { try repository.archive($0, configuration, keys) }
    var tagged: [ResultObject] = []
    for path in paths {
      let tags = try Repository.ofArchive(path).tag(
        path.lastName, adding: added, removing: removed, keys: keys.all, lockTimeout: timeout)
      tagged.append(["path": path, "tags": tags])
      if !common.json { Output.line("\(path)  \(tags.isEmpty ? "no tags" : tags.joined(separator: ", "))") }
    }
    if common.json { Output.json(["archives": tagged]) }
  }
}
