import AgeEncryption
import AppContainer
import DrydockErrors
import FileSystem
import Formats

/// What takes part in a comparison, and how much of it is shown.
package struct ComparisonOptions: Sendable {
  /// The parts of a container.
  package enum Store: String, Sendable, CaseIterable {
    case defaults, vault, databases, files
  }

  package var stores = Set(Store.allCases)
  /// The paths to compare, each with all below it; none means all.
  package var scope: [ContainerPath] = []
  /// How many rows of a table are listed, of each kind.
  package var rowLimit = 0
  /// Hides secrets: one for the whole run, so that equal ones are recognizable in all output.
  package var redactor = Redactor()

  /// Counts the compared paths.
  package var progress: WorkProgress?

  /// What opens the vaults, if given.
  package var deviceKeys: DeviceKeys?

  /// All of everything, rows only counted.
  package init() {}

  func takes(_ path: ContainerPath) -> Bool {
    scope.isEmpty || scope.contains { path == $0 || path.isInside($0) }
  }
}

/// A path that was not compared, with all below it.
package struct NotCompared: Sendable, Codable, Equatable {
  package var path: ContainerPath
  /// Why: the rule that keeps it out of one of the sides, or what kept it from being read.
  package var reason: String
  /// Whether it should have been compared: it cannot be read.
  package var isLoss: Bool
}

/// Compares two sides, path by path: reads only what their digests do not decide.
package struct Comparison {
  package private(set) var difference = ContainerDifference()
  /// Paths that are not compared: excluded on either side, or unreadable.
  package private(set) var notCompared: [NotCompared] = []
  /// The number of paths that both sides have, and were compared.
  package private(set) var compared = 0

  private let before, after: any ComparisonSide
  private let options: ComparisonOptions
  private let scratch: Directory
  /// Settings files with what each side has in it.
  private var settings: [(path: ContainerPath, old: Settings, new: Settings)] = []
  private typealias Settings = PropertyListDictionary

  /// Compares two sides.
  ///
  /// - Throws: what reading them throws, but for what this user may not read; `DrydockError` with code `notFound`
  ///   for a scope that neither side has.
  package init(
    of before: any ComparisonSide, with after: any ComparisonSide,
    options: ComparisonOptions = ComparisonOptions()
  ) throws {
    let scratch = try ScratchDirectory.temporary()
    (self.before, self.after, self.options, self.scratch) = (before, after, options, scratch.directory)
    try run()
  }

  /// A path that could not be read although it should have been.
  package var isIncomplete: Bool { notCompared.contains(where: \.isLoss) }

  private mutating func run() throws {
    let (old, new) = (before.entries, after.entries)
    try requireScope(old, new)
    for (path, reason) in before.omitted.merging(after.omitted, uniquingKeysWith: { a, _ in a })
    where options.takes(path) {
      notCompared.append(NotCompared(path: path, reason: reason, isLoss: reason == OmissionReason.unreadable))
    }
    var (i, j) = (0, 0)
    options.progress?.begin(.compare, totalFiles: old.count + new.count)
    while i < old.count || j < new.count {
      let isOld = j == new.count || (i < old.count && old[i].path <= new[j].path)
      let isNew = i == old.count || (j < new.count && new[j].path <= old[i].path)
      try visit(isOld ? old[i] : nil, isNew ? new[j] : nil)
      options.progress?.add(files: (isOld ? 1 : 0) + (isNew ? 1 : 0))
      if isOld { i += 1 }
      if isNew { j += 1 }
    }
    notCompared.sort { $0.path < $1.path }
    let compared = settings.map { SettingsComparison(file: $0.path, old: $0.old, new: $0.new) }
    let redactor = options.redactor.knowing(
      settings.flatMap { [$0.old, $0.new] }, among: compared.flatMap(\.values))
    difference.settings = compared.flatMap { $0.difference(redactor) }
  }

  private func requireScope(_ old: [ComparedEntry], _ new: [ComparedEntry]) throws {
    for path in options.scope {
      let isThere = { (entry: ComparedEntry) in entry.path == path || entry.path.isInside(path) }
      guard
        old.contains(where: isThere) || new.contains(where: isThere) || omits(before, path)
          || omits(after, path)
      else {
        throw DrydockError(
          .notFound, "neither side has this path; give a path below a container's root",
          path: path.description)
      }
    }
  }

  private func omits(_ side: any ComparisonSide, _ path: ContainerPath) -> Bool {
    !side.omitted.isEmpty && ([path] + path.ancestors).contains { side.omitted[$0] != nil }
  }

  private mutating func visit(_ old: ComparedEntry?, _ new: ComparedEntry?) throws {
    guard let path = (old ?? new)?.path, options.takes(path) else { return }
    if old == nil && omits(before, path) || new == nil && omits(after, path) { return }
    do {
      switch (old, new) {
      case (let old?, let new?):
        compared += 1
        try compare(old, new)
      case (let entry?, nil): try add(entry, .removed, in: before)
      case (nil, let entry?): try add(entry, .added, in: after)
      case (nil, nil): break
      }
    } catch let error as DrydockError where error.code == .permission {
      notCompared.append(NotCompared(path: path, reason: OmissionReason.unreadable, isLoss: true))
    } catch let error as DrydockError where error.code == .notFound {
      notCompared.append(NotCompared(path: path, reason: OmissionReason.vanished, isLoss: true))
    }
  }

  private func takes(_ store: ComparisonOptions.Store) -> Bool { options.stores.contains(store) }

  private mutating func add(
    _ entry: ComparedEntry, _ change: ContainerDifference.Change, in side: any ComparisonSide
  ) throws {
    let path = entry.path
    switch entry.kind {
    case .database:
      if takes(.databases) { difference.databases.append(.init(path: path, change: change)) }
      return
    case .vault:
      if takes(.vault) { try compareVaults(path, change) }
      return
    case .settings where takes(.defaults):
      let values = try side.settings(of: path) ?? [:]
      settings.append((path, change == .added ? [:] : values, change == .added ? values : [:]))
    default: break
    }
    guard takes(.files) else { return }
    difference.files.append(
      .init(
        path: path, type: entry.type, change: change, sizeBefore: change == .removed ? entry.size : nil,
        sizeAfter: change == .added ? entry.size : nil))
  }

  private mutating func compare(_ old: ComparedEntry, _ new: ComparedEntry) throws {
    guard old.type == new.type else { return addFile(old, new, [.type]) }
    var aspects: [ContainerDifference.File.Aspect] = []
    let kinds = [old.kind, new.kind]
    if !old.hasContent || !new.hasContent {
      // Only the metadata is compared.
    } else if kinds.contains(.database) {
      guard old.kind == new.kind else { return addFile(old, new, [.type]) }
      if takes(.databases) { try compareDatabases(old.path) }
    } else if kinds.contains(.vault) {
      if takes(.vault), try vaultsMayDiffer(old, new) {
        try compareVaults(old.path, .changed, isComplete: old.kind == new.kind)
      }
    } else if kinds.contains(.settings) {
      if try takes(.defaults) && !compareSettings(old, new) { aspects.append(.content) }
    } else if old.type == .file {
      if try takes(.files) && differs(old, new) { aspects.append(.content) }
    } else if old.linkTarget != new.linkTarget {
      aspects.append(.target)
    }
    addFile(old, new, aspects + Self.metadataAspects(old, new, isOnly: aspects.isEmpty))
  }

  private mutating func addFile(
    _ old: ComparedEntry, _ new: ComparedEntry, _ aspects: [ContainerDifference.File.Aspect]
  ) {
    guard !aspects.isEmpty, takes(.files) else { return }
    var file = ContainerDifference.File(
      path: old.path, type: new.type, change: .changed, aspects: aspects, sizeBefore: old.size,
      sizeAfter: new.size)
    if aspects.contains(.mode) {
      file.modeBefore = old.mode.map { String($0, radix: 8) }
      file.modeAfter = new.mode.map { String($0, radix: 8) }
    }
    difference.files.append(file)
  }

  private static func metadataAspects(
    _ old: ComparedEntry, _ new: ComparedEntry, isOnly: Bool
  ) -> [ContainerDifference.File.Aspect] {
    func differ<T: Equatable>(_ a: T?, _ b: T?) -> Bool { a != nil && b != nil && a != b }
    var aspects: [ContainerDifference.File.Aspect] = []
    if old.type != .symbolicLink, differ(old.mode, new.mode) { aspects.append(.mode) }
    if differ(old.attributes, new.attributes) { aspects.append(.attributes) }
    if differ(old.owner, new.owner) { aspects.append(.owner) }
    // The time of rewritten content is not informative, nor is a directory's, which changes with every entry.
    let isPlain = old.kind == .file || old.kind == .link
    if isOnly, aspects.isEmpty, isPlain, differ(old.modified, new.modified) { aspects.append(.time) }
    return aspects
  }

  private func differs(_ old: ComparedEntry, _ new: ComparedEntry) throws -> Bool {
    if let a = old.size, let b = new.size, a != b { return true }
    return try before.digest(of: old.path) != after.digest(of: new.path)
  }

  /// False when they differ, and not by their keys.
  private mutating func compareSettings(_ old: ComparedEntry, _ new: ComparedEntry) throws -> Bool {
    let path = old.path
    if let a = try before.digest(of: path), try a == after.digest(of: path) { return true }
    guard let a = try before.settings(of: path), let b = try after.settings(of: path) else { return false }
    settings.append((path, a, b))
    return true
  }

  /// A list of items has no digest.
  private func vaultsMayDiffer(_ old: ComparedEntry, _ new: ComparedEntry) throws -> Bool {
    try differs(old, new) || before.digest(of: old.path) == nil
  }

  private mutating func compareVaults(
    _ path: ContainerPath, _ change: ContainerDifference.Change, isComplete: Bool = true
  ) throws {
    let old = change == .added ? nil : try before.vault(of: path)
    let new = change == .removed ? nil : try after.vault(of: path)
    guard isComplete, old != nil || change == .added, new != nil || change == .removed else {
      return difference.vault.append(.init(path: path, change: change))
    }
    let comparison = VaultComparison(path: path, keys: options.deviceKeys, redactor: options.redactor)
    if let found = comparison.difference(old, new, change) { difference.vault.append(found) }
  }

  private mutating func compareDatabases(_ path: ContainerPath) throws {
    defer {
      before.forgetDatabase(path)
      after.forgetDatabase(path)
    }
    let old = try before.databaseDigest(of: path)
    let new = try after.databaseDigest(of: path)
    if old == new && old != .unknown { return }
    var database = ContainerDifference.Database(path: path, change: .changed)
    do {
      let names: (ContainerPath, ContainerPath) = ("before", "after")
      defer { for name in [names.0, names.1] { try? scratch.removeDatabase(name) } }
      let result = try DatabaseComparison(
        before: before.databaseFile(of: path, in: scratch, as: names.0),
        after: after.databaseFile(of: path, in: scratch, as: names.1), rowLimit: options.rowLimit,
        redactor: options.redactor
      ).run()
      (database.schema, database.tables) = (result.schema, result.tables)
      if database.schema.isEmpty && database.tables.isEmpty { return }
    } catch let error as DrydockError where error.code == .malformed {
      database.problem = error.message
    }
    difference.databases.append(database)
  }
}

/// Reasons why a path is not compared, besides the rules of backups.
package enum OmissionReason {
  /// It could not be read, now or when the archive was written.
  package static let unreadable = "cannot be read"
  /// The app removed it while it was compared.
  package static let vanished = "vanished while it was compared"
}

/// Compares settings key by key.
private struct SettingsComparison {
  private let file: ContainerPath
  private let old, new: PropertyListDictionary
  private let keys: [ExactText]

  init(file: ContainerPath, old: PropertyListDictionary, new: PropertyListDictionary) {
    (self.file, self.old, self.new) = (file, old, new)
    keys = old.differingKeys(from: new) { $0.matches($1) }
  }

  var values: [PropertyListValue] { keys.flatMap { [old[$0], new[$0]].compactMap { $0 } } }

  func difference(_ redactor: Redactor) -> [ContainerDifference.Setting] {
    keys.map { key in
      let (before, after) = (old[key], new[key])
      return .init(
        file: file, key: redactor.shown(name: key.text),
        change: before == nil ? .added : after == nil ? .removed : .changed,
        before: before.map { redactor.shown($0, key: key.text) },
        after: after.map { redactor.shown($0, key: key.text) })
    }
  }
}

/// One of the two that are compared: a live container, a staged one, an archive, a golden.
package protocol ComparisonSide {
  /// Everything that takes part, sorted by path.
  var entries: [ComparedEntry] { get }
  /// What the side does not hold although it may exist, with all below it, and why.
  var omitted: [ContainerPath: String] { get }

  /// A file's content digest; nil for what can only be compared by what is in it.
  func digest(of path: ContainerPath) throws -> SHA256.Digest?
  /// The settings in a file; nil when it is not a property list with a dictionary on top.
  func settings(of path: ContainerPath) throws -> PropertyListDictionary?
  /// What a vault's file holds; nil when the side has no more of it than its digest.
  func vault(of path: ContainerPath) throws -> ComparedVault?
  /// Decides whether two databases are the same without opening them.
  func databaseDigest(of path: ContainerPath) throws -> DatabaseDigest
  /// The path of a closed database file that is the caller's to open, as long as the side exists.
  ///
  /// - Parameters:
  ///   - scratch: a private directory to put it into, where that is needed.
  ///   - name: its name there.
  /// - Throws: `DrydockError` with code `malformed` for what SQLite cannot open.
  func databaseFile(of path: ContainerPath, in scratch: Directory, as name: ContainerPath) throws -> String
  /// Called when a database is no longer needed.
  func forgetDatabase(_ path: ContainerPath)
}

/// What a side has of a vault.
package enum ComparedVault {
  /// The sealed file.
  case sealed([UInt8])
  /// Its items alone: neither their times, nor the fields that this version does not know, nor to whom it is sealed.
  case items([VaultItem])
}

/// Decides whether two databases are the same without opening them.
package enum DatabaseDigest: Equatable {
  /// The digest of its captured content.
  case image(SHA256.Digest)
  /// SQLite cannot open it: the digests of its files, by the ending of their names.
  case raw([String: SHA256.Digest])
  /// Only its schema and rows can be compared.
  case unknown
}

/// One path of a side. What a side does not know about it is nil and not compared.
package struct ComparedEntry: Sendable {
  /// What a path is.
  package enum Kind: String, Sendable {
    case directory, file, link, settings, database, vault
    /// A socket, FIFO or device.
    case other
  }

  package var path: ContainerPath
  package var kind: Kind
  /// Whether its content takes part: a nondeterministic value does not.
  package var hasContent = true
  package var mode: UInt16?
  package var size: UInt64?
  /// What a symbolic link points to.
  package var linkTarget: [UInt8]?
  /// Extended attributes, each with the beginning of its value's digest.
  package var attributes: [String: String]?
  /// Owner, and modification time in nanoseconds since 1970.
  package var owner: [UInt32]?, modified: Int64?

  package init(_ path: ContainerPath, _ kind: Kind) {
    self.path = path
    self.kind = kind
  }

  /// Takes mode and attributes from metadata.
  package mutating func describe(_ metadata: FileMetadata) throws {
    mode = metadata.mode
    var shown: [String: String] = [:]
    // What the system itself says about a file (SELinux labels) is not part of a container.
    for attribute in metadata.attributes where attribute.name != "security.selinux" {
      shown[attribute.name] = try Self.digest(of: attribute)
    }
    attributes = shown
  }

  /// A short form of an attribute's value: the beginning of its digest.
  package static func digest(of attribute: ExtendedAttribute) throws -> String {
    try attribute.value.withUnsafeBytes { String(try SHA256.hash($0).hex.prefix(16)) }
  }

  /// What it is to a file system.
  var type: FileType {
    switch kind {
    case .directory: .directory
    case .link: .symbolicLink
    case .other: .other
    case .file, .settings, .database, .vault: .file
    }
  }
}

extension Container {
  /// What a regular file is, unless it is a database.
  package func comparedKind(ofFile path: ContainerPath) -> ComparedEntry.Kind {
    path == vaultPath ? .vault : isSettings(path) ? .settings : .file
  }
}
