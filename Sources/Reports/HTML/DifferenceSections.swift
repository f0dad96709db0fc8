import Drydock

/// A difference as sections of a page: a table of counts, and a section for each store that differs.
struct DifferenceSections {
  /// So many rows of a table are listed, of each kind, and so many in all tables of a page.
  static let rowLimit = 500
  private static let rowBudget = 5000
  /// So many columns of a row are listed.
  private static let columnLimit = 30
  /// So many objects of a schema are seen at once.
  private static let openObjects = 12

  let difference: ContainerDifference
  let stores: Set<ContainerStore>

  private typealias Change = ContainerDifference.Change

  /// A section for each store that differs.
  var all: [HTMLPage.Section] {
    var sections: [HTMLPage.Section] = []
    if !difference.settings.isEmpty { sections.append(settings) }
    if !difference.vault.isEmpty { sections.append(secrets) }
    if !difference.databases.isEmpty { sections.append(databases) }
    if !difference.files.isEmpty { sections.append(files) }
    return sections
  }

  // MARK: The counts

  private typealias Counts = [Change: Int]

  private static let order: [Change] = [.added, .removed, .changed]

  private static func counts(_ changes: [Change]) -> Counts {
    changes.reduce(into: [:]) { $0[$1, default: 0] += 1 }
  }

  /// The number of changes in each store.
  var overview: HTMLPage.Section {
    let rows = difference.databases.flatMap(\.tables).reduce(into: Counts()) { rows, table in
      rows[.added, default: 0] += table.added
      rows[.removed, default: 0] += table.removed
      rows[.changed, default: 0] += table.changed
    }
    // What is compared by bytes alone counts as one object.
    let schema = difference.databases.flatMap { database in
      database.schema.map(\.change)
        + (database.schema.isEmpty && database.tables.isEmpty ? [database.change] : [])
    }
    let secrets = difference.vault.flatMap { $0.items?.map(\.change) ?? [$0.change] }
    let lines: [(String, String, ContainerStore, Counts)] = [
      ("Settings", "settings", .defaults, Self.counts(difference.settings.map(\.change))),
      ("Secrets", "secrets", .vault, Self.counts(secrets)),
      ("Databases: schema", "databases", .databases, Self.counts(schema)),
      ("Databases: rows", "databases", .databases, rows),
      ("Files", "files", .files, Self.counts(difference.files.map(\.change))),
    ]
    var table = HTMLTable(
      "Number of changes in each store", ["Store", "#Added", "#Removed", "#Changed"],
      lines.map { name, id, store, counts in
        guard stores.contains(store) else {
          return [.header(name)]
            + (0..<3).map { _ in HTMLCell(kind: .number, spans: [.muted("not compared")]) }
        }
        let header =
          counts.values.allSatisfy { $0 == 0 }
          ? HTMLCell.header(name) : HTMLCell(kind: .header, spans: [.plain(name)], target: id)
        return [header] + Self.order.map { .number(counts[$0] ?? 0) }
      })
    table.isNarrow = true
    return HTMLPage.Section(id: "changes", heading: "Changes", blocks: [.table(table)])
  }

  // MARK: Settings and secrets

  private var settings: HTMLPage.Section {
    var blocks: [HTMLBlock] = []
    var rest = difference.settings[...]
    while let file = rest.first?.file {
      let settings = rest.prefix { $0.file == file }
      rest = rest.dropFirst(settings.count)
      blocks.append(.heading(3, [.code(file.description)]))
      blocks.append(
        .table(
          HTMLTable(
            "Settings that differ", ["Change", "Key", "Before", "After"],
            settings.map { setting in
              let (before, after) = Self.values(setting.before, setting.after, setting.document)
              return [
                Self.cell(setting.change), .headerCode(setting.key), HTMLCell(kind: .code, spans: before),
                HTMLCell(kind: .code, spans: after),
              ]
            }, noun: ("setting", "settings"))))
    }
    return HTMLPage.Section(
      id: "settings", heading: "Settings",
      detail: NumberText.count(difference.settings.count, "key"), blocks: blocks)
  }

  private var secrets: HTMLPage.Section {
    var blocks: [HTMLBlock] = [
      .paragraph([.muted("A secret’s value is never shown: its length and a fingerprint are.")])
    ]
    for vault in difference.vault {
      blocks.append(.heading(3, [.code(vault.path.description), .muted(" \(vault.change.rawValue)")]))
      var facts: [(name: String, value: [HTMLSpan])] = []
      if vault.items == nil {
        facts.append(("Items", [.plain(vault.problem ?? "not compared: no key was given")]))
      }
      if let before = vault.recipientsBefore, let after = vault.recipientsAfter {
        facts.append(("Sealed to, before", Self.list(before)))
        facts.append(("Sealed to, after", Self.list(after)))
      }
      if let before = vault.deviceBefore, let after = vault.deviceAfter {
        facts.append(("Device", [.code(before), .plain(" → "), .code(after)]))
      }
      if !facts.isEmpty { blocks.append(.facts(facts)) }
      let items = vault.items ?? []
      if !items.isEmpty {
        blocks.append(
          .table(
            HTMLTable(
              "Secrets that differ", ["Change", "Item", "Class", "Before", "After"], items.map(row),
              noun: ("secret", "secrets"))))
      }
    }
    return HTMLPage.Section(id: "secrets", heading: "Secrets", blocks: blocks)
  }

  private func row(_ item: ContainerDifference.VaultItem) -> [HTMLCell] {
    func lines(_ value: String?, _ side: (ContainerDifference.Field) -> String?) -> HTMLCell {
      let fields =
        [value.map { ("value", $0) }] + item.attributes.map { field in side(field).map { (field.name, $0) } }
      return HTMLCell(
        kind: .code, spans: fields.compactMap { $0 }.map { HTMLSpan(kind: .line, text: "\($0): \($1)") })
    }
    return [
      Self.cell(item.change), .headerCode(item.name), .text(item.class),
      lines(item.valueBefore, \.before), lines(item.valueAfter, \.after),
    ]
  }

  private static func list(_ texts: [String]) -> [HTMLSpan] {
    texts.flatMap { [HTMLSpan.code($0), HTMLSpan(kind: .line, text: "")] }
  }

  // MARK: Databases

  private var databases: HTMLPage.Section {
    var blocks: [HTMLBlock] = []
    var budget = Self.rowBudget
    for database in difference.databases {
      let moved = database.movedFrom.map { ", moved from \($0)" } ?? ""
      let change = database.movedFrom == nil ? database.change : .changed
      blocks.append(.heading(3, [.code(database.path.description), .muted(" \(change.rawValue)\(moved)")]))
      if let problem = database.problem {
        blocks.append(
          .paragraph([.plain("The bytes differ; schema and rows cannot be compared: \(problem)")]))
      }
      blocks += schema(of: database)
      for table in database.tables { blocks += rows(of: table, &budget) }
    }
    return HTMLPage.Section(
      id: "databases", heading: "Databases", detail: NumberText.count(difference.databases.count, "database"),
      blocks: blocks)
  }

  private func schema(of database: ContainerDifference.Database) -> [HTMLBlock] {
    let numbers = database.schema.filter { $0.kind == "pragma" }
    let objects = database.schema.filter { $0.kind != "pragma" }
    var blocks: [HTMLBlock] = []
    if !database.schema.isEmpty { blocks.append(.heading(4, [.plain("Schema")])) }
    if !numbers.isEmpty {
      var table = HTMLTable(
        "Numbers in the database’s header", ["Number", "#Before", "#After"],
        numbers.map { number in
          [.headerCode(number.name)]
            + [number.before, number.after].map { HTMLCell(kind: .number, spans: [.code($0 ?? "")]) }
        })
      table.isNarrow = true
      blocks.append(.table(table))
    }
    for (index, object) in objects.enumerated() {
      let sides = [object.before, object.after].map { SQLLines($0 ?? "").lines }
      let summary: [HTMLSpan] = [
        .plain("\(Self.word(object.change)) \(object.kind) "), .code(object.name),
        .muted(Self.columns(object.columns)),
      ]
      blocks.append(
        .fold(
          summary: summary, isOpen: index < Self.openObjects,
          [.lines(TextComparison.lines(sides[0], sides[1]))]))
    }
    return blocks
  }

  /// Such as `: 1 column added, 2 changed`.
  private static func columns(_ columns: [ContainerDifference.Column]) -> String {
    let counts = counts(columns.map(\.change))
    let parts = order.compactMap { change in counts[change].map { ($0, change.rawValue) } }
    guard let first = parts.first else { return "" }
    let rest = parts.dropFirst().map { ", \($0.0) \($0.1)" }
    return ": \(NumberText.count(first.0, "column")) \(first.1)" + rest.joined()
  }

  private func rows(of table: ContainerDifference.Table, _ budget: inout Int) -> [HTMLBlock] {
    let kinds: [(Change, Int)] = [
      (.changed, table.changed), (.added, table.added), (.removed, table.removed),
    ]
    let counts = kinds.filter { $0.1 > 0 }.map { "\(NumberText.grouped($0.1)) \($0.0.rawValue)" }
    var blocks: [HTMLBlock] = [
      .heading(
        4,
        [
          .plain(counts.isEmpty ? "Columns of " : "Rows of "), .code(table.name),
          .muted(" \(counts.joined(separator: ", "))"),
        ])
    ]
    if !table.columns.isEmpty { blocks.append(.table(columns(of: table))) }
    for (change, total) in kinds where total > 0 {
      let rows = table.rows.filter { $0.change == change }
      let shown = rows.prefix(min(Self.rowLimit, max(0, budget)))
      budget -= shown.count
      if shown.isEmpty {
        let reason = rows.isEmpty ? "nothing identifies a row" : "this page lists enough rows"
        let count = NumberText.count(total, "row")
        blocks.append(.paragraph([.muted("\(count) \(change.rawValue): only counted, since \(reason).")]))
      } else {
        blocks.append(.table(listing(of: Array(shown), change, total)))
      }
    }
    return blocks
  }

  private static func name(of column: ContainerDifference.ColumnValues) -> HTMLCell {
    let trigger = column.trigger.map { [HTMLSpan.muted(" by trigger "), .code($0)] } ?? []
    return HTMLCell(kind: .header, spans: [.code(column.name)] + trigger)
  }

  private func columns(of table: ContainerDifference.Table) -> HTMLTable {
    func sides(
      _ column: ContainerDifference.ColumnValues, _ number: (ContainerDifference.ColumnValues.Figures) -> Int
    )
      -> HTMLCell
    {
      let texts = [column.before, column.after].compactMap { $0.map { NumberText.grouped(number($0)) } }
      return HTMLCell(
        kind: .number,
        spans: [.plain(texts.first == texts.last ? texts.first ?? "" : texts.joined(separator: " → "))])
    }
    var result = HTMLTable(
      "Columns whose values differ",
      ["Change", "Column", "#Values that differ", "#NULL", "#Distinct", "#Longest", "Examples"],
      table.columns.map { column in
        [
          Self.cell(column.change), Self.name(of: column),
          column.changed.map(HTMLCell.number) ?? .text(""),
          sides(column, \.nulls), sides(column, \.distinct), sides(column, \.longest),
          HTMLCell(kind: .code, spans: [.plain(column.samples.joined(separator: ", "))]),
        ]
      })
    result.showsCaption = true
    return result
  }

  private func listing(
    of rows: [ContainerDifference.Row], _ change: Change, _ total: Int
  ) -> HTMLTable {
    let keys = rows.first?.key.map(\.name) ?? []
    var (names, places) = ([String](), [String: Int]())
    for field in rows.flatMap(\.columns) where places[field.name] == nil {
      places[field.name] = names.count
      names.append(field.name)
    }
    let shown = names.prefix(Self.columnLimit)
    let hidden = names.count - shown.count
    let caption =
      "Rows \(change == .changed ? "that differ" : change.rawValue)"
      + (hidden > 0 ? ", without \(NumberText.count(hidden, "column"))" : "")
      + (change == .changed ? "; an empty cell is unchanged" : "")
    let listed = rows.map { row in
      var cells = Array(repeating: HTMLCell(kind: .code), count: shown.count)
      for field in row.columns {
        guard let place = places[field.name], place < cells.count else { continue }
        if change == .changed {
          let (before, after) = Self.values(field.before, field.after, field.document)
          (cells[place].removed, cells[place].added) = (before, after)
        } else {
          cells[place].spans = [.plain(field.before ?? field.after ?? "")]
        }
      }
      return row.key.map { HTMLCell.headerCode($0.before ?? $0.after ?? "") } + cells
    }
    var table = HTMLTable(caption, keys + shown, listed, of: total)
    table.showsCaption = true
    return table
  }

  // MARK: Files

  private var files: HTMLPage.Section {
    let sizes = difference.files.flatMap { [$0.sizeBefore, $0.sizeAfter] }.compactMap { $0 }
    let largest = sizes.max() ?? 0
    let table = HTMLTable(
      "Files that differ", ["Change", "Path", "Size", "Other"],
      difference.files.map { file in
        let kind = file.type == .directory ? "/" : file.type == .symbolicLink ? " (link)" : ""
        var path: [HTMLSpan] = [.code(file.path.description + kind)]
        if let origin = file.movedFrom { path.append(.muted(" from \(origin)")) }
        var aspects = file.aspects.filter { $0 != .content }.map { aspect in
          aspect == .mode ? "mode \(file.modeBefore ?? "?") → \(file.modeAfter ?? "?")" : aspect.rawValue
        }
        if file.protectionBefore != nil || file.protectionAfter != nil {
          aspects.append(
            "protection \(file.protectionBefore ?? "unset") → \(file.protectionAfter ?? "unset")")
        }
        aspects +=
          file.document.map { document in
            document.fields.map { "\($0.name): \($0.before ?? "none") → \($0.after ?? "none")" }
              .lines(of: document.fields.count + document.more)
          } ?? []
        return [
          Self.cell(file.movedFrom == nil ? file.change : .changed), HTMLCell(kind: .header, spans: path),
          size(of: file, largest), .text(aspects.joined(separator: ", ")),
        ]
      }, noun: ("file", "files"))
    return HTMLPage.Section(
      id: "files", heading: "Files", detail: NumberText.count(difference.files.count, "path"),
      blocks: [.table(table)])
  }

  private func size(of file: ContainerDifference.File, _ largest: UInt64) -> HTMLCell {
    guard file.type == .file else { return .text("") }
    var cell = HTMLCell()
    let texts = [file.sizeBefore, file.sizeAfter].map { $0.map(NumberText.size) }
    switch (texts[0], texts[1]) {
    case (let before?, let after?):
      cell.spans = [.plain(before == after ? after : "\(before) → \(after)")]
    case (let size?, nil), (nil, let size?): cell.spans = [.plain(size)]
    case (nil, nil): return cell
    }
    let parts: [(HTMLBar.Kind, UInt64?)] = [(.removed, file.sizeBefore), (.added, file.sizeAfter)]
    cell.bar = HTMLBar(
      parts: parts.compactMap { kind, size in size.map { (kind, $0) } }, largest: largest)
    return cell
  }

  // MARK: Parts

  /// - Parameter document: what differs inside, which is shown instead of the values.
  private static func values(
    _ before: String?, _ after: String?, _ document: ContainerDifference.DocumentFields? = nil
  ) -> ([HTMLSpan], [HTMLSpan]) {
    if let document {
      func side(_ value: (ContainerDifference.Field) -> String?) -> String {
        document.fields.map { "\($0.name): \(value($0) ?? "none")" }
          .lines(of: document.fields.count + document.more).joined(separator: ", ")
      }
      return values(side(\.before), side(\.after))
    }
    return switch (before, after) {
    case (let before?, let after?): TextComparison.values(before, after)
    case (let before?, nil): ([.plain(before)], [.muted("none")])
    case (nil, let after?): ([.muted("none")], [.plain(after)])
    case (nil, nil): ([], [])
    }
  }

  private static func cell(_ change: Change) -> HTMLCell {
    let kind: HTMLCell.Kind =
      switch change {
      case .added: .added
      case .removed: .removed
      case .changed: .changed
      }
    return HTMLCell(kind: kind, spans: [.plain(word(change))])
  }

  /// A sign and a word: not by a colour alone.
  private static func word(_ change: Change) -> String {
    switch change {
    case .added: "+ added"
    case .removed: "− removed"
    case .changed: "~ changed"
    }
  }
}
