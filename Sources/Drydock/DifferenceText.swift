import AppStores
import ContainerDiff
import DrydockErrors
import FileSystem
import Formats

/// One line of a difference: how something differs, what it is, and its values. Every report shows these lines: as text, or with
/// the values marked.
package struct DifferenceLine: Sendable {
  package enum Part: Sendable {
    case text(String)
    /// Values before and after, as `: "dark" → "light"`, `: "light"` or ` (was "dark")`.
    case values(String?, String?)
    /// The SQL of an object of the schema, which the text shows flat.
    case sql(before: String?, after: String?, text: String)
  }

  /// 0 for a heading, such as `files`; 1 for what is below it, 2 for what is in that.
  package var depth: Int
  package var change: ContainerDifference.Change?
  package var parts: [Part]

  /// The text; a second line only where SQL is before and after.
  package var texts: [String] {
    let sign = change.map { "\(Self.sign($0)) " } ?? ""
    let text = sign + parts.map { $0.text }.joined()
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { Self.indent[depth] + $0 }
  }

  private static let indent = ["", "  ", "      "]

  private static func sign(_ change: ContainerDifference.Change) -> String {
    switch change {
    case .added: "+"
    case .removed: "-"
    case .changed: "~"
    }
  }
}

extension DifferenceLine.Part {
  fileprivate var text: String {
    switch self {
    case .text(let text), .sql(_, _, let text): text
    case .values(let before?, let after?): ": \(before) → \(after)"
    case .values(nil, let after?): ": \(after)"
    case .values(let before?, nil): " (was \(before))"
    case .values(nil, nil): ""
    }
  }
}

extension ContainerDifference {
  /// The difference in lines.
  ///
  /// - Parameter limit: how many lines a section has at most; nil means all.
  package func lines(limit: Int? = nil) -> [DifferenceLine] {
    DifferenceText(self, limit: limit).lines
  }
}

private struct DifferenceText {
  typealias Part = DifferenceLine.Part

  private let limit: Int?
  private(set) var lines: [DifferenceLine] = []

  init(_ difference: ContainerDifference, limit: Int?) {
    self.limit = limit
    var rest = difference.settings[...]
    while let file = rest.first?.file {
      let own = rest.prefix { $0.file == file }
      rest = rest.dropFirst(own.count)
      section(
        "settings \(file)",
        own.map { setting in
          line(
            1, setting.change, plain(setting.key),
            setting.document.map(fields) ?? [values(setting.before, setting.after)])
        })
    }
    for vault in difference.vault { write(vault) }
    for database in difference.databases { write(database) }
    if !difference.files.isEmpty { section("files", difference.files.map(line)) }
  }

  private func line(
    _ depth: Int, _ change: ContainerDifference.Change?, _ name: String, _ parts: [Part] = []
  ) -> DifferenceLine {
    DifferenceLine(depth: depth, change: change, parts: [.text(name)] + parts)
  }

  private mutating func section(_ heading: String, _ texts: [DifferenceLine]) {
    lines.append(line(0, nil, heading))
    add(texts, limit ?? .max, of: texts.count)
  }

  /// The first lines, and how many more there are.
  private mutating func add(_ texts: [DifferenceLine], _ limit: Int, of total: Int) {
    lines += texts.prefix(limit)
    if let more = String.more(total - min(limit, texts.count)) {
      lines.append(line(texts.first?.depth ?? 1, nil, more))
    }
  }

  private mutating func write(_ vault: ContainerDifference.Vault) {
    guard let items = vault.items else {
      let problem = vault.problem.map { "; \(plain($0))" } ?? ""
      return lines.append(line(0, nil, "vault \(vault.path): \(vault.change.rawValue)\(problem)"))
    }
    var texts = items.map(line)
    if let before = vault.recipientsBefore, let after = vault.recipientsAfter {
      let values = [before, after].map { $0.joined(separator: ", ") }
      texts.append(line(1, .changed, "sealed to", [.values(values[0], values[1])]))
    }
    if let before = vault.deviceBefore, let after = vault.deviceAfter {
      texts.append(line(1, .changed, "device", [values(before, after)]))
    }
    let state = vault.change == .changed ? "" : ": \(vault.change.rawValue)"
    section("vault \(vault.path)\(state)", texts)
  }

  private func line(_ item: ContainerDifference.VaultItem) -> DifferenceLine {
    let isValueShown = item.valueBefore != nil || item.valueAfter != nil
    let value: [[Part]] = isValueShown ? [[.text("value"), values(item.valueBefore, item.valueAfter)]] : []
    let attributes = item.attributes.map { [Part.text($0.name), values($0.before, $0.after)] }
    let details = Array((value + attributes).joined(separator: [.text(", ")]))
    return line(1, item.change, item.name, details.isEmpty ? [] : [.text("  ")] + details)
  }

  private mutating func write(_ database: ContainerDifference.Database) {
    let moved = database.movedFrom.map { " (from \($0))" } ?? ""
    let state = database.change == .removed ? ": removed" : moved
    let isNew = database.change == .added && database.movedFrom == nil
    lines.append(line(0, nil, "database \(database.path)\(state)\(isNew ? ": added" : "")"))
    if let problem = database.problem {
      return lines.append(line(1, .changed, "other bytes; \(problem)"))
    }
    for object in database.schema { write(object) }
    for table in database.tables { write(table) }
  }

  private mutating func write(_ object: ContainerDifference.SchemaObject) {
    let isNumber = object.kind == "pragma"
    lines.append(
      line(
        1, object.change, "\(object.kind) \(plain(object.name))",
        isNumber ? [values(object.before, object.after)] : []))
    if isNumber { return }
    for column in object.columns {
      lines.append(
        line(2, column.change, "column \(plain(column.name))", [values(column.before, column.after)]))
    }
    // The columns say most of what a table's SQL would.
    if object.change == .changed, limit == nil || object.columns.isEmpty {
      let text = "was \(flat(object.before))\nis  \(flat(object.after))"
      lines.append(sql(object, text))
    } else if object.change == .added {
      lines.append(sql(object, flat(object.after)))
    }
  }

  private func sql(_ object: ContainerDifference.SchemaObject, _ text: String) -> DifferenceLine {
    DifferenceLine(
      depth: 2, change: nil, parts: [.sql(before: object.before, after: object.after, text: text)])
  }

  private mutating func write(_ table: ContainerDifference.Table) {
    let counts = [(table.added, "added"), (table.removed, "removed"), (table.changed, "changed")]
    let text = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    let heading =
      "\(text.isEmpty ? "columns" : "rows") of \(plain(table.name))\(text.isEmpty ? "" : ": \(text)")"
    lines.append(line(1, .changed, heading))
    lines += table.columns.map(line)
    let rows = table.rows.map { row in
      let key = row.key.map { "\(plain($0.name)) \(plain($0.before ?? $0.after ?? ""))" }
      let columns = row.columns.map { field -> [Part] in
        row.change == .changed
          ? [.text(plain(field.name))] + (field.document.map(fields) ?? [values(field.before, field.after)])
          : [.text("\(plain(field.name)) \(plain(field.before ?? field.after ?? ""))")]
      }
      let details = [.text("  (")] + columns.joined(separator: [.text(", ")]) + [.text(")")]
      return line(2, row.change, key.joined(separator: ", "), columns.isEmpty ? [] : details)
    }
    if rows.isEmpty { return }
    add(rows, .max, of: table.added + table.removed + table.changed)
  }

  /// Such as `~ title: 5 values differ, distinct 5 → 3, longest 20 → 10`.
  private func line(_ column: ContainerDifference.ColumnValues) -> DifferenceLine {
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
    return line(2, column.change, "\(name): \(words.joined(separator: ", "))\(samples)")
  }

  private func line(_ file: ContainerDifference.File) -> DifferenceLine {
    let kind = file.type == .directory ? "/" : file.type == .symbolicLink ? " (link)" : ""
    let moved = file.movedFrom.map { " (from \($0))" } ?? ""
    var aspects = file.aspects.filter { $0 != .content }.map { aspect in
      aspect == .mode ? "mode \(file.modeBefore ?? "?") → \(file.modeAfter ?? "?")" : aspect.rawValue
    }
    if file.protectionBefore != nil || file.protectionAfter != nil {
      aspects.append("protection \(file.protectionBefore ?? "unset") → \(file.protectionAfter ?? "unset")")
    }
    let details = aspects.isEmpty ? "" : "  \(aspects.joined(separator: ", "))"
    let document = file.document.map { [.text("  {")] + fields($0).dropFirst() } ?? []
    return line(1, file.change, "\(file.path)\(kind)\(moved)\(sizes(file))\(details)", document)
  }

  /// What differs inside a document: `: {theme: "dark" → "light", size: 3}`.
  private func fields(_ document: ContainerDifference.DocumentFields) -> [Part] {
    var fields = document.fields.map { [Part.text(plain($0.name)), values($0.before, $0.after)] }
    if let more = String.more(document.more) { fields.append([.text(more)]) }
    return [.text(": {")] + fields.joined(separator: [.text(", ")]) + [.text("}")]
  }

  private func sizes(_ file: ContainerDifference.File) -> String {
    switch (file.sizeBefore, file.sizeAfter) {
    case (let before?, let after?) where before != after:
      "  \(NumberText.size(before)) → \(NumberText.size(after))"
    case (nil, let after?) where file.type == .file: "  \(NumberText.size(after))"
    default: ""
    }
  }

  private func values(_ before: String?, _ after: String?) -> Part {
    .values(before.map(plain), after.map(plain))
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
    isEmpty ? "nothing changes" : (lines().flatMap(\.texts) + [summary]).joined(separator: "\n")
  }
}
