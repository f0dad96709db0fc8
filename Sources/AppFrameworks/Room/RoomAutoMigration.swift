import DrydockErrors
import Formats

/// The statements by which Room migrates from one exported schema to the next by itself: those of its `SchemaDiffer` and
/// `AutoMigrationWriter`, in their order.
package struct RoomAutoMigration {
  /// A table that is created anew, filled and renamed.
  private struct Recreated {
    var old: RoomSchema.Table, new: RoomSchema.Table
    /// The old names of columns by the new ones.
    var renamed: [ExactText: ExactText] = [:]
  }

  package private(set) var statements: [String] = []
  /// The tables whose foreign keys Room checks afterwards.
  package private(set) var tablesWithForeignKeys: [ExactText] = []

  private let from: RoomSchema, to: RoomSchema
  private let spec: RoomAutoSpec
  /// In the order in which they were found.
  private var recreated: [Recreated] = []
  private var renamedTables: [(old: ExactText, new: ExactText)] = []
  private var addedColumns: [(table: ExactText, column: RoomSchema.Column)] = []
  private var addedTables: [RoomSchema.Table] = []

  /// - Throws: ``DrydockError`` `catalog` at the spec's position when it does not decide all changes.
  package init(from: RoomSchema, to: RoomSchema, _ spec: RoomAutoSpec) throws {
    (self.from, self.to, self.spec) = (from, to, spec)
    try spec.check(from)
    for table in from.tables { try compare(table) }
    for table in to.tables { try findAdditions(table) }
    for name in spec.deletedColumns.map(\.table) where !isRecreated(name) {
      if let old = from.table(name), let new = newTable(of: old) { try recreate(old, new) }
    }
    write()
  }

  private func isRecreated(_ name: ExactText) -> Bool { recreated.contains { $0.old.name == name } }

  private func newTable(of old: RoomSchema.Table) -> RoomSchema.Table? {
    to.table(spec.renamedTables.first { $0.old == old.name }?.new ?? old.name)
  }

  private mutating func recreate(
    _ old: RoomSchema.Table, _ new: RoomSchema.Table, _ change: (inout Recreated) -> Void = { _ in }
  ) throws {
    if to.table(new.newName) != nil {
      throw spec.position.error(
        "version \(to.version) has a table `\(new.newName.text)`, and Room needs that name for a copy of "
          + "`\(new.name.text)`: rename it")
    }
    renamedTables.removeAll { $0.old == old.name }
    let index = recreated.firstIndex { $0.old.name == old.name } ?? recreated.count
    if index == recreated.count { recreated.append(Recreated(old: old, new: new)) }
    change(&recreated[index])
  }

  // MARK: Finding

  private mutating func compare(_ old: RoomSchema.Table) throws {
    let rename = spec.renamedTables.first { $0.old == old.name }
    guard let new = newTable(of: old) else {
      if let rename {
        throw rename.position.error(
          "version \(to.version) has no table `\(rename.new.text)`, to which `\(old.name.text)` is renamed")
      }
      guard spec.deletedTables.contains(where: { $0.table == old.name }) else {
        throw spec.position.error(
          "the table `\(old.name.text)` is in version \(from.version) and not in \(to.version): say whether it was "
            + "deleted or renamed: `delete-tables: [\(old.name.text)]`, or `rename-tables: {\(old.name.text): NEW}`"
        )
      }
      return
    }
    if rename == nil, let deleted = spec.deletedTables.first(where: { $0.table == old.name }) {
      throw deleted.position.error(
        "`delete-tables` names `\(old.name.text)`, and version \(to.version) has that table")
    }
    if isComplex(old, new) || (rename != nil && old.fullText != nil) {
      try recreate(old, new)
    } else if rename != nil {
      renamedTables.append((old.name, new.name))
    }
    for column in old.columns { try compare(column, of: old, new) }
  }

  private mutating func compare(
    _ column: RoomSchema.Column, of old: RoomSchema.Table, _ new: RoomSchema.Table
  ) throws {
    if let rename = spec.renamedColumns.first(where: { $0.table == old.name && $0.old == column.name }) {
      guard new.column(rename.new) != nil else {
        throw rename.position.error(
          "the table `\(new.name.text)` of version \(to.version) has no column `\(rename.new.text)`, to which "
            + "`\(column.name.text)` is renamed")
      }
      return try recreate(old, new) { $0.renamed[rename.new] = column.name }
    }
    if let match = new.column(column.name) {
      if !match.isSame(as: column), !isRecreated(old.name) { try recreate(old, new) }
      return
    }
    let isDeleted = spec.deletedColumns.contains { $0.table == old.name && $0.column == column.name }
    guard isDeleted else {
      let (table, name) = (old.name.text, column.name.text)
      throw spec.position.error(
        "the column `\(name)` of the table `\(table)` is in version \(from.version) and not in \(to.version): say "
          + "whether it was deleted or renamed: `delete-columns: {\(table): [\(name)]}`, or "
          + "`rename-columns: {\(table): {\(name): NEW}}`")
    }
  }

  /// Whether more differs than columns.
  private func isComplex(_ old: RoomSchema.Table, _ new: RoomSchema.Table) -> Bool {
    if old.primaryKey != new.primaryKey || old.isAutoGenerated != new.isAutoGenerated { return true }
    switch (old.fullText, new.fullText) {
    case (let one?, let other?):
      let isSame =
        old.name == new.name && one.version == other.version && one.options == other.options
        && old.columns.count == new.columns.count
        && old.columns.allSatisfy { new.column($0.name)?.isSame(as: $0) == true }
      return !isSame
    case (nil, nil):
      let keys = (Set(old.foreignKeys), Set(new.foreignKeys))
      let hasSameIndices =
        old.indices.count == new.indices.count
        && old.indices.allSatisfy { index in
          new.indices.contains { $0.name == index.name && $0 == index }
        }
      return keys.0 != keys.1 || !hasSameIndices
        || old.foreignKeys.contains { key in spec.renamedTables.contains { $0.old == key.table } }
    default: return true
    }
  }

  private mutating func findAdditions(_ new: RoomSchema.Table) throws {
    let oldName = spec.renamedTables.first { $0.new == new.name }?.old ?? new.name
    guard let old = from.table(oldName) else { return addedTables.append(new) }
    let renamed = spec.renamedColumns.filter { $0.table == old.name }.map(\.new)
    for column in new.columns where old.column(column.name) == nil && !renamed.contains(column.name) {
      if column.isNotNull, column.defaultValue == nil {
        throw spec.position.error(
          "the new column `\(column.name.text)` of the table `\(new.name.text)` is NOT NULL and has no default: give "
            + "it one (`@ColumnInfo(defaultValue = …)`), and export the schema again")
      }
      if !isRecreated(old.name) { addedColumns.append((new.name, column)) }
    }
  }

  // MARK: Writing

  private mutating func write() {
    statements += from.views.map { "DROP VIEW \($0.name.text)" }
    statements += spec.deletedTables.map { "DROP TABLE `\($0.table.text)`" }
    statements += renamedTables.map { "ALTER TABLE `\($0.old.text)` RENAME TO `\($0.new.text)`" }
    for (table, column) in addedColumns {
      let value = column.defaultValue?.text ?? ""
      statements.append(
        "ALTER TABLE `\(table.text)` ADD COLUMN `\(column.name.text)` \(column.affinity)"
          + (column.isNotNull ? " NOT NULL" : "") + " DEFAULT \(value.isEmpty ? "NULL" : value)")
    }
    for table in addedTables { statements += [table.create()] + table.indices.map(table.create) }
    // Full-text tables come last, since their content tables have their new columns then.
    for change in recreated where change.new.fullText == nil { write(change) }
    for change in recreated where change.new.fullText != nil { write(change) }
    statements += to.views.map(\.create)
  }

  private mutating func write(_ change: Recreated) {
    let (old, new) = (change.old, change.new)
    let columns = new.columns.map(\.name).filter { old.column($0) != nil || change.renamed[$0] != nil }
    func list(_ names: [ExactText]) -> String { names.map { "`\($0.text)`" }.joined(separator: ",") }
    func copy(_ target: ExactText, _ names: [ExactText], _ source: ExactText, _ sources: [ExactText]) {
      statements.append(
        "INSERT INTO `\(target.text)` (\(list(names))) SELECT \(list(sources)) FROM `\(source.text)`")
    }
    if let fullText = new.fullText, !fullText.contentTable.text.isEmpty {
      statements += ["DROP TABLE `\(old.name.text)`", new.create()]
      copy(new.name, columns + ["docid"], fullText.contentTable, columns + ["rowid"])
      return
    }
    statements.append(new.create(as: new.newName))
    copy(new.newName, columns, old.name, columns.map { change.renamed[$0] ?? $0 })
    statements += [
      "DROP TABLE `\(old.name.text)`", "ALTER TABLE `\(new.newName.text)` RENAME TO `\(new.name.text)`",
    ]
    guard new.fullText == nil else { return }
    statements += new.indices.map(new.create)
    if !new.foreignKeys.isEmpty { tablesWithForeignKeys.append(new.name) }
  }
}

extension RoomSchema.Column {
  fileprivate func isSame(as other: RoomSchema.Column) -> Bool {
    isNotNull == other.isNotNull && defaultValue == other.defaultValue && affinity == other.affinity
  }
}

/// What Room asks the author of an auto-migration, and `1_2.auto.yaml` answers: the changes that two schemas leave open.
package struct RoomAutoSpec {
  var renamedTables: [(old: ExactText, new: ExactText, position: YAMLPosition)] = []
  var deletedTables: [(table: ExactText, position: YAMLPosition)] = []
  /// By the tables' old names.
  var renamedColumns: [(table: ExactText, old: ExactText, new: ExactText, position: YAMLPosition)] = []
  var deletedColumns: [(table: ExactText, column: ExactText, position: YAMLPosition)] = []
  /// Where a change that is missing belongs.
  let position: YAMLPosition

  private static let keys = ["rename-tables", "delete-tables", "rename-columns", "delete-columns"]

  /// Reads the file; an empty one decides nothing.
  package init(_ bytes: [UInt8], file: String) throws {
    position = YAMLPosition(file: file, line: 1, column: 1)
    guard let root = try YAMLDocument(bytes, file: file).root else { return }
    let reader = try YAMLReader(root, what: "an auto-migration", keys: Self.keys)
    renamedTables = try Self.renames(reader.pairs("rename-tables"))
    if let node = reader["delete-tables"], !node.isNull {
      deletedTables = try node.elements("`delete-tables`").map {
        (ExactText(try $0.text("a table")), $0.position)
      }
    }
    for pair in try reader.pairs("rename-columns") {
      let table = ExactText(try pair.textKey("a table"))
      if pair.value.isNull { continue }
      renamedColumns += try Self.renames(pair.value.pairs("the columns of a table").pairs).map {
        (table, $0.old, $0.new, $0.position)
      }
    }
    for pair in try reader.pairs("delete-columns") {
      let table = ExactText(try pair.textKey("a table"))
      deletedColumns += try pair.value.elements("the columns of a table").map {
        (table, ExactText(try $0.text("a column")), $0.position)
      }
    }
  }

  private static func renames(
    _ pairs: [YAMLMapping.Pair]
  ) throws -> [(old: ExactText, new: ExactText, position: YAMLPosition)] {
    try pairs.map {
      (ExactText(try $0.textKey("a name")), ExactText(try $0.value.text("the new name")), $0.keyPosition)
    }
  }

  /// - Throws: an error for a table or column that the old schema does not have.
  func check(_ schema: RoomSchema) throws {
    let tables = renamedTables.map { ($0.old, $0.position) } + deletedTables.map { ($0.table, $0.position) }
    let columns =
      renamedColumns.map { ($0.table, $0.old, $0.position) }
      + deletedColumns.map { ($0.table, $0.column, $0.position) }
    for (name, position) in tables + columns.map({ ($0.0, $0.2) }) where schema.table(name) == nil {
      throw position.error("version \(schema.version) has no table `\(name.text)`")
    }
    for (table, name, position) in columns where schema.table(table)?.column(name) == nil {
      throw position.error(
        "the table `\(table.text)` of version \(schema.version) has no column `\(name.text)`")
    }
  }
}
