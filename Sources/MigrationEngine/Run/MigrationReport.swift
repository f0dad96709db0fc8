import FileSystem

/// What a run of migrations did.
package struct MigrationReport: Sendable, Codable, Equatable {
  /// One migration that was run.
  package struct Outcome: Sendable, Codable, Equatable {
    /// Its number.
    package var number: Int
    /// Its name, without the number.
    package var name: String
    /// What it does, in its author's words.
    package var summary: String?
    /// How long it took, in milliseconds.
    package var milliseconds: Int
    /// What was skipped, kept or could not be checked; each starts with `file:line:column`.
    package var notes: [String]
    /// The databases that were not there, when for that reason no step did anything; nil otherwise.
    package var missingDatabases: [String]?
  }

  /// A setting that is in the vault now.
  package struct Moved: Sendable, Codable, Equatable {
    /// The settings file and the key in it.
    package var file: ContainerPath, key: String
  }

  /// The version before.
  package var from: Int
  /// The version now.
  package var to: Int
  /// What was run, in order.
  package var migrations: [Outcome]
  /// Numbers that the app had migrated itself, and that were recorded so.
  package var byTheApp: [Int]
  /// Remarks that belong to no migration, such as a version marker that could not be kept up to date.
  package var notes: [String]

  /// Settings that were moved into the vault.
  package var moved: [Moved] = []

  /// The migrations that count as applied and did nothing, since their database is not in the container.
  package var withoutDatabase: [Outcome] { migrations.filter { $0.missingDatabases != nil } }

  /// Whether anything was changed in the container.
  package var changedAnything: Bool { !migrations.isEmpty || !byTheApp.isEmpty }
}
