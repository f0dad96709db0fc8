import AppContainer

/// What a run of migrations did.
public struct MigrationReport: Sendable, Codable, Equatable {
  /// One migration that was run.
  public struct Outcome: Sendable, Codable, Equatable {
    /// Its number.
    public var number: Int
    /// Its name, without the number.
    public var name: String
    /// What it does, in its author's words.
    public var summary: String?
    /// How long it took, in milliseconds.
    public var milliseconds: Int
    /// What was skipped, kept or could not be checked; each starts with `file:line:column`.
    public var notes: [String]
    /// The databases that were not there, when for that reason no step did anything; nil otherwise.
    public var missingDatabases: [String]?
  }

  /// A setting that is in the vault now.
  public struct Moved: Sendable, Codable, Equatable {
    /// The settings file and the key in it.
    public var file: ContainerPath, key: String
  }

  /// The version before.
  public var from: Int
  /// The version now.
  public var to: Int
  /// What was run, in order.
  public var migrations: [Outcome]
  /// Numbers that the app had migrated itself, and that were recorded so.
  public var byTheApp: [Int]
  /// Remarks that belong to no migration, such as a version marker that could not be kept up to date.
  public var notes: [String]

  /// Settings that were moved into the vault.
  public var moved: [Moved] = []

  /// The migrations that count as applied and did nothing, since their database is not in the container.
  public var withoutDatabase: [Outcome] { migrations.filter { $0.missingDatabases != nil } }

  /// Whether anything was changed in the container.
  public var changedAnything: Bool { !migrations.isEmpty || !byTheApp.isEmpty }
}
