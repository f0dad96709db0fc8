import ContainerTransaction
import Cryptography
import FileSystem
import Formats
import GRDB

struct ExportColumn: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.export-column",
      "Writes each value of a column, text or data, to a file.",
      Argument([
        "database, table, column":
          "required: a database of `drydock.yaml`, and the column of a table with row IDs",
        "where": "a condition on the rows; rows with NULL in the column are left out",
        "to": "required: a SQL expression over the columns of a row, which gives the path of its file",
      ]) { reader, _ in try ColumnFiles(reading: reader, path: "to", needsValue: true) },
      Argument<Replacement>(
        "replace-with", "what the column has afterwards: `path`, `null`, or `keep` for the value"),
      Argument("if-missing", "of the database or of a value", default: IfMissing.skip),
      Argument("if-exists", "of a file", default: IfExists.fail),
      example: OperationExample(
        before: "sql: CREATE TABLE photo (id INTEGER PRIMARY KEY, image); INSERT INTO photo VALUES (1, 'x')",
        step: "{database: notes, table: photo, column: image, to: \"'Library/' || id || '.jpg'\", "
          + "replace-with: path}",
        after: "{files: {Library/1.jpg: x}, rows: {SELECT image FROM photo: Library/1.jpg}}"),
      make: Self.init)
  ]

  /// What the column has afterwards.
  private enum Replacement: String, CaseIterable, ArgumentValue { case path, null, keep }

  private let files: ColumnFiles
  private let replacement: Replacement
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  var effects: StepEffects { StepEffects(writing: .replacement) }
  var kind: StepKind { .column(files) }

  /// All paths are checked before any file is written.
  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    try files.place.change(on: stage, ifMissing) { db in
      let rows = try files.rows(db, on: stage)
      if rows.isEmpty {
        let what = "no row of \(files.place.table) has a value in \(files.place.column)"
        return [try ifMissing.skipped(what)]
      }
      try check(rows, db)
      var notes = RowNotes()
      for row in rows {
        guard let path = row.path else { continue }
        if try !isThere(row, path, db, stage) {
          let isWritten = try recorded.write(path, on: stage, ifExists) {
            try files.export(row.id, to: path, db, on: stage)
          }
          if !isWritten {
            notes.add(
              "`\(stage.redactor.shown(name: path.description))` exists already: kept, and row \(row.id) too")
            continue
          }
        }
        recorded.rows.append(
          PriorValues.Row(id: row.id, path: path, before: row.content == .data ? .data : .text))
        switch replacement {
        case .path: try files.set(row.id, to: row.text.databaseValue, db)
        case .null: try files.set(row.id, to: .null, db)
        case .keep: break
        }
      }
      return notes.all
    }
  }

  /// - Throws: ``StepFailure`` for a row that cannot become a file, and for two rows with one path.
  private func check(_ rows: [ColumnFiles.Row], _ db: Database) throws {
    let isUTF8 = try String.fetchOne(db, sql: "PRAGMA encoding") == "UTF-8"
    var known: [ContainerPath: Int64] = [:]
    for row in rows {
      if row.content == .other { throw files.failure(row.id, "the value is a number, not text or data") }
      if row.content != .data, !isUTF8 {
        throw files.failure(row.id, "the database stores text as UTF-16: convert the column to data first")
      }
      guard let path = row.path else {
        throw files.failure(row.id, "`to` gives NULL: exclude the row with `where`, or give it a path")
      }
      if let other = known.updateValue(row.id, forKey: path) {
        throw files.failure(row.id, "`to` gives the same path as for row \(other)")
      }
    }
  }

  /// Whether the file has the value already.
  private func isThere(
    _ row: ColumnFiles.Row, _ path: ContainerPath, _ db: Database, _ stage: StagedContainer
  ) throws -> Bool {
    guard try stage.status(of: path)?.type == .file else { return false }
    return try stage.digest(of: path) == files.digest(of: row.id, db)
  }

  /// Puts the present content of the files into the rows that still are as the step left them.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    let recorded = try PriorValues.required(recorded)
    if replacement == .keep { return try recorded.revert(on: stage) }
    if recorded.rows.isEmpty { return [] }
    return try files.place.change(on: stage, .skip) { db in
      var notes = RowNotes()
      for row in recorded.rows {
        let shown = "`\(stage.redactor.shown(name: row.path.description))`"
        let now = try files.value(of: row.id, db)
        let isSame =
          replacement == .null
          ? now?.type == "null" : now?.text.flatMap { try? ContainerPath($0) } == row.path
        guard isSame else {
          notes.add("row \(row.id) was changed since: left unchanged, and \(shown) too")
          continue
        }
        guard try stage.status(of: row.path)?.type == .file else {
          notes.add("\(shown) does not exist: row \(row.id) is left unchanged")
          continue
        }
        try files.load(row.path, into: row.id, asText: row.before == .text, db, on: stage)
        guard let written = recorded.written.first(where: { $0.path == row.path }) else { continue }
        try stage.remove(row.path)
        notes.add(contentsOf: try recorded.restore(written.replaced, on: stage))
      }
      try recorded.removeEmptyDirectories(on: stage)
      return notes.all
    }
  }
}

struct ImportColumn: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.import-column",
      "Makes files the values of a column.",
      Argument([
        "database, table, column, where": "as in `files.export-column`",
        "from": "required: a SQL expression that gives the path of a row's file; a row where it is NULL is "
          + "left unchanged",
      ]) { reader, _ in try ColumnFiles(reading: reader, path: "from", needsValue: false) },
      Argument("as", "`data` (default), or `text`: the file must be UTF-8", default: Form.data),
      Argument<Files>("files", "what happens to the files: `remove` or `keep`"),
      Argument("if-missing", "of the database or of a file", default: IfMissing.skip),
      Argument("if-exists", "of a value other than NULL and the path", default: IfExists.fail),
      example: OperationExample(
        before: "{sql: \"CREATE TABLE photo (id INTEGER PRIMARY KEY, image); INSERT INTO photo VALUES (1, "
          + "'Library/1.jpg')\", files: {Library/1.jpg: x}}",
        step: "{database: notes, table: photo, column: image, from: image, as: text, files: remove}",
        after: "rows: {SELECT image FROM photo: x}"),
      make: Self.init)
  ]

  private enum Form: String, CaseIterable, ArgumentValue { case data, text }
  private enum Files: String, CaseIterable, ArgumentValue { case remove, keep }

  private let files: ColumnFiles
  private let form: Form
  /// What happens to the files.
  private let after: Files
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  var kind: StepKind { .column(files) }
  var effects: StepEffects { StepEffects() }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    try files.place.change(on: stage, ifMissing) { db in
      var notes = RowNotes()
      var imported: Set<ContainerPath> = []
      for row in try files.rows(db, on: stage) {
        guard let path = row.path else { continue }
        let shown = "`\(stage.redactor.shown(name: path.description))`"
        guard try stage.status(of: path) != nil else {
          if ifMissing == .fail { throw files.failure(row.id, "\(shown) is not in the container") }
          notes.add("row \(row.id): \(shown) does not exist: skipped")
          continue
        }
        if row.content != .null, row.content != .path, ifExists != .replace {
          let problem = "the column has a value already"
          if ifExists == .fail {
            throw files.failure(row.id, problem + ": say `if-exists: keep` or `if-exists: replace`")
          }
          notes.add("row \(row.id): \(problem): kept, and \(shown) too")
          continue
        }
        try files.load(path, into: row.id, asText: form == .text, db, on: stage)
        imported.insert(path)
        recorded.rows.append(
          PriorValues.Row(
            id: row.id, path: path, before: row.content, digest: try files.digest(of: row.id, db)))
      }
      for path in after == .remove ? imported.sorted() : [] {
        try recorded.noteRemoved(path, on: stage)
        try stage.remove(path)
      }
      return notes.all
    }
  }

  /// Makes the present values files again.
  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    let recorded = try PriorValues.required(recorded)
    if recorded.rows.isEmpty { return [] }
    return try files.place.change(on: stage, .skip) { db in
      var notes = RowNotes()
      for row in recorded.rows {
        guard row.before == .null || row.before == .path else {
          throw files.failure(
            row.id, "the value that the step replaced is not kept: roll the whole transaction back")
        }
        let shown = "`\(stage.redactor.shown(name: row.path.description))`"
        guard let now = try files.value(of: row.id, db), ["blob", "text"].contains(now.type) else {
          notes.add("row \(row.id) has no value any more: left unchanged, and \(shown) too")
          continue
        }
        let digest = try files.digest(of: row.id, db)
        if try stage.status(of: row.path) == nil {
          if try digest != row.digest || recorded.lost.contains(row.path)
            || stage.kept?.putBack(row.path, on: stage) != true
          {
            try files.export(row.id, to: row.path, db, on: stage)
          }
        } else if try stage.digest(of: row.path) != digest {
          notes.add("\(shown) has another content: kept, and row \(row.id) too")
          continue
        }
        try files.set(
          row.id,
          to: row.before == .path ? String(decoding: row.path.bytes, as: UTF8.self).databaseValue : .null, db)
      }
      return notes.all
    }
  }
}
