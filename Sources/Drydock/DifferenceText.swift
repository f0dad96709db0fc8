import AppStores
import ContainerDiff
import FileSystem
import Formats

/// A difference as a person reads it, in lines: a sign, what, from what to what.
package struct DifferenceText {
  /// How many lines a section has at most; nil means all.
  private let limit: Int?
  package private(set) var lines: [String] = []

  package init(_ difference: ContainerDifference, limit: Int? = nil) {
    self.limit = limit
    var rest = difference.settings[...]
    while let file = rest.first?.file {
      let own = rest.prefix { $0.file == file }
      rest = rest.dropFirst(own.count)
      section(
        "settings \(file)",
        own.map { setting in
          let shown = setting.document.map(fields) ?? values(setting.before, setting.after)
          return "\(sign(setting.change)) \(plain(setting.key))\(shown)"
        })
    }
    for vault in difference.vault { write(vault) }
    for database in difference.databases { write(database) }
    if !difference.files.isEmpty { section("files", difference.files.map(line)) }
  }

  private mutating func section(_ heading: String, _ texts: [String]) {
    lines.append(heading)
    lines += texts.lines(limit ?? .max).map { "  \($0)" }
  }

  private mutating func write(_ vault: ContainerDifference.Vault) {
    guard let items = vault.items else {
      let problem = vault.problem.map { "; \(plain($0))" } ?? ""
      return lines.append("vault \(vault.path): \(vault.change.rawValue)\(problem)")
    }
    var texts = items.map(line)
    if let before = vault.recipientsBefore, let after = vault.recipientsAfter {
      texts.append("~ sealed to: \(before.joined(separator: ", ")) → \(after.joined(separator: ", "))")
    }
    if let before = vault.deviceBefore, let after = vault.deviceAfter {
      texts.append("~ device: \(before) → \(after)")
    }
    let state = vault.change == .changed ? "" : ": \(vault.change.rawValue)"
    section("vault \(vault.path)\(state)", texts)
  }

  private func line(_ item: ContainerDifference.VaultItem) -> String {
    let attributes = item.attributes.map { "\($0.name)\(values($0.before, $0.after))" }
    let isValueTold = item.valueBefore != nil || item.valueAfter != nil
    let value = isValueTold ? ["value\(values(item.valueBefore, item.valueAfter))"] : []
    let details = (value + attributes).joined(separator: ", ")
    return "\(sign(item.change)) \(item.name)\(details.isEmpty ? "" : "  \(details)")"
  }

  private mutating func write(_ database: ContainerDifference.Database) {
    let moved = database.movedFrom.map { " (from \($0))" } ?? ""
    let state = database.change == .removed ? ": removed" : moved
    let isNew = database.change == .added && database.movedFrom == nil
    lines.append("database \(database.path)\(state)\(isNew ? ": added" : "")")
    if let problem = database.problem { return lines.append("  ~ other bytes; \(problem)") }
    for object in database.schema { write(object) }
    for table in database.tables { write(table) }
  }

  private mutating func write(_ object: ContainerDifference.SchemaObject) {
    let heading = "  \(sign(object.change)) \(object.kind) \(plain(object.name))"
    if object.kind == "pragma" { return lines.append(heading + values(object.before, object.after)) }
    lines.append(heading)
    for column in object.columns {
      lines.append(
        "      \(sign(column.change)) column \(plain(column.name))\(values(column.before, column.after))")
    }
    // The columns say most of what a table's SQL would.
    if object.change == .changed, limit == nil || object.columns.isEmpty {
      lines.append("      was \(flat(object.before))")
      lines.append("      is  \(flat(object.after))")
    } else if object.change == .added {
      lines.append("      \(flat(object.after))")
    }
  }

  private mutating func write(_ table: ContainerDifference.Table) {
    let counts = [(table.added, "added"), (table.removed, "removed"), (table.changed, "changed")]
    let text = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    lines.append(
      "  ~ \(text.isEmpty ? "columns" : "rows") of \(plain(table.name))\(text.isEmpty ? "" : ": \(text)")")
    lines += table.columns.map { "      \(line($0))" }
    let rows = table.rows.map { row in
      let key = row.key.map { "\(plain($0.name)) \(plain($0.before ?? $0.after ?? ""))" }
      let columns = row.columns.map { field in
        row.change == .changed
          ? "\(plain(field.name))\(field.document.map(fields) ?? values(field.before, field.after))"
          : "\(plain(field.name)) \(plain(field.before ?? field.after ?? ""))"
      }
      let rest = columns.isEmpty ? "" : "  (\(columns.joined(separator: ", ")))"
      return "\(sign(row.change)) \(key.joined(separator: ", "))\(rest)"
    }
    if rows.isEmpty { return }
    lines += rows.lines(of: table.added + table.removed + table.changed).map { "      \($0)" }
  }

  /// Such as `~ title: 5 values differ, distinct 5 → 3, longest 20 → 10`.
  private func line(_ column: ContainerDifference.ColumnValues) -> String {
    var words = column.changed.map { ["\($0) \($0 == 1 ? "value differs" : "values differ")"] } ?? []
    func add(_ name: String, _ number: (ContainerDifference.ColumnValues.Figures) -> Int) {
      switch (column.before.map(number), column.after.map(number)) {
      case (let before?, let after?) where before != after: words.append("\(name) \(before) → \(after)")
      case (let one?, _), (nil, let one?):
        if one > 0 && name != "longest" || column.changed == nil { words.append("\(name) \(one)") }
      case (nil, nil): break
      }
    }
    add("NULL", \.nulls)
    add("distinct", \.distinct)
    add("longest", \.longest)
    let name = plain(column.name) + (column.trigger.map { " (by trigger \(plain($0)))" } ?? "")
    let samples = column.samples.isEmpty ? "" : ": " + column.samples.map(plain).joined(separator: ", ")
    return "\(sign(column.change)) \(name): \(words.joined(separator: ", "))\(samples)"
  }

  private func line(_ file: ContainerDifference.File) -> String {
    let kind = file.type == .directory ? "/" : file.type == .symbolicLink ? " (link)" : ""
    let moved = file.movedFrom.map { " (from \($0))" } ?? ""
    var told = file.aspects.filter { $0 != .content }.map { aspect in
      aspect == .mode ? "mode \(file.modeBefore ?? "?") → \(file.modeAfter ?? "?")" : aspect.rawValue
    }
    if file.protectionBefore != nil || file.protectionAfter != nil {
      told.append("protection \(file.protectionBefore ?? "unset") → \(file.protectionAfter ?? "unset")")
    }
    let aspects = told.isEmpty ? "" : "  \(told.joined(separator: ", "))"
    let document = file.document.map { "  \(fields($0).dropFirst(2))" } ?? ""
    return "\(sign(file.change)) \(file.path)\(kind)\(moved)\(sizes(file))\(aspects)\(document)"
  }

  /// What differs inside a document: `: {theme: "dark" → "light", size: 3}`.
  private func fields(_ document: ContainerDifference.DocumentFields) -> String {
    let fields = document.fields.map { "\(plain($0.name))\(values($0.before, $0.after))" }
    return ": {" + fields.lines(of: fields.count + document.more).joined(separator: ", ") + "}"
  }

  private func sizes(_ file: ContainerDifference.File) -> String {
    switch (file.sizeBefore, file.sizeAfter) {
    case (let before?, let after?) where before != after:
      "  \(NumberText.size(before)) → \(NumberText.size(after))"
    case (nil, let after?) where file.type == .file: "  \(NumberText.size(after))"
    default: ""
    }
  }

  private func sign(_ change: ContainerDifference.Change) -> String {
    switch change {
    case .added: "+"
    case .removed: "-"
    case .changed: "~"
    }
  }

  private func values(_ before: String?, _ after: String?) -> String {
    switch (before, after) {
    case (let before?, let after?): ": \(plain(before)) → \(plain(after))"
    case (nil, let after?): ": \(plain(after))"
    case (let before?, nil): " (was \(plain(before)))"
    case (nil, nil): ""
    }
  }

  private func flat(_ sql: String?) -> String {
    plain((sql ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " "))
  }

  /// The text on one line; a long one cut, unless all is asked for.
  private func plain(_ text: String) -> String {
    let result = text.replacing("\n", with: "\\n").replacing("\t", with: "\\t").printable
    return limit == nil || result.count <= 300 ? result : "\(result.prefix(300))…"
  }
}

extension ContainerDifference {
  /// The counts, such as `3 settings, 2 tables (412 rows changed, 0 lost), 1 file moved`; empty when nothing differs.
  package var summary: String {
    let tables = databases.flatMap(\.tables)
    func rows(_ number: (Table) -> Int) -> Int { tables.reduce(0) { $0 + number($1) } }
    var changes = [(rows(\.changed), "changed"), (rows(\.added), "added")].filter { $0.0 > 0 }
    changes.append((rows(\.removed), "lost"))
    let counted = changes.enumerated().map { index, change in
      index == 0
        ? "\(NumberText.count(change.0, "row")) \(change.1)" : "\(NumberText.grouped(change.0)) \(change.1)"
    }
    let moved = files.count { $0.movedFrom != nil } + databases.count { $0.movedFrom != nil }
    let counts = [
      (settings.count, "setting", "settings", ""),
      (vault.reduce(0) { $0 + ($1.items?.count ?? 1) }, "secret", "secrets", ""),
      (tables.count, "table", "tables", " (\(counted.joined(separator: ", ")))"),
      (databases.count { $0.tables.isEmpty && $0.movedFrom == nil }, "database", "databases", ""),
      (files.count { $0.movedFrom == nil }, "file", "files", ""), (moved, "file", "files", " moved"),
    ]
    return counts.filter { $0.0 > 0 }.map { NumberText.count($0.0, $0.1, $0.2) + $0.3 }.joined(
      separator: ", ")
  }
}

extension ContainerDifference: CustomStringConvertible {
  /// The difference as the commands print it, with the counts at the end.
  public var description: String {
    isEmpty ? "nothing changes" : (DifferenceText(self).lines + [summary]).joined(separator: "\n")
  }
}
