import Drydock

/// A difference as a person reads it: a sign, what, from what to what.
enum DifferenceText {
  static func write(_ difference: ContainerDifference) {
    if difference.isEmpty { return Output.line("  nothing would change") }
    var file: ContainerPath?
    for setting in difference.settings {
      if setting.file != file { Output.line("settings \(setting.file)") }
      file = setting.file
      Output.line("  \(sign(setting.change)) \(setting.key)\(values(setting.before, setting.after))")
    }
    for database in difference.databases { write(database) }
    if !difference.files.isEmpty { Output.line("files") }
    for file in difference.files {
      let kind = file.type == .directory ? "/" : file.type == .symbolicLink ? " (link)" : ""
      let moved = file.movedFrom.map { " (from \($0))" } ?? ""
      Output.line("  \(sign(file.change)) \(file.path)\(kind)\(moved)\(sizes(file))")
    }
  }

  private static func write(_ database: ContainerDifference.Database) {
    let moved = database.movedFrom.map { " (from \($0))" } ?? ""
    let state = database.change == .removed ? ": removed" : moved
    Output.line("database \(database.path)\(state)")
    for object in database.schema {
      Output.line("  \(sign(object.change)) \(object.kind) \(object.name)")
      if object.change == .changed {
        Output.line("      was \(flat(object.before))")
        Output.line("      is  \(flat(object.after))")
      } else if object.change == .added {
        Output.line("      \(flat(object.after))")
      }
    }
    for table in database.tables {
      let counts = [(table.added, "added"), (table.removed, "removed"), (table.changed, "changed")]
      let text = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
      Output.line("  ~ rows of \(table.name): \(text)")
    }
    if database.schema.isEmpty && database.tables.isEmpty && database.change == .changed {
      Output.line("  ~ replaced as a whole")
    }
  }

  private static func sign(_ change: ContainerDifference.Change) -> String {
    switch change {
    case .added: "+"
    case .removed: "-"
    case .changed: "~"
    }
  }

  private static func values(_ before: String?, _ after: String?) -> String {
    switch (before, after) {
    case (let before?, let after?): ": \(before) → \(after)"
    case (nil, let after?): ": \(after)"
    case (let before?, nil): " (was \(before))"
    case (nil, nil): ""
    }
  }

  private static func sizes(_ file: ContainerDifference.File) -> String {
    switch (file.sizeBefore, file.sizeAfter) {
    case (let before?, let after?) where before != after: "  \(Output.size(before)) → \(Output.size(after))"
    case (nil, let after?) where file.type == .file: "  \(Output.size(after))"
    default: ""
    }
  }

  private static func flat(_ sql: String?) -> String {
    (sql ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
}
