import ContainerDiff
import FileSystem

extension GoldenComparison {
  /// Findings about one database: its schema and its rows.
  func database(_ database: ContainerDifference.Database, _ lines: GoldenPlaces) -> [FixtureFinding] {
    let path = database.path
    let place = GoldenText.text(path)
    switch database.change {
    case .removed:
      return [FixtureFinding(.golden, "the database is absent", place: place).at(lines.path(path))]
    case .added:
      return [
        FixtureFinding(.golden, "the database exists, expected none", place: place).at(lines.path(path))
      ]
    case .changed: break
    }
    if let problem = database.problem {
      return [
        FixtureFinding(
          .golden, "the database has other bytes, and cannot be compared: \(problem)", place: place
        )
        .at(lines.path(path))
      ]
    }
    let schema = database.schema.filter { !isReordered($0) }.flatMap { object in
      self.schema(object, place).map { $0.at(lines.object(object.kind, object.name, of: path)) }
    }
    return schema + database.tables.flatMap { table($0, path, lines) }
  }

  private func schema(_ object: ContainerDifference.SchemaObject, _ database: String) -> [FixtureFinding] {
    let isNumber = object.kind == "pragma"
    let place = "\(database): \(isNumber ? "" : object.kind + " ")\(object.name)"
    func finding(_ message: String, _ place: String = place) -> FixtureFinding {
      FixtureFinding(.golden, message, place: place)
    }
    switch object.change {
    case .removed: return [finding("the \(object.kind) is absent").with(object.before, nil)]
    case .added: return [finding("the \(object.kind) exists, expected none").with(nil, object.after)]
    case .changed: break
    }
    let columns = object.columns.map { column in
      let place = "\(place), column \(column.name)"
      let message =
        switch column.change {
        case .removed: "the column is absent"
        case .added: "the column exists, expected none"
        case .changed: "the column is declared otherwise"
        }
      return finding(message, place).with(column.before, column.after)
    }
    if !columns.isEmpty { return columns }
    let message = isNumber ? "the number is another one" : "the \(object.kind) is declared otherwise"
    return [finding(message).with(object.before, object.after)]
  }

  private func table(
    _ table: ContainerDifference.Table, _ path: ContainerPath, _ lines: GoldenPlaces
  ) -> [FixtureFinding] {
    let place = "\(GoldenText.text(path)): \(table.name)"
    var findings = table.rows.flatMap { row in
      self.row(row, place).map { $0.at(lines.row(row, of: table.name, in: path)) }
    }
    // Rows beyond the limit, and those that nothing tells from each other.
    let kinds: [(ContainerDifference.Change, Int, String)] = [
      (.removed, table.removed, "absent"), (.changed, table.changed, "other ones"),
      (.added, table.added, "too many"),
    ]
    for (change, count, words) in kinds {
      let told = table.rows.count { $0.change == change }
      guard count > told else { continue }
      let number = count - told
      let rows = "\(number) \(told > 0 ? "further " : "")\(number == 1 ? "row is" : "rows are")"
      findings.append(
        FixtureFinding(.golden, "\(rows) \(words)", place: place).at(
          lines.object("table", table.name, of: path)))
    }
    return findings
  }

  private func row(_ row: ContainerDifference.Row, _ table: String) -> [FixtureFinding] {
    let key = row.key.map { "\($0.name) \($0.before ?? $0.after ?? "")" }.joined(separator: ", ")
    let place = "\(table), \(key)"
    func text(_ value: (ContainerDifference.Field) -> String?) -> String {
      let columns = row.columns.compactMap { field in value(field).map { "\(field.name) \($0)" } }
      return columns.isEmpty ? "the row" : columns.joined(separator: ", ")
    }
    switch row.change {
    case .removed:
      return [FixtureFinding(.golden, "the row is absent", place: place).with(text(\.before), nil)]
    case .added:
      return [FixtureFinding(.golden, "the row exists, expected none", place: place).with(nil, text(\.after))]
    case .changed:
      return row.columns.map { field in
        FixtureFinding(.golden, "the column has another value", place: "\(place): \(field.name)")
          .with(field.before, field.after)
      }
    }
  }
}
