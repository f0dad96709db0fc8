import ContainerTransaction
import Cryptography
import FileSystem
import Formats
import GRDB

struct ImportColumn: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.import-column",
      "Makes files the values of a column.",
      [
        "database, table, column, where": "as in `files.export-column`",
        "from": "required: a SQL expression that gives the path of a row's file; a row where it is NULL is "
          + "left unchanged",
        "as": "`data` (default), or `text`: the file must be UTF-8",
        "files": "required: what happens to the files: `remove` or `keep`",
        "if-missing": "of the database or of a file",
        "if-exists": "of a value other than NULL and the path",
      ],
      example: OperationExample(
        before: "{sql: \"CREATE TABLE photo (id INTEGER PRIMARY KEY, image); INSERT INTO photo VALUES (1, "
          + "'Library/1.jpg')\", files: {Library/1.jpg: x}}",
        step: "{database: notes, table: photo, column: image, from: image, as: text, files: remove}",
        after: "rows: {SELECT image FROM photo: x}")
    ) { try Self(reading: $0, files: $1) }
  ]

  private enum Form: String, CaseIterable { case data, text }
  private enum Files: String, CaseIterable { case remove, keep }

  private let files: ColumnFiles
  private let form: Form
  /// What happens to the files.
  private let after: Files
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  var effects: StepEffects { StepEffects(writing: .conversion, databases: .none) }
  var kind: StepKind { .column(files) }

  private init(reading reader: YAMLReader, files: MigrationFiles) throws {
    self.files = try ColumnFiles(reading: reader, path: "from", needsValue: false)
    form = try reader.choice("as") ?? .data
    after = try reader.requiredChoice("files")
    (ifMissing, ifExists) = try (reader.ifMissing(), reader.ifExists())
  }

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
