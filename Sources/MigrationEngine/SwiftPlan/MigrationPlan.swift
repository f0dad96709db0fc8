import AppContainer
import DrydockErrors

/// An app's migrations in Swift: its versions, and what leads from each to the next.
///
/// ```swift
/// enum NotesPlan: MigrationPlan {
///   static let stages: [MigrationStage] = [
///     .lightweight(
///       version: 1, "rename_settings", [.defaults.rename(["user_name": "username"])]),
///     .custom(version: 2, "split_names") { context in
///       try context.write(database: "notes") { db in … }
///     } down: { context in
///       …
///     },
///   ]
/// }
/// ```
package protocol MigrationPlan: SendableMetatype {
  /// The stages, version 1 first.
  static var stages: [MigrationStage] { get }
}

extension MigrationCatalog {
  /// The migrations of a plan. To the engine they are like those of files.
  ///
  /// - Throws: ``DrydockError`` with code `catalog`, naming the place in the source file where there is one.
  package init(_ plan: any MigrationPlan.Type) throws {
    try self.init(stages: plan.stages, name: String(describing: plan))
  }

  /// The migrations of stages that are no type's.
  ///
  /// - Parameter name: what messages call them.
  /// - Throws: as ``init(_:)``.
  package init(stages: [MigrationStage], name: String = "MigrationPlan") throws {
    let (catalog, problems) = Self.read(stages, name)
    if let problem = problems.first { throw problem }
    self = catalog
  }

  static func read(_ plan: any MigrationPlan.Type) -> (MigrationCatalog, problems: [DrydockError]) {
    read(plan.stages, String(describing: plan))
  }

  /// The migrations of stages, with everything that is wrong in them.
  static func read(_ stages: [MigrationStage], _ name: String) -> (
    MigrationCatalog, problems: [DrydockError]
  ) {
    var (migrations, problems): ([Migration], [DrydockError]) = ([], [])
    for (index, stage) in stages.enumerated() {
      do {
        guard stage.version == index + 1 else {
          throw stage.position.error(
            "the stage `\(stage.name)` has the version \(stage.version) where \(index + 1) is due: stages stand in "
              + "order, from version 1 and without a gap")
        }
        migrations.append(try stage.migration())
      } catch {
        problems.append(DrydockError(reading: error))
      }
    }
    return (MigrationCatalog(directory: name, migrations: migrations), problems)
  }
}
