import ContainerTransaction
import DrydockErrors
import FileSystem
import Formats

struct Unarchive: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.unarchive",
      "Converts keyed archives (written by `NSKeyedArchiver`) to JSON or plain property lists: in files, in a setting, or in a column.",
      Argument(
        [
          "path": "a file, a pattern of files, or a list; or",
          "key": "a setting; or",
          "column": "a column of `table` in `database`, in the rows where it is not NULL and that match the "
            + "condition `where`",
          "to": "the new path, or the new key; default: in place",
          "extension": "of the new files, where there may be several; default: in place",
          "store": "JSON in a setting or column as `text` (default) or as `data`",
        ], common: ["if-missing", "if-exists"] + DefaultsTarget.keys + TableColumn.keys, read: place),
      ArchiveConversion.argument, make: Self.init)
  ]

  /// The type of JSON in a setting or a column.
  enum Store: String, CaseIterable, Sendable { case text, data }

  private let place: any ArchivePlace
  private let conversion: ArchiveConversion

  private static func place(_ reader: YAMLReader, _: MigrationFiles) throws -> any ArchivePlace {
    let key = try reader.only(
      ["path", "key", "column"],
      needs: "`path` (files), `key` (a setting) or `column` (of a database's `table`)"
    ).key
    switch key {
    case "path":
      try reader.refuse(DefaultsTarget.keys + TableColumn.keys + ["store"], with: "path")
      return try ArchivedFiles(reading: reader)
    case "key":
      try reader.refuse(TableColumn.keys + ["extension"], with: "key")
      return try ArchivedSetting(reading: reader)
    default:
      try reader.refuse(DefaultsTarget.keys + ["extension", "to", "if-exists"], with: "column")
      return try ArchivedColumn(reading: reader)
    }
  }

  /// The undo log keeps whole databases, not rows.
  var reversal: Reversal { place is ArchivedColumn ? .none : .derived }
  var effects: StepEffects { StepEffects() }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    try place.convert(conversion, on: stage, &recorded)
  }
}

/// Where keyed archives are: files, a setting or a column.
protocol ArchivePlace: Sendable {
  /// - Returns: notes.
  func convert(
    _ conversion: ArchiveConversion, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String]
}

extension YAMLReader {
  /// Refuses arguments that cannot be combined with another one.
  fileprivate func refuse(_ keys: [String], with other: String) throws {
    for key in keys {
      if let node = self[key] { throw node.position.error("`\(key)` cannot be combined with `\(other)`") }
    }
  }
}

/// Keyed archives that are files, for `files.unarchive`.
struct ArchivedFiles: ArchivePlace {
  private let selections: [ContainerSelection]
  /// The new names of the files.
  private enum Target: Sendable {
    case same
    case path(ContainerPath)
    case fileExtension(String)
  }

  private let target: Target
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader) throws {
    selections = try ContainerSelection.list(reader.required("path"), "`path`")
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
    switch (reader["to"], reader["extension"]) {
    case (nil, nil): target = .same
    case (let to?, nil):
      guard selections.count == 1, selections[0].path != nil else {
        throw to.position.error("`to` is for one file, and `path` names several: say `extension` instead")
      }
      target = .path(try to.containerPath("`to`"))
    case (nil, let node?):
      let text = try node.text("`extension`")
      let name = text.hasPrefix(".") ? String(text.dropFirst()) : text
      guard !name.isEmpty, !name.contains("/"), !name.contains("\0") else {
        throw node.position.error("`extension` is what follows the dot in a file's name, such as `json`")
      }
      target = .fileExtension(name)
    case (_?, let node?): throw node.position.error("name either `to` or `extension`, not both")
    }
  }

  func convert(
    _ conversion: ArchiveConversion, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    try selections.flatMap { selection in
      let found = try selection.files(in: stage)
      if found.isEmpty { return [try ifMissing.skipped("no file matches `\(selection)`")] }
      return try found.flatMap { try convert($0, to: target(for: $0), conversion, stage, &recorded) }
    }
  }

  private func convert(
    _ path: ContainerPath, to target: ContainerPath, _ conversion: ArchiveConversion,
    _ stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    switch try conversion.convert(try stage.read(path), "`\(path)`", isIndented: true) {
    case .kept(let note): return [note]
    case .deleted(let note):
      try recorded.noteRemoved(path, on: stage)
      try stage.remove(path)
      return [note]
    case .converted(let document):
      var replaced = [path]
      if target != path {
        if try stage.status(of: target) != nil { replaced.append(target) }
        let problem = "the target `\(target)` of `\(path)` exists already"
        guard try recorded.makeRoom(at: target, on: stage, ifExists, or: problem) else {
          return ["`\(target)` exists already: kept, and `\(path)` left unchanged"]
        }
      }
      try recorded.noteRemoved(path, on: stage)
      // The file keeps its mode, owner, attributes and protection class.
      if target != path { try stage.move(path, to: target) }
      try stage.write(document.encoded(), to: target)
      recorded.written.append(.init(path: target, digest: try stage.digest(of: target), replaced: replaced))
      return []
    }
  }

  private func target(for path: ContainerPath) throws -> ContainerPath {
    switch target {
    case .same: return path
    case .path(let path): return path
    case .fileExtension(let name):
      let dot = path.name.dropFirst().lastIndex(of: UInt8(ascii: "."))
      let stem = dot.map { Array(path.name[..<$0]) } ?? path.name
      return path.parent.appending(name: stem + Array(("." + name).utf8))
    }
  }
}

/// A keyed archive in a setting, for `files.unarchive`.
struct ArchivedSetting: ArchivePlace {
  private let target: DefaultsTarget
  private let key: String
  private let to: String
  private let store: Unarchive.Store
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  init(reading reader: YAMLReader) throws {
    target = try DefaultsTarget(reading: reader)
    key = try reader.required("key").text("`key`")
    to = try reader.text("to") ?? key
    store = try reader.choice("store") ?? .text
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }

  func convert(
    _ conversion: ArchiveConversion, on stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    var edit = try DefaultsEdit(target, stage)
    guard let value = try edit.source(key, ifMissing) else { return edit.notes }
    switch try conversion.convert(value.documentBytes, "the setting `\(key)`", isIndented: false) {
    case .kept(let note):
      edit.notes.append(note)
      return edit.notes
    case .deleted(let note):
      edit.notes.append(note)
      edit.values[key] = nil
    case .converted(let document):
      if to != key {
        guard try edit.mayWrite(to, ifExists) else { return edit.notes }
        edit.values[key] = nil
      }
      edit.values[to] =
        switch (document, store) {
        case (.propertyList(let list), _): list.value
        case (.json(let json), .text): .string(json.text)
        case (.json(let json), .data): .data(json.bytes)
        }
    }
    return try edit.save(to: stage, &recorded)
  }
}

extension PropertyListValue {
  /// The bytes of a value that may be a document.
  fileprivate var documentBytes: [UInt8]? {
    switch self {
    case .data(let bytes): bytes
    case .string(let text): Array(text.utf8)
    default: nil
    }
  }
}

/// The conversion of one keyed archive by `files.unarchive`.
struct ArchiveConversion: Sendable {
  enum Form: String, CaseIterable, Sendable { case json, plist }

  enum Outcome {
    case converted(StructuredDocument)
    /// Left unchanged or removed, with a note why.
    case kept(String), deleted(String)
  }

  static let argument = Argument(
    [
      "as": "`json` (default), or `plist`: in the format of the keyed archive; in a setting a plain value",
      "classes":
        "the app's own classes: a list of names, or a mapping from names to `rename` (old field: new "
        + "field) and `drop` (fields to omit)",
      "class-key": "the key under which each of these objects gets its class name",
      "dates": "in JSON: `iso8601` (default), `iso8601-seconds` (the format of `JSONDecoder`'s `.iso8601`; "
        + "fractions are truncated), `seconds-since-1970`, `milliseconds-since-1970`, "
        + "`seconds-since-2001` (`JSONDecoder`'s default)",
      "dictionary-keys":
        "for a dictionary with keys other than text: `fail` (default); `text` for numbers, Bools and "
        + "dates; `pairs`: a list of key, value, key, value, as `Codable` reads it",
      "decimals": "`number` (default), which fails if a real cannot hold all digits; or `text`",
      "unmapped":
        "for a value that is not a keyed archive or cannot be converted: `fail` (default), `keep`, "
        + "`delete`",
    ], read: Self.init)

  private let form: Form
  private let dates: KeyedArchiveDates
  private let options: KeyedArchiveOptions
  private let unmapped: Unmapped

  private init(_ reader: YAMLReader, _: MigrationFiles) throws {
    form = try reader.choice("as") ?? .json
    dates = try reader.choice("dates") ?? .iso8601
    if form == .plist, let node = reader["dates"] {
      throw node.position.error("`dates` is for JSON: a property list has a type for dates")
    }
    if form == .plist, let node = reader["store"] {
      throw node.position.error("`store` is for JSON: a property list is stored as it is")
    }
    var options = KeyedArchiveOptions()
    options.keys = try reader.choice("dictionary-keys") ?? .fail
    options.decimals = try reader.choice("decimals") ?? .number
    options.classKey = try reader.text("class-key")
    options.classes = try reader["classes"].map(Self.classes) ?? [:]
    self.options = options
    unmapped = try reader.choice("unmapped") ?? .fail
  }

  /// A list of names, or a mapping from names to rules for their fields.
  private static func classes(_ node: YAMLNode) throws -> [String: KeyedArchiveOptions.ClassRule] {
    guard node.mapping != nil else {
      let names = try node.texts("`classes`")
      return Dictionary(names.map { ($0, .init()) }, uniquingKeysWith: { first, _ in first })
    }
    var rules: [String: KeyedArchiveOptions.ClassRule] = [:]
    for pair in try node.pairs("`classes`").pairs {
      let name = try pair.textKey("a class's name")
      let reader = try YAMLReader(pair.value, what: "the class \(name)", keys: ["rename", "drop"])
      var names: [String: String] = [:]
      for field in try reader["rename"]?.pairs("`rename`").pairs ?? [] {
        let old = try field.textKey("a field's name")
        names[old] = try field.value.text("the new name of `\(old)`")
      }
      rules[name] = .init(names: names, dropped: Set(try reader.texts("drop") ?? []))
    }
    return rules
  }

  /// Converts an archive.
  ///
  /// - Parameters:
  ///   - bytes: nil for a value that is neither text nor data.
  ///   - what: where the archive is, for messages.
  ///   - isIndented: whether JSON has a line for each value.
  /// - Throws: ``StepFailure`` for what cannot be converted, unless it is kept or deleted.
  func convert(_ bytes: [UInt8]?, _ what: String, isIndented: Bool) throws -> Outcome {
    do {
      guard let bytes else { throw DrydockError(.malformed, "it is neither data nor text") }
      return .converted(try document(bytes, isIndented: isIndented))
    } catch let error as DrydockError {
      let outcome = try unmapped.outcome("\(what): \(error.message)") {
        StepFailure("\(what) cannot be unarchived: \(error.message); fix that, or set \($0)")
      }
      return outcome.isDeleted ? .deleted(outcome.note) : .kept(outcome.note)
    }
  }

  private func document(_ bytes: [UInt8], isIndented: Bool) throws -> StructuredDocument {
    let value = try KeyedArchiveReader.read(bytes, options)
    switch form {
    case .json:
      return .json(JSONDocument(try JSONValue(keyedArchive: value, dates: dates), isIndented: isIndented))
    case .plist:
      guard let plain = value.withoutNulls else {
        throw DrydockError(
          .unsupported,
          "a property list cannot contain null in a list or at its root: say `as: json`")
      }
      let format: PropertyListFile.Format = PropertyListDocument.isBinary(bytes) ? .binary : .xml
      return .propertyList(PropertyListDocument(format: format, value: plain))
    }
  }
}

extension PropertyListValue {
  /// Without null fields; nil where that would shift the elements of a list.
  fileprivate var withoutNulls: PropertyListValue? {
    switch self {
    case .array(let values):
      let plain = values.compactMap(\.withoutNulls)
      return plain.count == values.count ? .array(plain) : nil
    case .dictionary(let values):
      var plain: PropertyListDictionary = [:]
      for (key, value) in values where !value.isNull {
        guard let value = value.withoutNulls else { return nil }
        plain[key] = value
      }
      return .dictionary(plain)
    default: return isNull ? nil : self
    }
  }
}
