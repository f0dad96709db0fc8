import AppContainer

/// What is different between a container as it was and as it will be, over its stores. Secrets are redacted.
public struct ContainerDifference: Sendable, Codable, Equatable {
  /// How something differs.
  public enum Change: String, Sendable, Codable {
    case added, removed, changed
  }

  /// One setting, values as a person reads them.
  public struct Setting: Sendable, Codable, Equatable {
    /// The settings file and the key in it.
    public var file: ContainerPath, key: String
    /// How it differs.
    public var change: Change
    /// The value before and after, secrets redacted; nil where there is none.
    public var before: String?, after: String?
  }

  /// One database.
  public struct Database: Sendable, Codable, Equatable {
    /// Its place.
    public var path: ContainerPath
    /// Where it was before, when it moved.
    public var movedFrom: ContainerPath?
    /// How it differs as a whole.
    public var change: Change
    /// Tables, indexes, views and triggers whose definition differs.
    public var schema: [SchemaObject]
    /// Tables whose rows differ.
    public var tables: [Table]
  }

  /// One object of a schema.
  public struct SchemaObject: Sendable, Codable, Equatable {
    /// `table`, `index`, `view` or `trigger`, and its name.
    public var kind: String, name: String
    /// How it differs.
    public var change: Change
    /// Its SQL before and after.
    public var before: String?, after: String?
  }

  /// One table's rows, compared by primary key over the columns that both have.
  public struct Table: Sendable, Codable, Equatable {
    /// The table's name.
    public var name: String
    /// Numbers of rows.
    public var added: Int, removed: Int, changed: Int
  }

  /// One file, link or directory.
  public struct File: Sendable, Codable, Equatable {
    /// Its place.
    public var path: ContainerPath
    /// Where it was before, when it moved.
    public var movedFrom: ContainerPath?
    /// What it is, or was.
    public var type: FileType
    /// How it differs.
    public var change: Change
    /// Bytes before and after.
    public var sizeBefore: UInt64?, sizeAfter: UInt64?
  }

  /// Settings, by file and key.
  public var settings: [Setting] = []
  /// Databases, by path.
  public var databases: [Database] = []
  /// Everything else, by path.
  public var files: [File] = []

  /// No difference.
  public init() {}

  /// Whether nothing differs.
  public var isEmpty: Bool { settings.isEmpty && databases.isEmpty && files.isEmpty }
}
