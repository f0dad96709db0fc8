import Drydock
import DrydockTesting

/// A difference as a person reads it: a sign, what, from what to what.
struct DifferenceText {
  /// How many lines a section has at most; nil means all.
  var limit: Int?

  /// What a dry run would change, in full.
  static func write(_ difference: ContainerDifference) {
    if difference.isEmpty { return Output.difference("  nothing would change") }
    DifferenceText().write(difference)
  }

  func write(_ difference: ContainerDifference) {
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

  private func section(_ heading: String, _ lines: [String]) {
    Output.difference(heading)
    let shown = limit.map { min($0, lines.count) } ?? lines.count
    for line in lines.prefix(shown) { Output.difference("  \(line)") }
    if shown < lines.count { Output.difference("  … and \(lines.count - shown) more") }
  }

  private func write(_ vault: ContainerDifference.Vault) {
    guard let items = vault.items else {
      let problem = vault.problem.map { "; \(plain($0))" } ?? ""
      return Output.difference("vault \(vault.path): \(vault.change.rawValue)\(problem)")
    }
    var lines = items.map(line)
    if let before = vault.recipientsBefore, let after = vault.recipientsAfter {
      lines.append("~ sealed to: \(before.joined(separator: ", ")) → \(after.joined(separator: ", "))")
    }
    if let before = vault.deviceBefore, let after = vault.deviceAfter {
      lines.append("~ device: \(before) → \(after)")
    }
    let state = vault.change == .changed ? "" : ": \(vault.change.rawValue)"
    section("vault \(vault.path)\(state)", lines)
  }

  private func line(_ item: ContainerDifference.VaultItem) -> String {
    let attributes = item.attributes.map { "\($0.name)\(values($0.before, $0.after))" }
    let isValueTold = item.valueBefore != nil || item.valueAfter != nil
    let value = isValueTold ? ["value\(values(item.valueBefore, item.valueAfter))"] : []
    let details = (value + attributes).joined(separator: ", ")
    return "\(sign(item.change)) \(item.name)\(details.isEmpty ? "" : "  \(details)")"
  }

  private func write(_ database: ContainerDifference.Database) {
    let moved = database.movedFrom.map { " (from \($0))" } ?? ""
    let state = database.change == .removed ? ": removed" : moved
    let isNew = database.change == .added && database.movedFrom == nil
    Output.difference("database \(database.path)\(state)\(isNew ? ": added" : "")")
    if let problem = database.problem { return Output.difference("  ~ other bytes; \(problem)") }
    for object in database.schema { write(object) }
    for table in database.tables { write(table) }
  }

  private func write(_ object: ContainerDifference.SchemaObject) {
    let heading = "  \(sign(object.change)) \(object.kind) \(plain(object.name))"
    if object.kind == "pragma" { return Output.difference(heading + values(object.before, object.after)) }
    Output.difference(heading)
    for column in object.columns {
      Output.difference(
        "      \(sign(column.change)) column \(plain(column.name))\(values(column.before, column.after))")
    }
    // The columns say most of what a table's SQL would.
    if object.change == .changed, limit == nil || object.columns.isEmpty {
      Output.difference("      was \(flat(object.before))")
      Output.difference("      is  \(flat(object.after))")
    } else if object.change == .added {
      Output.difference("      \(flat(object.after))")
    }
  }

  private func write(_ table: ContainerDifference.Table) {
    let counts = [(table.added, "added"), (table.removed, "removed"), (table.changed, "changed")]
    let text = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    Output.difference("  ~ rows of \(plain(table.name)): \(text)")
    for row in table.rows {
      let key = row.key.map { "\(plain($0.name)) \(plain($0.before ?? $0.after ?? ""))" }
      let columns = row.columns.map { field in
        row.change == .changed
          ? "\(plain(field.name))\(field.document.map(fields) ?? values(field.before, field.after))"
          : "\(plain(field.name)) \(plain(field.before ?? field.after ?? ""))"
      }
      let rest = columns.isEmpty ? "" : "  (\(columns.joined(separator: ", ")))"
      Output.difference("      \(sign(row.change)) \(key.joined(separator: ", "))\(rest)")
    }
    let more = table.added + table.removed + table.changed - table.rows.count
    if !table.rows.isEmpty && more > 0 { Output.difference("      … and \(more) more") }
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
    let more = document.more > 0 ? ["… and \(document.more) more"] : []
    return ": {" + (fields + more).joined(separator: ", ") + "}"
  }

  private func sizes(_ file: ContainerDifference.File) -> String {
    switch (file.sizeBefore, file.sizeAfter) {
    case (let before?, let after?) where before != after: "  \(Output.size(before)) → \(Output.size(after))"
    case (nil, let after?) where file.type == .file: "  \(Output.size(after))"
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
