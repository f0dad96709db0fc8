import Drydock

extension Report {
  /// What a container holds.
  ///
  /// - Parameter pending: the pending migrations; nil when that is not known.
  package init(
    _ inspection: ContainerInspection, pending: [String]?, advised: (String) -> String = { $0 }
  ) {
    let count = NumberText.count(inspection.warnings.count, "warning")
    let isGood = inspection.warnings.isEmpty
    let problem = advised(inspection.versionProblem ?? "unknown")
    self.init(
      kind: "Container", title: inspection.app, verdict: isGood ? .good : .warning,
      word: isGood ? "No warnings" : count,
      sentence: isGood
        ? "nothing in the container looks unintended" : "what may not be intended is listed below")
    if inspection.schemaVersion == nil {
      (verdict, word, sentence) = (.warning, "Version unknown", problem)
    }
    opening = [
      Line("\(inspection.app), instance \(inspection.instance) (\(inspection.layout.rawValue))", depth: 0),
      Line(inspection.root),
    ]
    for group in inspection.groups {
      opening += [
        Line("group \(group.id)\(group.exists ? "" : " (not there)")", depth: 0), Line(group.root),
      ]
    }
    let version = inspection.schemaVersion.map {
      "\(MigrationReport.version($0, app: inspection.appVersion)), by \(inspection.versionSource ?? "nothing")"
    }
    let unknown = problem.replacing("the container's version is unknown", with: "unknown")
    opening.append(Line("schema version: \(version ?? unknown)", depth: 0))
    if let pending {
      let names = pending.isEmpty ? "none" : pending.joined(separator: ", ")
      opening.append(Line("pending migrations: \(names)", depth: 0))
    }
    notices = inspection.warnings.map { Line("\($0)", .warning) }
    let files = "\(NumberText.count(inspection.files, "file")), \(NumberText.size(inspection.fileBytes))"
    sections = [
      Self.settings(inspection), Self.databases(inspection), Self.vault(inspection),
      Section("files", [.lines([Line(files)])]),
      Self.protection(inspection), Self.excluded(inspection),
    ].compactMap { $0 }
  }

  private static func settings(_ inspection: ContainerInspection) -> Section {
    let table = Table(
      "Settings files", ["Path", "Size", "Contents"],
      inspection.settings.map { file in
        let keys =
          file.keys.map { NumberText.count($0, "key") } ?? "cannot be read"
          + (file.problem.map { ": \($0)" } ?? "")
        let suite = file.suite.flatMap { $0 == "standard" ? nil : "suite \($0), " } ?? ""
        return Row([.text(file.path.description), .size(file.bytes), .text(suite + keys)])
      })
    var section = Section("settings", [.table(table)])
    for file in inspection.settings {
      guard let documents = file.documents else { continue }
      let rows = documents.map { Row([.text($0.key), .text($0.value)]) }
      section.blocks += [
        .lines([Line("\(file.path): documents in settings")]),
        .table(Table("Documents in \(file.path)", ["Key", "Document"], rows, depth: 2)),
      ]
    }
    return section
  }

  private static func databases(_ inspection: ContainerInspection) -> Section {
    let table = Table(
      "Databases", ["Path", "Size", "Contents"],
      inspection.databases.map { database in
        let log = database.logBytes > 0 ? ", \(NumberText.size(database.logBytes)) of it in the log" : ""
        let tables = database.tables.map { NumberText.count($0, "table") } ?? "SQLite cannot open it"
        return Row([.text(database.path.description), .size(database.bytes), .text(tables + log)])
      })
    var section = Section("databases", [.table(table)])
    for database in inspection.databases {
      guard let description = database.description else { continue }
      let facts = description.facts.map { Row([.text($0.name), .text($0.value)]) }
      let entities = description.entities.map { entity in
        Row([
          .text("entity \(entity.name)"),
          .text(entity.rows.map { NumberText.count($0, "row") } ?? "no table"),
          .text(entity.parent.map { "inherits from \($0)" } ?? ""),
        ])
      }
      section.blocks += [
        .lines([Line("\(database.path): \(description.summary)")]),
        .table(Table("About \(database.path)", ["Name", "Value"], facts, depth: 2)),
        .table(Table("Entities of \(database.path)", ["Entity", "Rows", "Parent"], entities, depth: 2)),
      ]
    }
    return section
  }

  private static func vault(_ inspection: ContainerInspection) -> Section? {
    guard let vault = inspection.vault else { return nil }
    let items = inspection.vaultItems.map { [NumberText.count($0.count, "item")] } ?? []
    let details =
      [NumberText.size(inspection.vaultBytes ?? 0)] + items + [inspection.vaultEncryption].compactMap { $0 }
    let problem = inspection.vaultProblem.map { [Line("cannot be opened: \($0)", depth: 2)] } ?? []
    return Section(
      "vault",
      [
        .lines([Line("\(vault)  \(details.joined(separator: ", "))")] + problem),
        .list(
          inspection.vaultItems?.map { Line($0, depth: 2) } ?? [], shown: 20,
          hint: "; `drydock vault list` shows all"),
      ])
  }

  private static func protection(_ inspection: ContainerInspection) -> Section? {
    inspection.protection.map { classes in
      let rows = classes.map { Row([.text($0.class), .text(NumberText.count($0.files, "file"))]) }
      return Section("protection classes", [.table(Table("Protection classes", ["Class", "Files"], rows))])
    }
  }

  private static func excluded(_ inspection: ContainerInspection) -> Section {
    let rows = inspection.excluded.map { item in
      Row([
        .text(item.path.description),
        .words("\(NumberText.count(item.files, "file")), \(NumberText.size(item.bytes))"),
        .text(item.rule.description),
      ])
    }
    let table = Table("Paths that a backup leaves out", ["Path", "Size", "Rule"], rows)
    return Section("excluded from backups", [.table(table)])
  }
}
