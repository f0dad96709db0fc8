import DrydockErrors
import Formats

/// An app's migrations in Swift: one for each version.
///
/// ```swift
/// enum NotesPlan: MigrationPlan {
///   static let migrations: [PlannedMigration] = [
///     .lightweight(
///       version: 1, "rename_settings", [.step("defaults.rename", ["keys": ["user_name": "username"]])]),
///     .custom(version: 2, "split_names") { context in
///       try context.write(database: "notes") { db in … }
///     } down: { context in
///       …
///     },
///   ]
/// }
/// ```
public protocol MigrationPlan: SendableMetatype {
  /// Version 1 first.
  static var migrations: [PlannedMigration] { get }
}

extension MigrationCatalog {
  /// The migrations of a plan.
  ///
  /// - Throws: ``DrydockError`` with code `catalog`, naming the place in the source file where there is one.
  public init(_ plan: any MigrationPlan.Type) throws {
    try self.init(migrations: plan.migrations, name: String(describing: plan))
  }

  /// Migrations without a type for their plan.
  ///
  /// - Parameter name: the name in messages.
  /// - Throws: as ``init(_:)``.
  public init(migrations planned: [PlannedMigration], name: String = "MigrationPlan") throws {
    let (catalog, problems) = Self.read(planned, name)
    if let problem = problems.first { throw problem }
    self = catalog
  }

  /// The migrations of a plan, with all errors in them.
  static func read(_ planned: [PlannedMigration], _ name: String) -> (
    MigrationCatalog, problems: [DrydockError]
  ) {
    var (migrations, problems): ([Migration], [DrydockError]) = ([], [])
    for (index, migration) in planned.enumerated() {
      do {
        guard migration.version == index + 1 else {
          throw migration.position.error(
            "the migration `\(migration.name)` has the version \(migration.version) where \(index + 1) is expected: the "
              + "migrations of a plan are ordered, from version 1 and without a gap")
        }
        migrations.append(try migration.migration())
      } catch {
        problems.append(DrydockError(reading: error))
      }
    }
    return (MigrationCatalog(directory: name, migrations: migrations), problems)
  }
}

/// One migration of a plan, from the previous version to its own.
public struct PlannedMigration: Sendable {
  /// A change in Swift. An error that it throws ends the run, and nothing has changed then.
  public typealias Change = @Sendable (MigrationContext) throws -> Void

  /// The schema version after it.
  public let version: Int
  /// Its name: letters, digits, `_` and `-`.
  public let name: String
  /// What it does, in one line.
  public let description: String?

  let kind: Kind
  let checks: [Assertion]
  let verifications: [Assertion]
  let isIrreversible: Bool
  let losses: [String: String]
  let downLosses: [String: String]
  let position: YAMLPosition

  enum Kind: Sendable {
    case lightweight([Operation], down: [Operation])
    case custom(up: Change, down: Change?, revision: Int, needsVault: Bool)
  }

  /// A migration of operations, most of which have an inverse.
  ///
  /// - Parameters:
  ///   - version: the schema version after it: 1 for a plan's first migration, and so on without a gap.
  ///   - name: letters, digits, `_` and `-`.
  ///   - description: one line for reports.
  ///   - check: assertions before the first operation.
  ///   - verify: assertions after the last one.
  ///   - down: the down steps, where operations have no inverse.
  ///   - isIrreversible: says that the migration cannot be reverted.
  ///   - loses: why values may be lost, by `TABLE` or `TABLE.COLUMN`, setting, vault item or path.
  ///   - downLoses: the same of the down migration.
  public static func lightweight(
    version: Int, _ name: String, description: String? = nil, _ operations: [Operation],
    check: [Assertion] = [], verify: [Assertion] = [], down: [Operation] = [], isIrreversible: Bool = false,
    loses: [String: String] = [:], downLoses: [String: String] = [:],
    file: StaticString = #fileID, line: Int = #line, column: Int = #column
  ) -> PlannedMigration {
    PlannedMigration(
      version: version, name: name, description: description, kind: .lightweight(operations, down: down),
      checks: check, verifications: verify, isIrreversible: isIrreversible, losses: loses,
      downLosses: downLoses, position: YAMLPosition(file, line, column))
  }

  /// A migration in Swift.
  ///
  /// - Parameters:
  ///   - version: the schema version after it: 1 for a plan's first migration, and so on without a gap.
  ///   - name: letters, digits, `_` and `-`.
  ///   - description: one line for reports.
  ///   - revision: what its checksum covers in place of the code, which has none. Raise it with a change of the code that
  ///     containers which have the migration already must not miss: they are then told to be edited.
  ///   - needsVault: whether it opens the vault, so that a missing device key is reported before the run.
  ///   - check: assertions before the change.
  ///   - verify: assertions after the change.
  ///   - isIrreversible: says that the migration cannot be reverted.
  ///   - loses: why values may be lost, by `TABLE` or `TABLE.COLUMN`, setting, vault item or path.
  ///   - downLoses: the same of the down migration.
  ///   - up: the change.
  ///   - down: the down migration.
  public static func custom(
    version: Int, _ name: String, description: String? = nil, revision: Int = 1, needsVault: Bool = false,
    check: [Assertion] = [], verify: [Assertion] = [], isIrreversible: Bool = false,
    loses: [String: String] = [:], downLoses: [String: String] = [:],
    file: StaticString = #fileID, line: Int = #line, column: Int = #column,
    up: @escaping Change, down: Change? = nil
  ) -> PlannedMigration {
    PlannedMigration(
      version: version, name: name, description: description,
      kind: .custom(up: up, down: down, revision: revision, needsVault: needsVault),
      checks: check, verifications: verify, isIrreversible: isIrreversible, losses: loses,
      downLosses: downLoses, position: YAMLPosition(file, line, column))
  }

  /// The migration for the engine.
  ///
  /// - Throws: `DrydockError` with the place in the source file.
  func migration() throws -> Migration {
    guard MigrationName.isName(name) else {
      throw position.error("`\(name)` is not a migration's name: use letters, digits, `_` and `-`")
    }
    let (steps, down): ([MigrationStep], [MigrationStep])
    switch kind {
    case .lightweight(let operations, let back):
      (steps, down) = (
        try operations.map { try $0.step() }, try back.map { try $0.step() }
      )
    case .custom(let up, let back, _, let needsVault):
      let step = { (change: @escaping Change) in
        MigrationStep(
          position: position, name: name,
          operation: CustomStep(name: name, position: position, needsVault: needsVault, change: change))
      }
      (steps, down) = ([step(up)], back.map { [step($0)] } ?? [])
    }
    let body = try MigrationBody(
      summary: description, isIrreversible: isIrreversible,
      losses: Dictionary(losses.map { ($0.lowercased(), $1) }) { first, _ in first },
      downLosses: downLosses, steps: steps, down: down,
      checks: checks.map { try $0.entry.assertion() },
      verifications: verifications.map { try $0.entry.assertion() })
    for (place, reason) in Array(losses) + Array(downLosses) where reason.isEmpty {
      throw position.error("give a reason for `\(place)`")
    }
    if let problem = body.checks.lazy.compactMap(\.problemAsCheck).first { throw problem }
    // The name is part of the checksum.
    let files = MigrationFiles(
      contents: ["stage": Array(fingerprint.utf8)], directory: "", isDirectory: false)
    return try Migration(number: version, name: name, file: position.file, files, body)
  }

  /// What the checksum covers: everything but the places in the code, and the code of closures.
  private var fingerprint: String {
    var lines: [String]
    switch kind {
    case .lightweight(let operations, let down):
      lines = operations.map { "up: \($0.entry.fingerprint)" } + down.map { "down: \($0.entry.fingerprint)" }
    case .custom(_, let down, let revision, _):
      // These words are part of the history's format.
      lines = ["custom, revision \(revision)\(down == nil ? "" : ", with a way back")"]
    }
    lines += checks.map { "check: \($0.entry.fingerprint)" }
    lines += verifications.map { "verify: \($0.entry.fingerprint)" }
    if isIrreversible { lines.append("irreversible") }
    return lines.joined(separator: "\n")
  }
}
