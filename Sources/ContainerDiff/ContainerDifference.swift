import AppContainer
import FileSystem

/// What is different between two sides, such as a container as it was and as it will be, over all stores. Secrets
/// are redacted.
package struct ContainerDifference: Sendable, Codable, Equatable {
  /// How something differs.
  package enum Change: String, Sendable, Codable {
    case added, removed, changed
  }

  /// One setting, values as a person reads them.
  package struct Setting: Sendable, Codable, Equatable {
    /// The settings file and the key in it.
    package var file: ContainerPath, key: String
    /// How it differs.
    package var change: Change
    /// The value before and after, secrets redacted; nil where there is none.
    package var before: String?, after: String?
  }

  /// The file of secrets. What is in it can be told with the device's key only.
  package struct Vault: Sendable, Codable, Equatable {
    /// Its place.
    package var path: ContainerPath
    /// How it differs.
    package var change: Change
    /// The items that differ; nil when they could not be compared.
    package var items: [VaultItem]?
    /// The public keys that it is sealed to, before and after, where they differ.
    package var recipientsBefore: [String]?, recipientsAfter: [String]?
    /// The random name of its device, before and after, where they differ.
    package var deviceBefore: String?, deviceAfter: String?
    /// Why the items could not be compared; the bytes differ then.
    package var problem: String?
  }

  /// One secret; never its value.
  package struct VaultItem: Sendable, Codable, Equatable {
    /// Its name, such as `com.example.notes/auth`.
    package var name: String
    /// What kind of secret it is.
    package var `class`: String
    /// How it differs.
    package var change: Change
    /// The attributes that differ; of an added or removed item, all.
    package var attributes: [Field] = []
    /// What stands for the value before and after, where it differs: its length and a fingerprint.
    package var valueBefore: String?, valueAfter: String?
  }

  /// One database.
  package struct Database: Sendable, Codable, Equatable {
    /// Its place.
    package var path: ContainerPath
    /// Where it was before, when it moved.
    package var movedFrom: ContainerPath?
    /// How it differs as a whole.
    package var change: Change
    /// Tables, indexes, views, triggers and numbers of the header whose definition differs.
    package var schema: [SchemaObject] = []
    /// Tables whose rows differ.
    package var tables: [Table] = []
    /// Why schema and rows could not be compared; the bytes differ then.
    package var problem: String?
  }

  /// One object of a schema.
  package struct SchemaObject: Sendable, Codable, Equatable {
    /// `table`, `index`, `view`, `trigger`, or `pragma` for a number in the database's header; and its name.
    package var kind: String, name: String
    /// How it differs.
    package var change: Change
    /// Its SQL, or number, before and after.
    package var before: String?, after: String?
    /// The columns that differ, of a table that both sides have.
    package var columns: [Column] = []
  }

  /// One column of a table, as its type and constraints.
  package struct Column: Sendable, Codable, Equatable {
    /// Its name.
    package var name: String
    /// How it differs.
    package var change: Change
    /// Such as `INTEGER NOT NULL DEFAULT 0`, before and after.
    package var before: String?, after: String?
  }

  /// One table's rows, compared by primary key over the columns that both have.
  package struct Table: Sendable, Codable, Equatable {
    /// The table's name.
    package var name: String
    /// Numbers of rows.
    package var added: Int, removed: Int, changed: Int
    /// Some of these rows, as many of each kind as were asked for.
    package var rows: [Row] = []
  }

  /// One row.
  package struct Row: Sendable, Codable, Equatable {
    /// How it differs.
    package var change: Change
    /// The columns that tell which row it is.
    package var key: [Field]
    /// The columns that differ; of an added or removed row, all.
    package var columns: [Field]
  }

  /// One value of a row, as a person reads it: shortened, secrets redacted.
  package struct Field: Sendable, Codable, Equatable {
    /// The column's name.
    package var name: String
    /// The value before and after; nil where there is none.
    package var before: String?, after: String?
  }

  /// One file, link or directory.
  package struct File: Sendable, Codable, Equatable {
    /// What about a path differs.
    package enum Aspect: String, Sendable, Codable {
      case type, content, target, mode, attributes, owner, time
    }

    /// Its place.
    package var path: ContainerPath
    /// Where it was before, when it moved.
    package var movedFrom: ContainerPath?
    /// What it is, or was.
    package var type: FileType
    /// How it differs.
    package var change: Change
    /// What about it differs, when both sides have it.
    package var aspects: [Aspect] = []
    /// Bytes before and after.
    package var sizeBefore: UInt64?, sizeAfter: UInt64?
    /// Permission bits before and after, in octal, where they differ.
    package var modeBefore: String?, modeAfter: String?
  }

  /// Settings, by file and key.
  package var settings: [Setting] = []
  /// The file of secrets.
  package var vault: [Vault] = []
  /// Databases, by path.
  package var databases: [Database] = []
  /// Everything else, by path.
  package var files: [File] = []

  /// No difference.
  package init() {}

  /// Whether nothing differs.
  package var isEmpty: Bool { settings.isEmpty && vault.isEmpty && databases.isEmpty && files.isEmpty }
}
