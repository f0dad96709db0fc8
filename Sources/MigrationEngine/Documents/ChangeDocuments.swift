import ContainerTransaction
import Cryptography
import FileSystem
import Formats

struct ChangeDocuments: MigrationOperation {
  static let kinds = [
    OperationKind(
      "defaults.patch",
      "Changes parts of a setting that is a dictionary or an array, or a JSON document or property list stored as text or data.",
      Argument<String>("key", "the setting"),
      Argument<DocumentPatch>("patch", "a list of JSON Patch steps (RFC 6902)"), IfMissing.argument,
      DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {editor: {fontName: Menlo, size: 12}}",
        step: "{key: editor, patch: [{op: move, from: /fontName, path: /font}, {op: remove, path: /size}]}",
        after: "settings: {editor: {font: Menlo}}")
    ) { key, patch, ifMissing, target in
      Self(place: .setting(target, key: key), rule: patch, ifMissing: ifMissing)
    },
    OperationKind(
      "files.patch",
      "Changes parts of a JSON file or a property list, with the steps of `defaults.patch`.",
      ContainerSelection.argument("the file, a pattern of files, or a list"),
      Argument<DocumentPatch>("patch", "steps as in `defaults.patch`"), IfMissing.argument,
      example: OperationExample(
        before: "files: {Documents/index.json: '{\"a\": 1}'}",
        step: "{path: Documents/index.json, patch: [{op: replace, path: /a, value: 2}]}",
        after: "files: {Documents/index.json: '{\"a\": 2}'}")
    ) { Self(place: .files($0), rule: $1, ifMissing: $2) },
    OperationKind(
      "defaults.document-migrate",
      "Migrates a versioned document, `{version, data}`, to its newest version.",
      Argument([
        "key": "the setting, or", "path": "the file: JSON or a property list; also a pattern, or a list",
      ]) { reader, _ in try Place(of: reader) },
      Argument([
        "version-key": "the key of the version, an integer; default `version`",
        "data-key": "the key of the data; `''` if the fields are beside the version; default `data`",
        "versions": "required: by number, the changes from the previous version to each version",
        "oldest": "the oldest possible version; default one below the first of `versions`",
        "unversioned":
          "the version of a document without `version-key`, which fails otherwise; if `data-key` is "
          + "missing too, the whole document is data and gets a wrapper",
      ]) { reader, _ in try DocumentVersions(reading: reader) }, IfMissing.argument, DefaultsTarget.argument,
      example: OperationExample(
        before: "settings: {session: {version: 1, data: {name: x}}}",
        step: "{key: session, versions: {2: {steps: [{op: move, from: /name, path: /title}]}}}",
        after: "settings: {session: {version: 2, data: {title: x}}}")
    ) { place, versions, ifMissing, _ in
      Self(place: place, rule: versions, ifMissing: ifMissing)
    },
  ]

  private enum Place: Sendable {
    case setting(DefaultsTarget, key: String)
    case files([ContainerSelection])

    init(of reader: YAMLReader) throws {
      let (key, node) = try reader.only(["key", "path"], needs: "`key` (a setting) or `path` (a file)")
      if key == "key" {
        self = .setting(try DefaultsTarget(reading: reader), key: try node.text("`key`"))
      } else {
        if let other = reader["suite"] ?? reader["file"] {
          throw other.position.error("`path` names a file: leave `suite` and `file` out")
        }
        self = .files(try ContainerSelection.list(node, "`path`"))
      }
    }
  }

  private let place: Place
  private let rule: any DocumentRule
  private let ifMissing: IfMissing

  var effects: StepEffects {
    StepEffects(writing: rule is DocumentPatch ? .patch : .conversion, databases: .none)
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    switch place {
    case .setting(let target, let key): return try change(target, key, on: stage, &recorded)
    case .files(let selections):
      var notes: [String] = []
      for selection in selections {
        let found = try selection.path.map { [$0] } ?? selection.matches(in: stage, ifMissing, &notes)
        // A pattern skips what is not a file.
        for path in found where try selection.path != nil || stage.status(of: path)?.type == .file {
          notes += try change(path, on: stage, &recorded)
        }
      }
      return notes
    }
  }

  private func change(
    _ target: DefaultsTarget, _ key: String, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    var setting = try SettingDocument(value, key: key)
    let (notes, changes) = try setting.document.apply(rule, of: DocumentName(setting: key, stage.redactor))
    guard !changes.isEmpty else { return notes }
    edit.values[key] = try setting.value()
    recorded.documents.append(
      PriorValues.Document(file: try target.path(in: stage), key: key, changes: changes))
    return try notes + edit.save(to: stage, &recorded)
  }

  private func change(
    _ path: ContainerPath, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    try stage.requireChangeable(path)
    guard try stage.status(of: path) != nil else {
      let (what, problem) = ("`\(path)` does not exist", "`\(path)` is not in the container")
      return [try ifMissing.skipped(what, or: problem, path: path)]
    }
    let isUntouched = try stage.isUntouched(path)
    let (notes, changes) = try stage.changeDocument(at: path, rule)
    guard !changes.isEmpty else { return notes }
    let written = isUntouched ? try SHA256.hash(stage.read(path)) : nil
    recorded.documents.append(PriorValues.Document(file: path, key: nil, changes: changes, written: written))
    return notes
  }
}
