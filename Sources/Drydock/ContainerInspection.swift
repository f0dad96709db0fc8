import AppContainer
import AppFrameworks
import AppStores
import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats
import MigrationEngine

extension Container {
  /// Reports what is in the container; nothing is changed, and it may be in use. Databases are captured first, never opened
  /// in place.
  public func inspect(options: TransactionOptions = TransactionOptions()) throws -> ContainerInspection {
    try ContainerInspection(self, options: options)
  }
}

/// What is in a container: its stores with sizes and counts, and what a backup leaves out.
public struct ContainerInspection: Sendable, Codable {
  /// A settings file.
  public struct Settings: Sendable, Codable {
    /// Its path, size in bytes and number of keys; nil when it cannot be read.
    public var path: ContainerPath, bytes: UInt64, keys: Int?
    /// Why its keys are not known.
    public var problem: String?
    /// The suite that it is, such as `standard` or an app group's id.
    public var suite: String?
    /// The settings that hold a document in text or data; some of many.
    public var documents: [Document]?
  }

  /// A class of data protection, and the number of files that have it.
  public struct Protection: Sendable, Codable {
    /// The name of the class, and its number of files.
    public var `class`: String, files: Int
  }

  /// A setting with a keyed archive, a property list or JSON, shortened, secrets redacted.
  public struct Document: Sendable, Codable {
    /// The name of the setting, and its value as text.
    public var key: String, value: String
  }

  /// An SQLite database.
  public struct Database: Sendable, Codable {
    /// Its path, and its size in bytes with its sidecars.
    public var path: ContainerPath, bytes: UInt64
    /// The size of its write-ahead log in bytes.
    public var logBytes: UInt64
    /// Its number of tables; nil when SQLite cannot open it.
    public var tables: Int?
    /// What a known framework stores in it; nil for other databases.
    public var description: DatabaseDescription?
  }

  /// What a rule keeps out of a backup.
  public struct Excluded: Sendable, Codable {
    /// The file, or the directory with all below it.
    public var path: ContainerPath
    package var rule: Exclusion
    /// Files in it and their size in bytes.
    public var files: Int, bytes: UInt64
    /// Paths below a directory.
    public var pathsBelow: Int
    /// Bytes it takes on disk; a file with several hard links counts once.
    public var diskBytes: UInt64
  }

  /// A group of apps that shares data.
  public struct Group: Sendable, Codable {
    /// Its ID, the path of its root, and whether that exists.
    public var id: String, root: String, exists: Bool
  }

  /// Where it is, and whose it is.
  public var root: String, app: String, instance: String, layout: ContainerLayout
  /// Its groups, sorted by id.
  public var groups: [Group] = []
  /// The schema version and what shows it; nil when nothing does.
  public var schemaVersion: Int?, versionSource: String?
  /// The app's own number for the version, where it is another one.
  public var appVersion: Int?
  /// Why the schema version is not known.
  public var versionProblem: String?
  /// Its settings files, and its databases.
  public var settings: [Settings] = [], databases: [Database] = []
  /// The file of secrets and its size, where there is one.
  public var vault: ContainerPath?, vaultBytes: UInt64?
  /// How it is encrypted, such as `encrypted to 1 recipient (X25519)`.
  public var vaultEncryption: String?
  /// The names of its items; nil when no given key opens it.
  public var vaultItems: [String]?
  /// Why its items are not known.
  public var vaultProblem: String?
  /// Files that are neither settings nor databases: their number and size in bytes.
  public var files = 0, fileBytes: UInt64 = 0
  /// What rules keep out of a backup.
  public var excluded: [Excluded] = []
  /// The recorded classes of files and databases; nil when none is recorded.
  public var protection: [Protection]?
  /// What may not be intended.
  package var warnings: [ContainerWarning] = []

  init(_ container: Container, options: TransactionOptions) throws {
    (root, app, instance, layout) = (container.root, container.app, container.instance, container.layout)
    groups =
      (container.groups.map { Group(id: $0.id, root: $0.root, exists: true) }
      + container.missingGroups.map { Group(id: $0.id, root: $0.root, exists: false) }).sorted {
        $0.id < $1.id
      }
    try read(container, DiscardedStage(on: container, options: options))
  }

  private mutating func read(_ container: Container, _ staged: StagedContainer) throws {
    do {
      let detected = try DetectedVersion.detect(in: staged)
      (schemaVersion, versionSource) = (detected.version, detected.source.description)
      appVersion = detected.appNumber
    } catch {
      versionProblem = (error as? DrydockError)?.message ?? String(describing: error)
    }
    var linked: Set<FileIdentity> = []
    var protected = ProtectedFiles(rules: container.configuration.protection)
    var scan = ContainerScan(staged.live, rules: ExclusionRules(container), entersExcluded: true)
    staged.progress?.begin(.inspect)
    while let entry = try scan.nextEntry() {
      staged.progress?.add(files: 1)
      if let rule = entry.exclusion {
        exclude(entry, rule, &linked)
        // iOS excludes it, and yet its limits concern the app.
        if case .file = entry.kind, container.isKeyValueStore(entry.path) {
          try add(settings: entry.path, entry.status.size, staged)
        }
        continue
      }
      if entry.status.type == .file { protected.add(entry, in: staged.live) }
      switch entry.kind {
      case .database(let unit): try add(unit, entry.status.size, staged)
      case .file where entry.path == container.vaultPath:
        (vault, vaultBytes) = (entry.path, entry.status.size)
        readVault(staged)
      // A previous version that counts instead of its file is not listed beside it.
      case .file where container.isSettings(entry.path.ofPreferencesBackup ?? entry.path):
        let path = entry.path.ofPreferencesBackup ?? entry.path
        if try path != entry.path && staged.live.status(path) != nil { continue }
        try add(settings: path, entry.status.size, staged)
      case .file:
        files += 1
        fileBytes += entry.status.size
      default: break
      }
    }
    warnings += ContainerWarning.find(
      in: container, excluded: excluded.map { ($0.path, $0.rule) }, settings: staged.defaults)
    (protection, warnings) = (protected.classes, warnings + protected.warnings)
    for database in databases {
      warnings += (database.description?.warnings ?? []).map {
        ContainerWarning(kind: .databaseContent, path: database.path, message: $0)
      }
    }
  }

  /// How many documents of a settings file are listed.
  private static let documentLimit = 20

  private static func documents(in values: PropertyListDictionary, _ redactor: Redactor) -> [Document]? {
    var documents: [Document] = []
    for (key, value) in values.sorted() where documents.count < documentLimit {
      let name = SecretName(key)
      guard let document = redactor.document(in: value, named: name) else { continue }
      documents.append(
        Document(key: redactor.shown(name: key), value: redactor.shown(document, named: name)))
    }
    return documents.isEmpty ? nil : documents
  }

  private mutating func add(settings path: ContainerPath, _ size: UInt64, _ staged: StagedContainer) throws {
    var file = Settings(path: path, bytes: size, keys: nil)
    file.suite = staged.container.suite(of: path)
    do {
      let root = try staged.defaults(path)?.root
      if let root, staged.container.isKeyValueStore(path) {
        let store = KeyValueStore(root)
        file.keys = store.values.count
        warnings += store.excesses.map {
          ContainerWarning(kind: .keyValueStore, path: path, message: "the iCloud key-value store has \($0)")
        }
      } else {
        file.keys = root?.count
      }
      file.documents = Self.documents(in: root ?? [:], staged.redactor)
    } catch let error as DrydockError {
      file.problem = error.message
    }
    settings.append(file)
  }

  private mutating func readVault(_ staged: StagedContainer) {
    do {
      vaultEncryption = try staged.vaultEncryption()
      if staged.deviceKeys != nil { vaultItems = try staged.vault()?.sorted.map(\.description) }
    } catch {
      vaultProblem = (error as? DrydockError)?.message ?? String(describing: error)
    }
  }

  private mutating func exclude(
    _ entry: ScannedEntry, _ rule: Exclusion, _ linked: inout Set<FileIdentity>
  ) {
    // One entry for a directory covers everything below it.
    if excluded.last.map({ !entry.path.isInside($0.path) }) ?? true {
      excluded.append(
        Excluded(path: entry.path, rule: rule, files: 0, bytes: 0, pathsBelow: -1, diskBytes: 0))
    }
    excluded[excluded.count - 1].pathsBelow += 1
    if entry.status.links == 1 || entry.status.type == .directory
      || linked.insert(entry.status.identity).inserted
    {
      excluded[excluded.count - 1].diskBytes += entry.status.blocks * 512
    }
    guard entry.status.type == .file else { return }
    excluded[excluded.count - 1].files += 1
    excluded[excluded.count - 1].bytes += entry.status.size
  }

  private mutating func add(_ unit: DatabaseUnit, _ size: UInt64, _ staged: StagedContainer) throws {
    let sidecars = try unit.sidecars.map { ($0, try staged.status(of: $0)?.size ?? 0) }
    let tables = try? staged.tableCount(of: unit.main)
    let description = try tables.flatMap { _ in try staged.description(of: unit) }
    databases.append(
      Database(
        path: unit.main, bytes: sidecars.reduce(size) { $0 + $1.1 },
        logBytes: sidecars.first { $0.0.nameString.hasSuffix("-wal") }?.1 ?? 0, tables: tables,
        description: description))
    staged.releaseDatabase(at: unit.main)
  }
}

/// The protection classes of a container's files, and those that are weaker than `drydock.yaml` requires.
private struct ProtectedFiles {
  let rules: [ProtectionRule]
  private var counts: [ProtectionClass: Int] = [:]
  private var broken: [String: (rule: ProtectionRule, count: Int, example: ContainerPath)] = [:]

  init(rules: [ProtectionRule]) { self.rules = rules }

  mutating func add(_ entry: ScannedEntry, in root: Directory) {
    if case .sidecar = entry.kind { return }
    // A file that vanishes has no class.
    let found = try? root.protection(of: entry.currentPath)
    if let found { counts[found, default: 0] += 1 }
    guard let rule = rules.broken(by: entry.path, with: found) else { return }
    broken[rule.pattern.description, default: (rule, 0, entry.path)].count += 1
  }

  var classes: [ContainerInspection.Protection]? {
    if counts.isEmpty { return nil }
    return ProtectionClass.allCases.compactMap { known in
      counts[known].map { ContainerInspection.Protection(class: known.rawValue, files: $0) }
    }
  }

  var warnings: [ContainerWarning] {
    broken.sorted { $0.key < $1.key }.map { path, found in
      ContainerWarning(
        kind: .protection, path: nil,
        message:
          "files of `\(path)` with no protection class, or a weaker one than "
          + "\(found.rule.required.rawValue): \(found.count), such as \(found.example); `files.set-protection` changes it"
      )
    }
  }
}

extension StagedContainer {
  /// What a known framework stores in a database; nil for other databases.
  fileprivate func description(of unit: DatabaseUnit) throws -> DatabaseDescription? {
    let folder = try unit.externalData?.appending(DescribedDatabase.externalDataFolder)
    let files = try folder.map { folder in
      try children(of: folder).reduce(into: [String: UInt64]()) { sizes, path in
        if let status = try status(of: path), status.type == .file { sizes[path.nameString] = status.size }
      }
    }
    return try readDatabase(at: unit.main) { db in
      try DatabaseDescription.of(
        DescribedDatabase(
          db, path: unit.main, externalFiles: files, configuration: container.configuration,
          redactor: redactor))
    }
  }
}
