import ContainerTransaction
import FileSystem

/// The result of a run of migrations.
public struct MigrationReport: Sendable, Codable, Equatable {
  /// One migration that was run.
  public struct Outcome: Sendable, Codable, Equatable {
    /// The migration's number.
    public var number: Int
    /// Without the number.
    public var name: String
    /// The description by its author.
    public var summary: String?
    /// How long it took.
    public var milliseconds: Int
    /// What was skipped, kept or not checked; each note starts with `file:line:column`.
    public var notes: [String]
    /// The missing databases, when no step did anything because of them; nil otherwise.
    public var missingDatabases: [String]?
  }

  /// A setting that was moved into the vault.
  package struct Moved: Sendable, Codable, Equatable {
    package var file: ContainerPath, key: String
  }

  /// The version before.
  public var from: Int
  /// The version after.
  public var to: Int
  /// The migrations that were run, in order.
  public var migrations: [Outcome]
  /// Numbers of migrations that the app had applied, and that were recorded.
  package var appliedExternally: [Int]
  /// Notes that belong to no migration, such as on a version marker that could not be written.
  public var notes: [String]
  package var moved: [Moved] = []
  /// The app's own number for the version before, where it is another one.
  package var appNumber: Int? = nil

  /// The migrations that were recorded as applied but did nothing, since their database does not exist.
  public var withoutDatabase: [Outcome] { migrations.filter { $0.missingDatabases != nil } }

  /// Whether anything was changed in the container.
  public var changedAnything: Bool { !migrations.isEmpty || !appliedExternally.isEmpty }
}

extension MigrationReport: CustomStringConvertible {
  /// What ran, as `drydock migrate` prints it.
  public var description: String { lines("ran").joined(separator: "\n") }

  /// - Parameter verb: `ran`, or `would run` in a dry run.
  package func lines(_ verb: String) -> [String] {
    guard changedAnything else {
      return ["nothing to do: the container has version \(Self.version(to, app: appNumber))"]
        + notes.map { "  \($0)" }
    }
    var lines = [Self.versions(from: from, to: to, app: appNumber)]
    if !appliedExternally.isEmpty {
      lines.append(
        "  recorded as applied by the app: \(appliedExternally.map(String.init).joined(separator: ", "))")
    }
    for migration in migrations {
      let text = migration.summary.map { ": \($0)" } ?? ""
      lines.append("  \(verb) \(migration.name)\(text) (\(migration.milliseconds) ms)")
      let notes = migration.notes.flatMap { $0.split(separator: "\n", omittingEmptySubsequences: false) }
      lines += notes.map { "      \($0)" }
    }
    return lines + notes.map { "  \($0)" }
  }

  /// Such as `version 0 (the app's 4) → 2`.
  package static func versions(from: Int, to: Int, app: Int? = nil) -> String {
    from == to ? "version \(version(to, app: app))" : "version \(version(from, app: app)) → \(to)"
  }

  /// A version with the app's own number for it.
  package static func version(_ version: Int, app: Int?) -> String {
    app.map { "\(version) (the app's \($0))" } ?? "\(version)"
  }
}
