import AppContainer
import ContainerTransaction
import DrydockErrors
import FileSystem
import MigrationEngine

/// What is in a container: its stores with sizes and counts, and what a backup leaves out.
package struct ContainerInspection: Sendable, Codable {
  /// One settings file.
  package struct Settings: Sendable, Codable {
    /// Its place, its size in bytes, and its number of keys; no number when it cannot be read.
    package var path: ContainerPath, bytes: UInt64, keys: Int?
    /// What keeps it from being read, when something does.
    package var problem: String?
  }

  /// One database.
  package struct Database: Sendable, Codable {
    /// Its place, and its size in bytes with its sidecars.
    package var path: ContainerPath, bytes: UInt64
    /// Bytes in its write-ahead log.
    package var logBytes: UInt64
    /// Its number of tables; nil when SQLite cannot open it.
    package var tables: Int?
  }

  /// What a rule keeps out of a backup.
  package struct Excluded: Sendable, Codable {
    /// Its place and the rule.
    package var path: ContainerPath, rule: Exclusion
    /// Files in it and their size in bytes.
    package var files: Int, bytes: UInt64
    /// Paths below it.
    package var pathsBelow: Int
    /// Bytes that it takes on disk; a file with several names counts once.
    package var diskBytes: UInt64
  }

  /// One group of `drydock.yaml`.
  package struct Group: Sendable, Codable {
    /// Its id, where its root is or would be, and whether it is there.
    package var id: String, root: String, exists: Bool
  }

  /// Where it is, and whose.
  package var root: String, app: String, instance: String, layout: Layout
  /// Its groups, sorted by id.
  package var groups: [Group] = []
  /// The schema version and what says so; nil when nothing does.
  package var schemaVersion: Int?, versionSource: String?
  /// What keeps the schema version from being known, when something does.
  package var versionProblem: String?
  /// The stores.
  package var settings: [Settings] = [], databases: [Database] = []
  /// The file of secrets and its size, where there is one.
  package var vault: ContainerPath?, vaultBytes: UInt64?
  /// How it is encrypted, such as `encrypted to 1 recipient (X25519)`.
  package var vaultEncryption: String?
  /// The names of its items; nil when no key at hand opens it.
  package var vaultItems: [String]?
  /// What keeps it from being opened, when something does.
  package var vaultProblem: String?
  /// Files that are neither settings nor databases: their number and size in bytes.
  package var files = 0, fileBytes: UInt64 = 0
  /// What a backup leaves out.
  package var excluded: [Excluded] = []
  /// What may not be what the app or the owner means.
  package var warnings: [ContainerWarning] = []

  /// Looks at a container; databases are captured to be read, never opened themselves.
  package init(_ container: Container, options: TransactionOptions = TransactionOptions()) throws {
    (root, app, instance, layout) = (container.root, container.app, container.instance, container.layout)
    groups =
      (container.groups.map { Group(id: $0.id, root: $0.root, exists: true) }
      + container.missingGroups.map { Group(id: $0.id, root: $0.root, exists: false) }).sorted {
        $0.id < $1.id
      }
    var inspection = self
    try Transaction.inspect(container, options: options) { try inspection.look(container, $0) }
    self = inspection
  }

  private mutating func look(_ container: Container, _ staged: StagedContainer) throws {
    do {
      let detected = try DetectedVersion.detect(in: staged)
      (schemaVersion, versionSource) = (detected.version, detected.source.description)
    } catch {
      versionProblem = String(describing: error)
    }
    var linked: Set<FileIdentity> = []
    let scan = ContainerScan(staged.live, rules: ExclusionRules(container), entersExcluded: true)
    try scan.visit { entry in
      if let rule = entry.exclusion { return exclude(entry, rule, &linked) }
      switch entry.kind {
      case .database(let unit): try add(unit, entry.status.size, staged)
      case .file where entry.path == container.vaultPath:
        (vault, vaultBytes) = (entry.path, entry.status.size)
        lookIntoVault(staged)
      case .file where container.isSettings(entry.path):
        var file = Settings(path: entry.path, bytes: entry.status.size, keys: nil)
        do {
          file.keys = try staged.defaults(entry.path)?.root.count
        } catch let error as DrydockError {
          file.problem = error.message
        }
        settings.append(file)
      case .file:
        files += 1
        fileBytes += entry.status.size
      default: break
      }
    }
    warnings = ContainerWarning.find(
      in: container, excluded: excluded.map { ($0.path, $0.rule) }, settings: staged.defaults)
  }

  private mutating func lookIntoVault(_ staged: StagedContainer) {
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
    // One line for a directory tells of all below it.
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
    databases.append(
      Database(
        path: unit.main, bytes: sidecars.reduce(size) { $0 + $1.1 },
        logBytes: sidecars.first { $0.0.nameString.hasSuffix("-wal") }?.1 ?? 0, tables: tables))
  }
}
