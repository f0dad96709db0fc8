import AppContainer
import ContainerTransaction
import FileSystem
import Formats

/// `files.move`: moves a file, a directory, or a database with all that belongs to it.
struct MoveFiles: MigrationOperation {
  static let name = "files.move"
  static let keys = ["from", "to", "if-missing", "if-exists"]

  let transfer: PathTransfer
  let ifMissing: IfMissing
  let ifExists: IfExists

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    if let single = transfer.single { try stage.requireNoHistory(in: single) }
    var notes: [String] = []
    let pairs = try transfer.pairs(on: stage, ifMissing, &notes)
    if let single = transfer.single, pairs.isEmpty { recorded.skipped.append(single.description) }
    // The sidecars of a database have moved with its main file, which comes before them.
    for pair in pairs where try stage.status(of: pair.from) != nil {
      notes += try move(pair.from, to: pair.to, stage, &recorded)
    }
    return notes
  }

  private func move(
    _ from: ContainerPath, to: ContainerPath, _ stage: StagedContainer, _ recorded: inout DownValues
  ) throws -> [String] {
    try stage.requireNoHistory(in: from)
    try stage.requireNoHistory(in: to)
    if try stage.status(of: to) != nil {
      switch ifExists {
      case .keep:
        recorded.skipped.append(from.description)
        return ["`\(to)` exists already: kept, and `\(from)` left unchanged"]
      case .replace:
        try recorded.noteRemoved(to, on: stage)
        try stage.remove(to)
      case .fail:
        let both = try stage.isDatabase(from) && stage.isDatabase(to)
        throw StepFailure(
          message: both
            ? "the database is in two places, `\(from)` and `\(to)`: find out which one has the user's data, and "
              + "remove or rename the other"
            : "the target `\(to)` of `\(from)` exists already: say `if-exists: keep` or `if-exists: replace`",
          path: from.description)
      }
    }
    try recorded.noteMade(to.parent, on: stage)
    try stage.move(from, to: to)
    if transfer.single == nil {
      recorded.moved = (recorded.moved ?? []) + [DownValues.Moved(from: from, to: to)]
    }
    return []
  }

  /// Only the recorded values say which files a pattern matched.
  var reversal: Reversal { transfer.single == nil ? .byDownValues : .byArguments }

  /// Moves the present content back, and restores what it had replaced.
  func revert(on stage: StagedContainer, _ recorded: DownValues?) throws -> [String] {
    guard let single = transfer.single else {
      let recorded = try DownValues.required(recorded)
      var notes: [String] = []
      for pair in (recorded.moved ?? []).reversed() { notes += try moveBack(pair.to, to: pair.from, stage) }
      notes += try recorded.putBackRemoved(on: stage)
      try recorded.removeEmptyDirectories(on: stage)
      return notes
    }
    if recorded?.skipped.contains(single.description) == true { return [] }
    let notes = try moveBack(transfer.to, to: single, stage)
    return notes.isEmpty ? try recorded?.putBackRemoved(on: stage) ?? [] : notes
  }

  private func moveBack(_ to: ContainerPath, to from: ContainerPath, _ stage: StagedContainer) throws
    -> [String]
  {
    guard try stage.status(of: to) != nil else { return ["`\(to)` does not exist: skipped"] }
    guard try stage.status(of: from) == nil else {
      return ["`\(from)` exists already: kept, and `\(to)` left unchanged"]
    }
    try stage.move(to, to: from)
    return []
  }
}

extension MoveFiles {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try PathTransfer(reader)
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }
}

/// `files.copy`: copies a file, a directory, or a database with all that belongs to it.
struct CopyFiles: MigrationOperation {
  static let name = "files.copy"
  static let keys = ["from", "to", "if-missing", "if-exists"]

  let transfer: PathTransfer
  let ifMissing: IfMissing
  let ifExists: IfExists

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    if let single = transfer.single { try stage.requireNoHistory(in: single) }
    var notes: [String] = []
    // The sidecars of a database were copied with its main file, which comes before them.
    for pair in try transfer.pairs(on: stage, ifMissing, &notes) {
      try stage.requireNoHistory(in: pair.from)
      if try stage.status(of: pair.to) != nil, ifExists == .keep {
        notes.append("`\(pair.to)` exists already: kept, and `\(pair.from)` not copied")
        continue
      }
      try recorded.write(pair.to, on: stage, ifExists) { try stage.copy(pair.from, to: pair.to) }
    }
    return notes
  }
}

extension CopyFiles {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    transfer = try PathTransfer(reader)
    ifMissing = try reader.ifMissing()
    ifExists = try reader.ifExists()
  }
}

/// `files.delete`: removes paths, or the matches of a pattern, which starts at the container's root (`*.log` is in the
/// root only, `**/*.log` at any depth). A database is removed with its sidecars and external data.
struct DeleteFiles: MigrationOperation {
  static let name = "files.delete"
  static let keys = ["path", "destructive", "if-missing"]

  let paths: [ContainerSelection]
  let ifMissing: IfMissing
  let reason: DestructiveReason

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    var notes: [String] = []
    for selection in paths {
      for path in try selection.matches(in: stage, ifMissing, &notes) where try stage.status(of: path) != nil
      {
        try stage.requireNoHistory(in: path)
        try recorded.noteRemoved(path, on: stage)
        try stage.remove(path)
      }
    }
    return notes
  }

  var isDestructive: Bool { true }
}

extension DeleteFiles {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    paths = try ContainerSelection.list(reader)
    ifMissing = try reader.ifMissing()
    reason = try reader.reason()
  }
}

/// `files.create-directory`: creates a directory and its missing parents.
struct CreateDirectory: MigrationOperation {
  static let name = "files.create-directory"
  static let keys = ["path", "mode", "if-exists"]

  let path: ContainerPath
  let mode: UInt16?
  let ifExists: IfExists

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    if let status = try stage.status(of: path) {
      if status.type == .directory && (mode ?? status.mode) == status.mode { return [] }
      if ifExists == .keep { return ["`\(path)` exists already: kept"] }
    }
    try recorded.write(path, on: stage, ifExists) {
      try stage.createDirectory(path)
      guard let mode, var metadata = try stage.metadata(of: path) else { return }
      metadata.mode = mode
      try stage.putDirectory(at: path, metadata: metadata)
    }
    return []
  }
}

extension CreateDirectory {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    path = try reader.required("path").containerPath("`path`")
    mode = try reader.mode()
    ifExists = try reader.ifExists()
  }
}

extension YAMLReader {
  /// The argument `mode`: permission bits in octal.
  func mode() throws -> UInt16? {
    guard let node = self["mode"] else { return nil }
    let digits: Substring
    switch node.scalar?.value {
    case .integer where node.scalar?.source.hasPrefix("0o") == true:
      digits = node.scalar?.source.dropFirst(2) ?? ""
    case .text(let text): digits = text[...]
    default: digits = ""
    }
    guard let mode = UInt16(digits, radix: 8), mode <= 0o7777 else {
      throw node.position.error("`mode` is octal, such as 0o644, not \(node.summary)")
    }
    return mode
  }
}

/// `files.write`: writes a file, from text, data, or a file of the migration's directory.
struct WriteFile: MigrationOperation {
  static let name = "files.write"
  static let keys = ["path", "text", "data", "file", "mode", "if-exists"]

  let path: ContainerPath
  let content: [UInt8]
  let mode: UInt16?
  let ifExists: IfExists

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    if let status = try stage.status(of: path) {
      if try isThere(status, stage) { return [] }
      if ifExists == .keep { return ["`\(path)` exists already: kept"] }
    }
    // A file keeps its metadata when its content is replaced.
    let existing = try stage.metadata(of: path)
    let wasFile = try stage.status(of: path)?.type == .file
    try recorded.write(path, on: stage, ifExists) {
      try stage.write(content, to: path, mode: mode)
      guard wasFile, var metadata = existing, let written = try stage.metadata(of: path) else { return }
      (metadata.mode, metadata.modified) = (mode ?? metadata.mode, written.modified)
      try stage.setMetadata(metadata, of: path)
    }
    return []
  }

  private func isThere(_ status: FileStatus, _ stage: StagedContainer) throws -> Bool {
    guard status.type == .file, status.size == UInt64(content.count), (mode ?? status.mode) == status.mode
    else { return false }
    return try stage.read(path) == content
  }
}

extension WriteFile {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    path = try reader.required("path").containerPath("`path`")
    mode = try reader.mode()
    ifExists = try reader.ifExists()
    let sources = ["text", "data", "file"].compactMap { key in reader[key].map { (key, $0) } }
    guard let (key, node) = sources.first else {
      throw reader.position.error("\(Self.name) needs one of `text`, `data` and `file`")
    }
    if sources.count > 1 {
      throw sources[1].1.position.error("name either `\(key)` or `\(sources[1].0)`, not both")
    }
    switch (key, node.scalar?.value) {
    case ("text", _): content = Array(try node.text("`text`").utf8)
    case ("file", _): content = try files.bytes(of: node.text("`file`"), namedAt: node.position)
    case (_, .data(let bytes)): content = bytes
    default: throw node.position.error("`data` is data in base64 (`!data AAEC`), not \(node.summary)")
    }
  }
}

/// `files.set-backup-exclusion`: sets or removes Apple's flag that excludes a path from backups. On a directory it covers
/// everything in it; on a database's main file the whole database.
struct SetBackupExclusion: MigrationOperation {
  static let name = "files.set-backup-exclusion"
  static let keys = ["path", "excluded", "if-missing"]

  let edit: AttributeEdit
  let isExcluded: Bool

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    try edit.apply(to: stage, &recorded) { $0.setAppleFlag(isExcluded) }
  }
}

extension SetBackupExclusion {
  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    edit = try AttributeEdit(reader)
    isExcluded = try reader.required("excluded").boolean("`excluded`")
  }
}

/// `files.set-protection`: sets the class of Apple's data protection.
struct SetProtection: MigrationOperation {
  static let name = "files.set-protection"
  static let keys = ["path", "class", "if-missing"]

  private let edit: AttributeEdit
  private let protection: ProtectionClass

  init(reading reader: YAMLReader, files: MigrationFiles) throws {
    edit = try AttributeEdit(reader)
    guard let protection: ProtectionClass = try reader.choice("class") else {
      throw reader.position.error("\(Self.name) needs the key `class`")
    }
    self.protection = protection
  }

  func apply(to stage: StagedContainer, _ recorded: inout DownValues) throws -> [String] {
    try edit.apply(to: stage, &recorded) { $0.protection = protection }
  }
}

/// Changes extended attributes of the selected paths.
struct AttributeEdit: Sendable {
  let paths: [ContainerSelection]
  let ifMissing: IfMissing

  /// Changes the metadata of each path.
  ///
  /// - Throws: ``StepFailure`` when a path cannot have the attribute.
  func apply(
    to stage: StagedContainer, _ recorded: inout DownValues, change: (inout FileMetadata) -> Void
  ) throws -> [String] {
    var notes: [String] = []
    for selection in paths {
      for path in try selection.matches(in: stage, ifMissing, &notes) {
        guard let status = try stage.status(of: path), let before = try stage.metadata(of: path) else {
          continue
        }
        var after = before
        change(&after)
        if after == before { continue }
        if status.type == .symbolicLink {
          throw StepFailure(
            message: "`\(path)` is a symbolic link, which cannot carry the attribute: name what it points to",
            path: path.description)
        }
        guard try stage.attainable(after, for: status.type).attributes == after.attributes else {
          throw StepFailure(
            message: "`\(path)` cannot carry the attribute: its file system has no extended attributes",
            path: path.description)
        }
        try stage.setMetadata(after, of: path)
        recorded.note(attributes: path, before: before.attributes, after: after.attributes)
      }
    }
    return notes
  }
}

extension AttributeEdit {
  init(_ reader: YAMLReader) throws {
    paths = try ContainerSelection.list(reader)
    ifMissing = try reader.ifMissing()
  }
}
