import AppContainer
import DrydockErrors
import FileSystem
import Formats

extension AuditRule {
  static let files = [
    AuditRule(
      .protectionBelowPolicy, .warning, "a weaker protection class than the app's policy",
      why:
        "the file is readable at times when the policy says that it is not, such as while the device is locked",
      fix: "`files.set-protection`",
      source: apple("uikit/encrypting-your-app-s-files")),
    AuditRule(
      .protectionBelowRule, .error, "a weaker protection class than drydock.yaml requires",
      why:
        "a rule under `protection:` names the class of this path; the file is readable at other times, too",
      fix: "`files.set-protection`",
      source: apple("uikit/encrypting-your-app-s-files")),
    AuditRule(
      .worldReadable, .warning, "a file that every user can read",
      why: "other apps or users of the machine can read it",
      fix: "create it with mode 0600; a step `script` changes the mode of existing files",
      source: "https://developer.android.com/privacy-and-security/security-tips#InternalStorage"),
    AuditRule(
      .worldWritable, .warning, "a file that every user can change",
      why: "other apps or users of the machine can change the app's data",
      fix: "create it with mode 0600; a step `script` changes the mode of existing files",
      source: "https://developer.android.com/privacy-and-security/security-tips#InternalStorage"),
    AuditRule(
      .cacheInBackup, .warning, "a cache in the backup set",
      why: "it makes each backup larger and slower, and the app can create or download it again",
      fix: "move it to a directory for caches (`files.move`), or exclude it: `files.set-backup-exclusion`",
      source: apple("foundation/optimizing-your-app-s-data-for-icloud-backup")),
    AuditRule(
      .userDataNotInBackup, .warning, "data of the user outside of the backup set",
      why: "it is lost with the device, and the system may delete it at any time",
      fix: "move it to a directory that is backed up: `files.move`",
      source: apple("foundation/optimizing-your-app-s-data-for-icloud-backup")),
    AuditRule(
      .largeIncluded, .note, "a large directory in the backup set",
      why: "backups of it take time and the user's storage",
      fix:
        "if it can be downloaded again, exclude it: `files.set-backup-exclusion`; if not, switch the rule off with the reason"
    ),
    AuditRule(
      .largeExcluded, .note, "a large directory outside of the backup set",
      why: "after a restore the app has to download or create all of it again",
      fix:
        "check that no data of the user are in it; `files.set-backup-exclusion` with `excluded: false` includes it"
    ),
    AuditRule(
      .backupTooLarge, .warning, "more data than Android's backup stores",
      why:
        "Auto Backup stores up to 25 MB of an app; above that it stops, and keeps the last backup that fitted",
      fix:
        "exclude what can be downloaded again in the app's `<data-extraction-rules>`, or move it to `no_backup`: `files.move`",
      source: "https://developer.android.com/identity/data/autobackup"),
  ]
}

/// Examines modes, protection classes, names and sizes of files.
struct FileRules {
  static let largeSize: UInt64 = 500_000_000
  static let cacheSize: UInt64 = 1_000_000
  static let downloadSize: UInt64 = 10_000_000
  static let androidLimit: UInt64 = 25_000_000

  /// A directory that the walk is in, with the sums of what was found in it so far.
  private struct OpenDirectory {
    var path: ContainerPath
    var isExcluded: Bool
    var included: UInt64 = 0, excluded: UInt64 = 0
    /// Whether a directory in it was reported as large.
    var hasLarge = false
    var cache: CacheKind?
  }

  private enum CacheKind: String {
    case cache = "a directory with the name of a cache"
    case download = "a directory of downloads"

    var leastSize: UInt64 { self == .cache ? cacheSize : downloadSize }
  }

  /// Files with a property, counted by their topmost directories.
  private struct Counts {
    var total = 0
    var byDirectory: [ContainerPath: (count: Int, examples: [String])] = [:]

    mutating func add(_ path: ContainerPath) {
      total += 1
      // Two levels, so that a million directories need no memory.
      let components = path.parent.components.prefix(path.inGroup == nil ? 2 : 4)
      let directory = components.reduce(ContainerPath.root) { $0.appending(name: $1) }
      var entry = byDirectory[directory] ?? (0, [])
      entry.count += 1
      if entry.examples.count < 3 {
        entry.examples.append(path.rebased(from: directory, to: .root).description)
      }
      byDirectory[directory] = entry
    }
  }

  private let container: Container
  private let policy: ProtectionClass?
  /// Whether the policy is the app's default, which files have without a record.
  private let isDefault: Bool
  private var open: [OpenDirectory] = []
  private var total: UInt64 = 0
  private var files = 0
  private var recordedClasses = 0
  /// Files that break a rule of `protection:`, by the required class.
  private var broken: [ProtectionClass: Counts] = [:]
  private var weak = Counts(), readable = Counts(), writable = Counts()

  init(_ container: Container, policy: ProtectionClass?) {
    self.container = container
    self.policy = container.configuration.audit.protection ?? policy
    isDefault = container.configuration.audit.protection == nil
  }

  mutating func visit(_ entry: ScannedEntry, _ context: inout AuditContext) {
    while let last = open.last, !entry.path.isInside(last.path) { close(&context) }
    let isExcluded = entry.exclusion != nil
    let isFile = entry.status.type == .file
    if entry.status.type == .directory {
      open.append(
        OpenDirectory(
          path: entry.path, isExcluded: isExcluded, cache: isExcluded ? nil : cacheKind(entry.path)))
    }
    if isFile {
      files += 1
      let (included, excluded) = isExcluded ? (0, entry.status.size) : (entry.status.size, 0)
      total += included
      if let last = open.indices.last {
        open[last].included += included
        open[last].excluded += excluded
      }
      checkProtection(entry, &context)
    }
    guard isFile || entry.status.type == .directory else { return }
    if entry.status.mode & 0o002 != 0, entry.status.mode & 0o1000 == 0 { writable.add(entry.path) }
    if isFile, entry.status.mode & 0o004 != 0 { readable.add(entry.path) }
  }

  // MARK: Directories

  private mutating func close(_ context: inout AuditContext) {
    var directory = open.removeLast()
    // What the system may delete is not missed after a restore.
    if container.layout.isEmptied(directory.path) { directory.excluded = 0 }
    report(&directory, &context)
    guard let parent = open.indices.last else { return }
    open[parent].included += directory.included
    open[parent].excluded += directory.excluded
    if directory.hasLarge { open[parent].hasLarge = true }
  }

  private func report(_ directory: inout OpenDirectory, _ context: inout AuditContext) {
    let path = directory.path.description
    func add(_ rule: AuditRuleID, _ message: String) {
      context.findings.add(rule, path, message, unit: "directory")
    }
    if let cache = directory.cache, directory.included >= cache.leastSize {
      add(.cacheInBackup, "\(cache.rawValue): \(Self.megabytes(directory.included))")
    }
    guard !directory.hasLarge else { return }
    directory.hasLarge = max(directory.included, directory.excluded) >= Self.largeSize
    if directory.included >= Self.largeSize {
      add(.largeIncluded, "\(Self.megabytes(directory.included)) in each backup")
    } else if directory.hasLarge {
      add(.largeExcluded, "\(Self.megabytes(directory.excluded)) that no backup has")
    }
  }

  private static func megabytes(_ bytes: UInt64) -> String { "\(bytes / 1_000_000) MB" }

  /// The kind of a directory by its name, unless one above has a kind already.
  private func cacheKind(_ path: ContainerPath) -> CacheKind? {
    guard !open.contains(where: { $0.cache != nil }) else { return nil }
    let name = path.nameString.lowercased()
    if ["tmp", "temp", "thumbnails", "fscacheddata"].contains(name) || name.hasSuffix("cache")
      || name.hasSuffix("caches")
    {
      return .cache
    }
    // In Documents the user sees them, and has asked for them.
    let isUsers = path.components.first.map { $0.elementsEqual("Documents".utf8) } ?? false
    return ["downloads", "downloaded"].contains(name) && !isUsers ? .download : nil
  }

  // MARK: Protection

  private mutating func checkProtection(_ entry: ScannedEntry, _ context: inout AuditContext) {
    let rules = container.configuration.protection
    let hasPolicy = policy != nil && container.layout == .ios && entry.exclusion == nil
    guard hasPolicy || !rules.isEmpty else { return }
    if case .sidecar = entry.kind { return }
    do {
      let recorded = try context.staged.live.protection(of: entry.currentPath)
      if let rule = rules.broken(by: entry.path, with: recorded) {
        return broken[rule.required, default: Counts()].add(entry.path)
      }
      guard hasPolicy, let policy else { return }
      if recorded != nil { recordedClasses += 1 }
      if recorded == nil && isDefault { return }
      if (recorded ?? .completeUntilFirstUserAuthentication).isWeaker(than: policy) {
        weak.add(entry.path)
      }
    } catch {
      context.skip(entry.path, error)
    }
  }

  // MARK: The end

  mutating func finish(_ context: inout AuditContext) {
    while !open.isEmpty { close(&context) }
    report(
      weak, .protectionBelowPolicy, "no class, or a weaker one than \(policy?.rawValue ?? "")", &context)
    for (required, counts) in broken.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      report(
        counts, .protectionBelowRule, "no class, or a weaker one than \(required.rawValue)", &context)
    }
    if policy != nil, isDefault, recordedClasses == 0, files > 0, container.layout == .ios {
      context.notChecked.append(
        "protection classes: no file has a recorded one, and the app's default applies on the device")
    }
    reportModes(&context)
    if container.layout == .android, total > Self.androidLimit {
      context.findings.add(
        .backupTooLarge, nil, "\(Self.megabytes(total)) in the backup set", unit: "container")
    }
  }

  private func reportModes(_ context: inout AuditContext) {
    func report(_ counts: Counts, _ rule: AuditRuleID, _ word: String) {
      // Where (nearly) all files have the same mode, it is that of the copy, not of the device.
      if counts.total >= 10, counts.total * 10 >= files * 9 {
        context.notChecked.append(
          "modes: nearly all files are \(word) for everybody, which the copying may have done")
      } else {
        self.report(counts, rule, "\(word) for everybody", &context)
      }
    }
    report(writable, .worldWritable, "writable")
    switch container.layout {
    case .android: report(readable, .worldReadable, "readable")
    // An iOS app's files are readable for everybody, and protected by its sandbox.
    case .ios: break
    case .generic:
      for path in context.facts.readableSecrets {
        context.findings.add(
          .worldReadable, path.parent.description, "it has a secret, and is readable for everybody",
          example: path.nameString)
      }
    }
  }

  private func report(
    _ counts: Counts, _ rule: AuditRuleID, _ message: String, _ context: inout AuditContext
  ) {
    for (directory, entry) in counts.byDirectory.sorted(by: { $0.key < $1.key }) {
      context.findings.add(
        rule, directory.description, message, count: entry.count, examples: entry.examples)
    }
  }
}

extension ContainerLayout {
  /// Whether the system may empty a directory or what is around it, by the layout alone.
  fileprivate func isEmptied(_ path: ContainerPath) -> Bool {
    neverIncluded.contains { path == $0 || path.isInside($0) }
      || (includedRoots.map { roots in !roots.contains { path == $0 || path.isInside($0) } } ?? false)
  }
}

extension AuditContext {
  /// Finds the user's documents, photos and databases in directories that the system may empty.
  mutating func findUserData(in excluded: [(ContainerPath, Exclusion)]) {
    let warnings = ContainerWarning.find(in: container, excluded: excluded, secrets: false)
    for warning in warnings {
      guard let path = warning.path else { continue }
      switch warning.kind {
      case .document, .photo, .database:
        findings.add(
          .userDataNotInBackup, path.parent.description,
          "a \(warning.kind.rawValue) that no backup has and a clean-up may delete", example: path.nameString)
      case .vault:
        findings.add(
          .userDataNotInBackup, path.description, "the vault is excluded from backups",
          fix: "move it, or add it to `include:` in drydock.yaml")
      case .rootFlag, .rule, .group, .secret, .databaseContent, .settings, .keyValueStore,
        .protection:
        break
      }
    }
  }
}
