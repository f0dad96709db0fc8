import AppStores
import FileSystem

/// The triggers that wrote columns, by table and column.
package typealias TriggeredColumns = [String: [String: String]]

/// What is different between two sides, such as a container as it was and as it will be, over all stores. Secrets
/// are redacted.
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
    /// What differs inside, if both values are documents.
    public var document: DocumentFields?
  }

  /// The fields that differ between two documents, such as keyed archives or JSON; some of many.
  public struct DocumentFields: Sendable, Codable, Equatable {
    /// By key path, such as `profile.theme`.
    public var fields: [Field]
    /// The number of more fields that differ.
    public var more: Int
  }

  /// The file of secrets. Its items can be compared with the device key only.
  public struct Vault: Sendable, Codable, Equatable {
    /// Its path.
    public var path: ContainerPath
    /// How it differs.
    public var change: Change
    /// The items that differ; nil when they could not be compared.
    public var items: [VaultItem]?
    /// The public keys that it is sealed to, before and after, where they differ.
    public var recipientsBefore: [String]?, recipientsAfter: [String]?
    /// The random name of its device, before and after, where they differ.
    public var deviceBefore: String?, deviceAfter: String?
    /// Why the items could not be compared; the bytes differ then.
    public var problem: String?
  }

  /// One secret; never its value.
  public struct VaultItem: Sendable, Codable, Equatable {
    /// Its name, such as `com.example.notes/auth`.
    public var name: String
    /// What kind of secret it is.
    public var `class`: String
    /// How it differs.
    public var change: Change
    /// The attributes that differ; of an added or removed item, all.
    public var attributes: [Field] = []
    /// A short form of the value before and after, where it differs: its length and a fingerprint.
    public var valueBefore: String?, valueAfter: String?
  }

  /// One database.
  public struct Database: Sendable, Codable, Equatable {
    /// Its path.
    public var path: ContainerPath
    /// Where it was before, when it moved.
    public var movedFrom: ContainerPath?
    /// How it differs as a whole.
    public var change: Change
    /// Tables, indexes, views, triggers and numbers of the header whose definition differs.
    public var schema: [SchemaObject] = []
    /// Tables whose rows differ.
    public var tables: [Table] = []
    /// Why schema and rows could not be compared; the bytes differ then.
    public var problem: String?
  }

  /// One object of a schema.
  public struct SchemaObject: Sendable, Codable, Equatable {
    /// `table`, `index`, `view`, `trigger`, or `pragma` for a number in the database's header; and its name.
    public var kind: String, name: String
    /// How it differs.
    public var change: Change
    /// Its SQL, or number, before and after.
    public var before: String?, after: String?
    /// The columns that differ, of a table that both sides have.
    public var columns: [Column] = []
  }

  /// One column of a table, as its type and constraints.
  public struct Column: Sendable, Codable, Equatable {
    /// Its name.
    public var name: String
    /// How it differs.
    public var change: Change
    /// Such as `INTEGER NOT NULL DEFAULT 0`, before and after.
    public var before: String?, after: String?
  }

  /// One table's rows, compared by primary key over the columns that both have.
  public struct Table: Sendable, Codable, Equatable {
    /// The table's name.
    public var name: String
    /// Numbers of rows.
    public var added: Int, removed: Int, changed: Int
    /// The columns whose values differ, and those that only one side has, unless they are empty.
    public var columns: [ColumnValues] = []
    /// Some of these rows, as many of each kind as were asked for.
    public var rows: [Row] = []
  }

  /// The values of one column, over all rows of the table.
  public struct ColumnValues: Sendable, Codable, Equatable {
    /// Numbers about the values of one side.
    public struct Figures: Sendable, Codable, Equatable {
      /// Numbers of NULLs, and of different values besides.
      public var nulls: Int, distinct: Int
      /// Of the longest value: characters of a text or number, bytes of a BLOB.
      public var longest: Int
    }

    /// The column's name.
    public var name: String
    /// Whether one side only has the column.
    public var change: Change
    /// The number of rows that both sides have and that differ in it; nil when one side only has the column.
    public var changed: Int?
    /// Before and after; nil for the side that does not have it.
    public var before: Figures?, after: Figures?
    /// Some values as a person reads them, when one side only has the column.
    public var samples: [String] = []
    /// The trigger that wrote the column, if a migration ran and none of its statements names the column.
    public var trigger: String?
  }

  /// One row.
  public struct Row: Sendable, Codable, Equatable {
    /// How it differs.
    public var change: Change
    /// The columns that identify the row.
    public var key: [Field]
    /// The columns that differ; of an added or removed row, all.
    public var columns: [Field]
  }

  /// One value of a row, as a person reads it: shortened, secrets redacted.
  public struct Field: Sendable, Codable, Equatable {
    /// The column's name.
    public var name: String
    /// The value before and after; nil where there is none.
    public var before: String?, after: String?
    /// What differs inside, if both values are documents.
    public var document: DocumentFields?
  }

  /// One file, link or directory.
  public struct File: Sendable, Codable, Equatable {
    /// What about a path differs.
    public enum Aspect: String, Sendable, Codable {
      case type, content, target, mode, attributes, owner, time
    }

    /// Its path.
    public var path: ContainerPath
    /// Where it was before, when it moved.
    public var movedFrom: ContainerPath?
    /// What it is, or was.
    package var type: FileType
    /// How it differs.
    public var change: Change
    /// What about it differs, when both sides have it.
    public var aspects: [Aspect] = []
    /// Bytes before and after.
    public var sizeBefore: UInt64?, sizeAfter: UInt64?
    /// Permission bits before and after, in octal, where they differ.
    public var modeBefore: String?, modeAfter: String?
    /// What differs inside, if both are documents.
    public var document: DocumentFields?
    /// The class of data protection before and after, where it differs; nil for none.
    public var protectionBefore: String?, protectionAfter: String?
  }

  /// Settings, by file and key.
  public var settings: [Setting] = []
  /// The file of secrets.
  public var vault: [Vault] = []
  /// Databases, by path.
  public var databases: [Database] = []
  /// Everything else, by path.
  public var files: [File] = []

  /// No difference.
  package init() {}

  /// The same with fewer rows listed.
  ///
  /// - Parameter limit: how many rows of a table, of each kind.
  package func listing(rows limit: Int) -> Self {
    var result = self
    for database in result.databases.indices {
      for table in result.databases[database].tables.indices {
        var counts: [Change: Int] = [:]
        result.databases[database].tables[table].rows.removeAll { row in
          counts[row.change, default: 0] += 1
          return counts[row.change, default: 0] > limit
        }
      }
    }
    return result
  }

  /// The same with the triggers of columns, by database.
  package func marking(_ triggers: [ContainerPath: TriggeredColumns]) -> Self {
    var result = self
    for (index, database) in databases.enumerated() {
      guard let columns = triggers[database.path] else { continue }
      for (table, values) in database.tables.enumerated() {
        for column in values.columns.indices {
          result.databases[index].tables[table].columns[column].trigger =
            columns[values.name]?[values.columns[column].name]
        }
      }
    }
    return result
  }

  /// Whether nothing differs.
  public var isEmpty: Bool { settings.isEmpty && vault.isEmpty && databases.isEmpty && files.isEmpty }
}
