/// Values that a step takes from a container for good: from a database, although its tables have as many rows as before, or from
/// other files.
///
/// Rows are followed by their keys. What can be told from the values alone counts: a row that is nowhere any more, different
/// values that became one, a text that was cut, a value that became empty, a number that was rounded, a column whose values
/// are nowhere else. A renamed column, a mapping that keeps values apart, spaces and capitals do not.
struct ValueLoss: Equatable {
  enum Kind: String, CaseIterable {
    case rows, column, gone, fields, emptied, shortened, merged, rounded, replaced

    /// What happened to a number of values.
    ///
    /// - Parameter noun: what a lost thing is.
    func sentence(_ count: Int, _ noun: String) -> String {
      func was(_ one: String, _ many: String) -> String {
        count == 1 ? "1 \(noun) \(one)" : "\(count) \(noun)s \(many)"
      }
      let values = count == 1 ? "1 value" : "\(count) values"
      return switch self {
      case .rows: was("is gone", "are gone")
      case .column: "the column is gone with \(values)"
      case .gone: count == 1 ? "the \(noun) is gone" : "\(count) \(noun)s are gone"
      case .fields: "fields are gone in the documents of \(values)"
      case .emptied: was("became empty", "became empty")
      case .shortened: was("was cut", "were cut")
      case .merged: "different values became \(values)"
      case .rounded: was("was rounded", "were rounded")
      case .replaced:
        was("was replaced", "were replaced") + (noun == "value" ? " by those of another column" : "")
      }
    }
  }

  /// The database or other file.
  var path: ContainerPath
  /// What it is there, as a migration names it: `TABLE`, `TABLE.COLUMN`, a setting, an item; empty for a file.
  var name: String
  /// The table; empty outside of databases.
  var table = ""
  var kind: Kind
  var count: Int
  /// What is counted: `row`, `value`, or what it is outside of databases.
  var noun = "value"
  /// Whether it shows only in what all steps of the migration do.
  var isOfMigration = false

  /// What a migration may name, to give a reason for it.
  var names: [String] {
    if !table.isEmpty { return [name, table] }
    let above = name.indices.filter { ".[".contains(name[$0]) }.map { String(name[..<$0]) }
    return [name] + above + [path.description]
  }
}
