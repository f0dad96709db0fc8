import AgeEncryption

/// What `drydock.yaml` says: every key is optional.
public struct Configuration: Sendable, Equatable {
  /// How a container shows its schema version when it has no history.
  public struct VersionMarker: Sendable, Equatable {
    /// Where the number is.
    public enum Place: Sendable, Equatable {
      /// A key of the standard settings.
      case defaults(key: String)
      /// `PRAGMA user_version` of a named database.
      case userVersion(database: String)
      /// A field of a JSON file, by JSON pointer.
      case json(path: ContainerPath, pointer: String)
    }

    /// Where the number is.
    public var place: Place
    /// Where the app's numbers differ: migration number → the app's number.
    public var at: [Int: Int]
    /// The schema version of a container that lacks the number and has no history; nil when its absence says nothing.
    public var absent: Int?

    /// A marker from its parts.
    public init(place: Place, at: [Int: Int] = [:], absent: Int? = nil) {
      self.place = place
      self.at = at
      self.absent = absent
    }
  }

  /// Bundle id or package.
  public var app: String?
  /// Overrides detection.
  public var layout: Layout?
  /// Settings files by suite name; `standard` is the app's own.
  public var defaults: [String: ContainerPath] = [:]
  /// What the app registers as its settings' defaults.
  public var registeredDefaults = RegisteredDefaults()
  /// Databases by name, each with the places it had over the versions, the present one first.
  public var databases: [String: [ContainerPath]] = [:]
  /// All places of them.
  public var databasePaths: Set<ContainerPath> { Set(databases.values.joined()) }
  /// What the SQL functions do that the app defines, by their names.
  public var functions: [String: SQLFunction] = [:]
  /// The file of secrets.
  public var vault: ContainerPath?
  /// The roots of the app's groups by id: absolute, or relative to the container's root.
  public var groups: [String: String] = [:]
  /// How a container without history shows its version.
  public var versionMarkers: [VersionMarker] = []
  /// Patterns of what stays out of a backup.
  public var exclude: PatternList = []
  /// Patterns of what is taken although a rule excludes it.
  public var include: PatternList = []
  /// An Android app's own rules of what stays out of a backup.
  public var android: AndroidConfiguration?
  /// Directories, as absolute paths.
  public var migrations: String?
  /// The other tool whose files the migrations are; nil for Drydock's own.
  public var migrationTool: MigrationTool?
  /// See ``migrations``.
  public var fixtures: String?
  /// See ``migrations``.
  public var repository: String?
  /// To whom new archives are encrypted; empty for archives that everybody can read.
  public var recipients: [AgeRecipient] = []
  /// The file it was read from.
  public var file: String?

  /// A configuration that says nothing.
  public init() {}
}
