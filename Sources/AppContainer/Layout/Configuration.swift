import AgeEncryption
import FileSystem

/// What `drydock.yaml` says: every key is optional.
package struct Configuration: Sendable, Equatable {
  /// How a container shows its schema version when it has no history.
  package struct VersionMarker: Sendable, Equatable {
    /// Where the number is.
    package enum Place: Sendable, Equatable {
      /// A key of the standard settings.
      case defaults(key: String)
      /// `PRAGMA user_version` of a named database.
      case userVersion(database: String)
      /// A field of a JSON file, by JSON pointer.
      case json(path: ContainerPath, pointer: String)
    }

    /// Where the number is.
    package var place: Place
    /// Where the app's numbers differ: migration number → the app's number.
    package var at: [Int: Int]
    /// The schema version of a container that lacks the number and has no history; nil when its absence says nothing.
    package var absent: Int?

    /// A marker from its parts.
    package init(place: Place, at: [Int: Int] = [:], absent: Int? = nil) {
      self.place = place
      self.at = at
      self.absent = absent
    }
  }

  /// Bundle id or package.
  package var app: String?
  /// Overrides detection.
  package var layout: Layout?
  /// Settings files by suite name; `standard` is the app's own.
  package var defaults: [String: ContainerPath] = [:]
  /// What the app registers as its settings' defaults.
  package var registeredDefaults = RegisteredDefaults()
  /// Databases by name, each with the places it had over the versions, the present one first.
  package var databases: [String: [ContainerPath]] = [:]
  /// All places of them.
  package var databasePaths: Set<ContainerPath> { Set(databases.values.joined()) }
  /// What the SQL functions do that the app defines, by their names.
  package var functions: [String: SQLFunction] = [:]
  /// The file of secrets.
  package var vault: ContainerPath?
  /// The roots of the app's groups by id: absolute, or relative to the container's root.
  package var groups: [String: String] = [:]
  /// How a container without history shows its version.
  package var versionMarkers: [VersionMarker] = []
  /// Patterns of what stays out of a backup.
  package var exclude: PatternList = []
  /// Patterns of what is taken although a rule excludes it.
  package var include: PatternList = []
  /// An Android app's own rules of what stays out of a backup.
  package var android: AndroidConfiguration?
  /// Directories, as absolute paths.
  package var migrations: String?
  /// The other tool whose files the migrations are; nil for Drydock's own.
  package var migrationTool: MigrationTool?
  /// See ``migrations``.
  package var fixtures: String?
  /// See ``migrations``.
  package var repository: String?
  /// To whom new archives are encrypted; empty for archives that everybody can read.
  package var recipients: [AgeRecipient] = []
  /// The file it was read from.
  package var file: String?

  /// A configuration that says nothing.
  package init() {}
}
