import AppContainer
import AppStores
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// What takes part in a comparison, and how much of it is shown.
package struct ComparisonOptions: Sendable {
  package var stores = Set(ContainerStore.allCases)
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

  // Reasons besides the rules of backups.

  /// It could not be read, now or when the archive was written.
  package static let unreadable = "cannot be read"
  /// The app removed it while it was compared.
  package static let vanished = "vanished while it was compared"
}

/// Compares two sides, path by path: reads only what their digests do not decide.
package struct Comparison {
  package private(set) var difference = ContainerDifference()
  /// Paths that are not compared: excluded on either side, or unreadable.
  package private(set) var notCompared: [NotCompared] = []
  /// The number of paths that both sides have, and were compared.
  package private(set) var compared = 0

  private let before, after: any ComparisonSide
  private var old, new: WalkedSide
  private let options: ComparisonOptions
  private let scratch: Directory
  /// Settings files with what each side has in it.
  private var settings: [(path: ContainerPath, old: PropertyListDictionary, new: PropertyListDictionary)] = []

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
    (old, new) = (WalkedSide(next: try before.walk()), WalkedSide(next: try after.walk()))
    try run()
  }

  /// A path that could not be read although it should have been.
  package var isIncomplete: Bool { notCompared.contains(where: \.isLoss) }

  private mutating func run() throws {
    // The paths of the scope that one of the sides has.
    var found: Set<ContainerPath> = []
    options.progress?.begin(.compare)
    while true {
      let (a, b) = (try old.head(), try new.head())
      guard let path = [a?.path, b?.path].compactMap({ $0 }).min() else { break }
      for place in options.scope where path == place || path.isInside(place) { found.insert(place) }
      let isOld = a?.path == path
      let isNew = b?.path == path
      try visit(isOld ? a : nil, isNew ? b : nil)
      options.progress?.add(files: 1)
      if isOld { old.advance() }
      if isNew { new.advance() }
    }
    for place in options.scope where !found.contains(place) && !old.omits(place) && !new.omits(place) {
      throw DrydockError(
        .notFound, "neither side has this path; give a path below a container's root",
        path: place.description)
    }
    for (path, reason) in old.omitted.merging(new.omitted, uniquingKeysWith: { a, _ in a })
    where options.takes(path) {
      notCompared.append(NotCompared(path: path, reason: reason, isLoss: reason == NotCompared.unreadable))
    }
    notCompared.sort { $0.path < $1.path }
    compareSettings()
  }

  private mutating func visit(_ old: ComparedEntry?, _ new: ComparedEntry?) throws {
    guard let path = (old ?? new)?.path, options.takes(path) else { return }
    if old == nil && self.old.omits(path) || new == nil && self.new.omits(path) { return }
    do {
      switch (old, new) {
      case (let old?, let new?):
        compared += 1
        try compare(old, new)
      case (let entry?, nil): try add(entry, .removed)
      case (nil, let entry?): try add(entry, .added)
      case (nil, nil): break
      }
      try compareSettings(ofBackup: path)
    } catch let error as DrydockError where error.code == .permission {
      notCompared.append(NotCompared(path: path, reason: NotCompared.unreadable, isLoss: true))
    } catch let error as DrydockError where error.code == .notFound {
      notCompared.append(NotCompared(path: path, reason: NotCompared.vanished, isLoss: true))
    }
  }

  private func takes(_ store: ContainerStore) -> Bool { options.stores.contains(store) }

  private mutating func add(_ entry: ComparedEntry, _ change: ContainerDifference.Change) throws {
    let path = entry.path
    switch entry.kind {
    case .database:
      if takes(.databases) { difference.databases.append(.init(path: path, change: change)) }
      return
    case .vault:
      if takes(.vault) { try compareVaults(path, change) }
      return
    case .settings where takes(.defaults):
      // The side without it may have its previous version.
      settings.append((path, try before.settings(of: path) ?? [:], try after.settings(of: path) ?? [:]))
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
    var document: ContainerDifference.DocumentFields?
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
      if try takes(.files) && differs(old, new) {
        aspects.append(.content)
        document = try compareDocuments(old, new)
      }
    } else if old.linkTarget != new.linkTarget {
      aspects.append(.target)
    }
    addFile(old, new, aspects + Self.metadataAspects(old, new, isOnly: aspects.isEmpty), document)
  }

  /// Larger files are not read to be shown.
  private static let documentLimit: UInt64 = 256 << 10

  /// What differs between two files that are documents; nil for others.
  private func compareDocuments(
    _ old: ComparedEntry, _ new: ComparedEntry
  ) throws -> ContainerDifference.DocumentFields? {
    // Drydock's history is not data of the app.
    guard !old.path.components.contains(where: { $0.elementsEqual(".drydock".utf8) }),
      [old, new].allSatisfy({ $0.size ?? 0 <= Self.documentLimit }),
      let a = try before.contents(of: old).flatMap({ DecodedDocument(bytes: $0) }),
      let b = try after.contents(of: new).flatMap({ DecodedDocument(bytes: $0) })
    else { return nil }
    let name = SecretName(old.path.nameString)
    return options.redactor.difference(from: a, to: b, named: name)
  }

  private mutating func addFile(
    _ old: ComparedEntry, _ new: ComparedEntry, _ aspects: [ContainerDifference.File.Aspect],
    _ document: ContainerDifference.DocumentFields? = nil
  ) {
    guard !aspects.isEmpty, takes(.files) else { return }
    var file = ContainerDifference.File(
      path: old.path, type: new.type, change: .changed, aspects: aspects, sizeBefore: old.size,
      sizeAfter: new.size, document: document)
    if aspects.contains(.mode) {
      file.modeBefore = old.mode.map { String($0, radix: 8) }
      file.modeAfter = new.mode.map { String($0, radix: 8) }
    }
    if aspects.contains(.attributes) {
      let (a, b) = (try? old.protection(), try? new.protection())
      if a != b { (file.protectionBefore, file.protectionAfter) = (a, b) }
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
    return try before.digest(of: old) != after.digest(of: new)
  }

  /// False when they differ, and not by their keys.
  private mutating func compareSettings(_ old: ComparedEntry, _ new: ComparedEntry) throws -> Bool {
    let path = old.path
    if let a = try before.digest(of: old), try a == after.digest(of: new) { return true }
    guard let a = try before.settings(of: path), let b = try after.settings(of: path) else { return false }
    settings.append((path, a, b))
    return true
  }

  /// Compares the settings of a SharedPreferences file that has a previous version on one side, which counts there: the
  /// files themselves may be equal, or missing.
  private mutating func compareSettings(ofBackup path: ContainerPath) throws {
    guard takes(.defaults), let file = path.ofPreferencesBackup,
      !settings.contains(where: { $0.path == file })
    else { return }
    settings.append((file, try before.settings(of: file) ?? [:], try after.settings(of: file) ?? [:]))
  }

  /// Compares what was collected of settings key by key: a secret of one file is hidden in all of them.
  private mutating func compareSettings() {
    let pairs = settings.flatMap { file, old, new in
      old.differingKeys(from: new) { $0.matches($1) }.map { (file: file, key: $0.text, old[$0], new[$0]) }
    }
    let redactor = options.redactor.knowing(
      settings.flatMap { [$0.old, $0.new] }, among: pairs.flatMap { [$0.2, $0.3].compactMap { $0 } })
    difference.settings = pairs.map { file, key, before, after in
      let name = SecretName(key)
      var setting = ContainerDifference.Setting(
        file: file, key: redactor.shown(name: key),
        change: before == nil ? .added : after == nil ? .removed : .changed,
        before: before.map { redactor.shownDecoded($0, named: name) },
        after: after.map { redactor.shownDecoded($0, named: name) })
      guard let before, let after else { return setting }
      setting.document = redactor.difference(from: before, to: after, named: name)
      // Only the type differs: an int has become a long.
      if setting.before == setting.after, before.typeName != after.typeName {
        setting.before?.append(" (\(before.typeName))")
        setting.after?.append(" (\(after.typeName))")
      }
      return setting
    }
  }

  /// A list of items has no digest.
  private func vaultsMayDiffer(_ old: ComparedEntry, _ new: ComparedEntry) throws -> Bool {
    try differs(old, new) || before.digest(of: old) == nil
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

/// A side with the next entry of its walk, and what it has left out so far.
private struct WalkedSide {
  let next: SideWalk
  private(set) var omitted: [ContainerPath: String] = [:]
  private var entry: ComparedEntry?

  init(next: @escaping SideWalk) { self.next = next }

  mutating func head() throws -> ComparedEntry? {
    while entry == nil, let step = try next() {
      switch step {
      case .entry(let next): entry = next
      case .omitted(let path, let reason): omitted[path] = reason
      }
    }
    return entry
  }

  mutating func advance() { entry = nil }

  func omits(_ path: ContainerPath) -> Bool {
    !omitted.isEmpty && ([path] + path.ancestors).contains { omitted[$0] != nil }
  }
}
