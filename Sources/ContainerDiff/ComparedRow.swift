import AppContainer

/// A row that differs, with the values of all its columns: what differs may be named by what does not.
struct ComparedRow {
  struct Column {
    var name: String
    var before: RowValue?, after: RowValue?
    var isSame = false
  }

  let change: ContainerDifference.Change
  var key: [Column] = []
  var columns: [Column] = []

  /// The row for people: its key, and the columns that differ.
  func shown(_ names: RowNames, _ redactor: Redactor) -> ContainerDifference.Row {
    let values = key.map { ($0, true) } + columns.map { ($0, false) }
    let judged = names.names(
      in: values.flatMap { column, isKey in
        [column.before, column.after].compactMap { value in value.map { (column.name, $0, isKey) } }
      })
    func field(_ column: Column) -> ContainerDifference.Field {
      let name = judged[column.name] ?? .plain
      return .init(
        name: column.name, before: column.before?.shown(name, redactor),
        after: column.after?.shown(name, redactor))
    }
    return .init(
      change: change, key: key.map(field), columns: columns.filter { !$0.isSame }.map(field))
  }
}
