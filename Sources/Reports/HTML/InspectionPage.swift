import Drydock

extension HTMLPage {
  /// The page of a container's contents.
  ///
  /// - Parameters:
  ///   - pending: the pending migrations; nil when that is not known.
  ///   - problem: why the schema version is not known, with advice.
  package init(_ inspection: ContainerInspection, pending: [String]?, problem: String?) {
    let warnings = inspection.warnings.map(\.description)
    let count = NumberText.count(warnings.count, "warning")
    self.init(
      kind: "Container", title: inspection.app, verdict: warnings.isEmpty ? .good : .warning,
      word: warnings.isEmpty ? "No warnings" : count,
      sentence: warnings.isEmpty
        ? "Nothing in the container looks unintended." : "What may not be intended is listed below.")
    if inspection.schemaVersion == nil {
      (verdict, word) = (.warning, "Version unknown")
      sentence = problem ?? "No marker or history shows the schema version."
    }
    facts = [
      ("Instance", [.plain(inspection.instance)]), ("Layout", [.plain(inspection.layout.rawValue)]),
      ("Directory", [.code(inspection.root)]),
    ]
    if let version = inspection.schemaVersion {
      let text = MigrationReport.version(version, app: inspection.appVersion)
      facts.insert(
        ("Schema version", [.plain("\(text), by \(inspection.versionSource ?? "nothing")")]), at: 0)
    }
    for group in inspection.groups {
      let missing = group.exists ? [] : [HTMLSpan.muted(" does not exist")]
      facts.append(("Group", [.plain(group.id), .plain(" "), .code(group.root)] + missing))
    }
    if let protection = inspection.protection {
      let counts = protection.map { "\($0.class): \(NumberText.count($0.files, "file"))" }
      facts.append(("Protection classes", [.plain(counts.joined(separator: ", "))]))
    }
    if let pending {
      facts.append(
        ("Pending migrations", [.plain(pending.isEmpty ? "none" : pending.joined(separator: ", "))]))
    }
    sections = InspectionSections(inspection: inspection).all
    if !warnings.isEmpty {
      sections.insert(
        Section(
          id: "warnings", heading: "Warnings", detail: NumberText.grouped(warnings.count),
          blocks: [
            .table(
              HTMLTable(
                "What may not be intended", ["Place", "Warning"],
                inspection.warnings.map {
                  [.headerCode($0.path?.description ?? "–"), .prose($0.message)]
                }, noun: ("warning", "warnings")))
          ]), at: 0)
    }
  }
}

/// What a container holds as sections of a page.
private struct InspectionSections {
  let inspection: ContainerInspection

  var all: [HTMLPage.Section] { [overview, settings, databases, secrets, excluded].compactMap { $0 } }

  private static func sum(_ sizes: [UInt64]) -> UInt64 { sizes.reduce(0, +) }

  private static func size(_ bytes: UInt64, of largest: UInt64) -> HTMLCell {
    var cell = HTMLCell.text(NumberText.size(bytes))
    cell.bar = HTMLBar(parts: [(.plain, bytes)], largest: largest)
    return cell
  }

  private var overview: HTMLPage.Section {
    let stores: [(String, String?, Int, UInt64)] = [
      ("Settings", "settings", inspection.settings.count, Self.sum(inspection.settings.map(\.bytes))),
      ("Databases", "databases", inspection.databases.count, Self.sum(inspection.databases.map(\.bytes))),
      ("Secrets", "secrets", inspection.vault == nil ? 0 : 1, inspection.vaultBytes ?? 0),
      ("Other files", nil, inspection.files, inspection.fileBytes),
      (
        "Excluded from backups", "excluded", inspection.excluded.reduce(0) { $0 + $1.files },
        Self.sum(inspection.excluded.map(\.bytes))
      ),
    ]
    let largest = stores.map(\.3).max() ?? 0
    let table = HTMLTable(
      "Files and sizes of each store", ["Store", "#Files", "Size"],
      stores.map { name, id, count, bytes in
        [
          HTMLCell(kind: .header, spans: [.plain(name)], target: count == 0 ? nil : id), .number(count),
          Self.size(bytes, of: largest),
        ]
      })
    return HTMLPage.Section(id: "contents", heading: "Contents", blocks: [.table(table)])
  }

  private var settings: HTMLPage.Section? {
    if inspection.settings.isEmpty { return nil }
    let largest = inspection.settings.map(\.bytes).max() ?? 0
    let table = HTMLTable(
      "Settings files", ["Path", "#Keys", "Size"],
      inspection.settings.map { file in
        let keys =
          file.keys.map(HTMLCell.number) ?? .text("cannot be read: \(file.problem ?? "unknown form")")
        return [.headerCode(file.path.description), keys, Self.size(file.bytes, of: largest)]
      }, noun: ("file", "files"))
    let documents = inspection.settings.flatMap { file in
      (file.documents ?? []).map {
        [HTMLCell.headerCode(file.path.description), .code($0.key), .code($0.value)]
      }
    }
    let listed = HTMLTable(
      "Documents in settings", ["Path", "Key", "Document"], documents, noun: ("document", "documents"))
    return HTMLPage.Section(
      id: "settings", heading: "Settings",
      blocks: [.table(table)] + (documents.isEmpty ? [] : [.table(listed)]))
  }

  private var databases: HTMLPage.Section? {
    if inspection.databases.isEmpty { return nil }
    let largest = inspection.databases.map(\.bytes).max() ?? 0
    let table = HTMLTable(
      "Databases with their write-ahead logs", ["Path", "#Tables", "#Log", "Size"],
      inspection.databases.map { database in
        [
          .headerCode(database.path.description),
          database.tables.map(HTMLCell.number) ?? .text("SQLite cannot open it"),
          HTMLCell(kind: .number, spans: [.plain(NumberText.size(database.logBytes))]),
          Self.size(database.bytes, of: largest),
        ]
      }, noun: ("database", "databases"))
    let descriptions = inspection.databases.flatMap(blocks(of:))
    return HTMLPage.Section(id: "databases", heading: "Databases", blocks: [.table(table)] + descriptions)
  }

  /// What a framework stores in a database.
  private func blocks(of database: ContainerInspection.Database) -> [HTMLBlock] {
    guard let description = database.description else { return [] }
    var facts: [(name: String, value: [HTMLSpan])] = [
      ("Database", [.code(database.path.description)]), ("Kind", [.plain(description.summary)]),
    ]
    facts += description.facts.map { ($0.name, [.plain($0.value)]) }
    let entities = HTMLTable(
      "Entities of \(database.path)", ["Entity", "#Rows", "Inherits from"],
      description.entities.map { entity in
        [
          .headerCode(entity.name), entity.rows.map(HTMLCell.number) ?? .text("no table"),
          .code(entity.parent ?? ""),
        ]
      }, noun: ("entity", "entities"))
    return [.facts(facts)] + (description.entities.isEmpty ? [] : [.table(entities)])
  }

  private var secrets: HTMLPage.Section? {
    guard let vault = inspection.vault else { return nil }
    var facts: [(name: String, value: [HTMLSpan])] = [
      ("File", [.code(vault.description)]), ("Size", [.plain(NumberText.size(inspection.vaultBytes ?? 0))]),
    ]
    if let encryption = inspection.vaultEncryption { facts.append(("Encryption", [.plain(encryption)])) }
    if let problem = inspection.vaultProblem {
      facts.append(("Problem", [.plain("cannot be opened: \(problem)")]))
    }
    var blocks: [HTMLBlock] = [.facts(facts)]
    if let items = inspection.vaultItems {
      blocks.append(
        .table(
          HTMLTable(
            "Items by name; their values are not shown", ["Item"], items.map { [.headerCode($0)] },
            noun: ("item", "items"))))
    }
    return HTMLPage.Section(id: "secrets", heading: "Secrets", blocks: blocks)
  }

  private var excluded: HTMLPage.Section? {
    if inspection.excluded.isEmpty { return nil }
    let largest = inspection.excluded.map(\.diskBytes).max() ?? 0
    let table = HTMLTable(
      "Paths that a backup leaves out, largest first", ["Path", "Rule", "#Files", "On disk"],
      inspection.excluded.sorted { $0.diskBytes > $1.diskBytes }.map { item in
        [
          .headerCode(item.path.description), .text(item.rule.description), .number(item.files),
          Self.size(item.diskBytes, of: largest),
        ]
      }, noun: ("path", "paths"))
    return HTMLPage.Section(id: "excluded", heading: "Excluded from backups", blocks: [.table(table)])
  }
}
