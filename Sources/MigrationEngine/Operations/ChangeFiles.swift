import AppContainer
import AppStores
import ContainerTransaction
import FileSystem
import Formats

struct TransferFiles: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.move",
      "Moves a file, a directory, or a database with its sidecars and external data; the database becomes one consistent file.",
      arguments, IfMissing.argument, IfExists.argument,
      example: OperationExample(
        before: "files: {Documents/a.md: text}", step: "{from: Documents/a.md, to: Documents/Notes/a.md}",
        after: "files: {Documents/Notes/a.md: text}")
    ) { try Self(isMove: true, $0, $1, $2) },
    OperationKind(
      "files.copy",
      "Copies a file, a directory, or a database with its external data; the database becomes one consistent file.",
      arguments, IfMissing.argument, IfExists.argument,
      example: OperationExample(
        before: "files: {Library/Plain.md: text}", step: "{from: Library/Plain.md, to: Documents/Plain.md}",
        after: "files: {Library/Plain.md: text, Documents/Plain.md: text}")
    ) { try Self(isMove: false, $0, $1, $2) },
  ]
  private static let arguments = Argument([
    "from, to":
      "required: a path and its new path; or a pattern or a list, and the target directory, where each "
      + "keeps its name"
  ]) { reader, _ in try (from: reader.required("from"), to: reader.required("to")) }

  private let isMove: Bool
  private let from: [ContainerSelection]
  private let to: ContainerPath
  /// The only path; nil for several.
  private let single: ContainerPath?
  private let ifMissing: IfMissing
  private let ifExists: IfExists

  private init(
    isMove: Bool, _ paths: (from: YAMLNode, to: YAMLNode), _ ifMissing: IfMissing,
    _ ifExists: IfExists
  ) throws {
    (self.isMove, self.ifMissing, self.ifExists) = (isMove, ifMissing, ifExists)
    from = try ContainerSelection.list(paths.from, "`from`")
    to = try paths.to.containerPath("`to`")
    single = paths.from.sequence == nil ? from[0].path : nil
    guard let single else { return }
    guard to != single else { throw paths.to.position.error("`from` and `to` are the same path") }
    guard !to.isInside(single), !single.isInside(to) else {
      throw paths.to.position.error("one of `from` and `to` is inside the other")
    }
  }

  var effects: StepEffects {
    StepEffects(writing: isMove ? .conversion : .replacement, databases: .at(mayReplace))
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    if let single { try stage.requireChangeable(single) }
    var notes: [String] = []
    let pairs = try pairs(on: stage, &notes)
    if let single, pairs.isEmpty, try stage.status(of: to) != nil {
      recorded.skipped.append(single.description)
    }
    // The sidecars of a database went with its main file, which comes before them.
    for pair in pairs where try !isMove || stage.status(of: pair.from) != nil {
      try stage.requireChangeable(pair.from)
      if isMove, ifExists == .fail, try stage.status(of: pair.to) != nil,
        try stage.isDatabase(pair.from) && stage.isDatabase(pair.to)
      {
        throw StepFailure(
          "the database is in two places, `\(pair.from)` and `\(pair.to)`: find out which one has the user's data, "
            + "and remove or rename the other", at: pair.from)
      }
      notes += try transfer(pair, stage, &recorded)
    }
    return notes
  }

  private func transfer(
    _ pair: Pair, _ stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    guard isMove else {
      let isCopied = try recorded.write(pair.to, on: stage, ifExists) {
        try stage.copy(pair.from, to: pair.to)
      }
      return isCopied ? [] : ["`\(pair.to)` exists already: kept, and `\(pair.from)` not copied"]
    }
    let replaced = try stage.status(of: pair.to) != nil
    let problem = "the target `\(pair.to)` of `\(pair.from)` exists already"
    guard try recorded.makeRoom(at: pair.to, on: stage, ifExists, or: problem) else {
      recorded.skipped.append(pair.from.description)
      return ["`\(pair.to)` exists already: kept, and `\(pair.from)` left unchanged"]
    }
    let links = try stage.status(of: pair.from).map { $0.type == .file ? $0.links : 1 } ?? 1
    try stage.move(pair.from, to: pair.to)
    recorded.moved.append(PriorValues.Moved(from: pair.from, to: pair.to, replaced: replaced))
    return links == 1
      ? [] : ["`\(pair.to)` is a file of its own: `\(pair.from)` was one of \(links) hard links of it"]
  }

  private func mayReplace(_ places: [ContainerPath]) -> Bool {
    // Between its places a database keeps its schema.
    if let single,
      places.contains(where: {
        ($0 == single || $0.isInside(single)) && places.contains($0.rebased(from: single, to: to))
      })
    {
      return false
    }
    if isMove, from.contains(where: { $0.mayMatch(places) }) { return true }
    return places.isEmpty ? !isMove : places.contains { $0 == to || $0.isInside(to) }
  }

  func revert(on stage: StagedContainer, _ recorded: PriorValues?) throws -> [String] {
    if isMove, let single {
      // Without a source to move, the app may have written the target since.
      let isNewer =
        try recorded.map { try $0.moved.isEmpty && $0.skipped.isEmpty && stage.status(of: to) != nil } ?? true
      if isNewer { return try PriorValues.Moved(from: single, to: to).revert(on: stage).map { [$0] } ?? [] }
    }
    let recorded = try PriorValues.required(recorded)
    let notes = try recorded.revert(on: stage)
    guard single == nil, recorded.made.contains(to), try stage.status(of: to)?.type == .directory else {
      return notes
    }
    let written = Set(recorded.written.map(\.path))
    return try notes
      + stage.children(of: to).sorted().filter { !written.contains($0) }.map {
        "`\($0)` was written since: left unchanged"
      }
  }

  private typealias Pair = (from: ContainerPath, to: ContainerPath)

  /// The existing sources, each with its target.
  ///
  /// - Throws: ``StepFailure`` when a required source is missing, or two sources have the same target.
  private func pairs(on stage: StagedContainer, _ notes: inout [String]) throws -> [Pair] {
    if let single {
      if try stage.status(of: single) != nil { return [(single, to)] }
      let (what, problem) = ("`\(single)` does not exist", "`\(single)` is not in the container")
      notes.append(try ifMissing.skipped(what, or: problem, path: single))
      return []
    }
    var pairs: [Pair] = []
    for selection in from {
      for path in try selection.matches(in: stage, ifMissing, &notes) {
        // A path inside the target stays there, and one inside a moved directory moves with it.
        let goesAlready = pairs.contains { $0.from == path || path.isInside($0.from) }
        if goesAlready || path == to || path.isInside(to) { continue }
        // A sidecar goes with the main file of its database.
        if let main = DatabaseUnit.main(ofSidecar: path), pairs.contains(where: { $0.from == main }) {
          continue
        }
        guard !to.isInside(path) else {
          throw StepFailure("`\(to)` is inside `\(path)`, which `\(selection)` matches", at: path)
        }
        guard let name = path.components.last else { continue }
        let target = to.appending(name: name)
        if let other = pairs.first(where: { $0.to == target }) {
          throw StepFailure("`\(other.from)` and `\(path)` would both become `\(target)`", at: path)
        }
        pairs.append((path, target))
      }
    }
    return pairs
  }
}

struct DeleteFiles: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.delete",
      "Deletes files and directories.",
      ContainerSelection.argument(), IfMissing.argument, destroysData: true,
      example: OperationExample(
        before: "files: {Documents/a.jpg: picture, Documents/a.md: text}",
        step: "{path: \"Documents/*.jpg\", destructive: the pictures are in the photo library now}",
        after: "files: {Documents/a.md: text}"),
      make: Self.init)
  ]

  private let paths: [ContainerSelection]
  private let ifMissing: IfMissing

  var effects: StepEffects {
    StepEffects(
      writing: .conversion,
      databases: .at { [paths] places in places.isEmpty || paths.contains { $0.mayMatch(places) } },
      announcedLoss: paths.allSatisfy { $0.path != nil } ? .everything : .matches)
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var notes: [String] = []
    for selection in paths {
      let found = try selection.matches(in: stage, ifMissing, &notes)
      for path in try found.flatMap({ try stage.present(at: $0) }) where try stage.status(of: path) != nil {
        try stage.requireChangeable(path)
        try recorded.noteRemoved(path, on: stage)
        try stage.remove(path)
      }
    }
    return notes
  }
}

struct CreateDirectory: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.create-directory",
      "Creates a directory and its missing parents.",
      Argument<ContainerPath>("path"),
      Argument("mode", "octal; default 0o755", ifGiven: { try $0.mode() }),
      Argument(
        "if-exists",
        "for a different kind of file at the path, or another mode; `replace` refuses a directory "
          + "with content", default: IfExists.fail),
      example: OperationExample(
        before: "files: {}", step: "{path: Library/Attachments/New}",
        after: "files: {Library/Attachments/New/: directory}"),
      make: Self.init)
  ]

  private let path: ContainerPath
  private let mode: UInt16?
  private let ifExists: IfExists

  var effects: StepEffects { StepEffects() }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    if let status = try stage.status(of: path), status.type == .directory {
      if (mode ?? status.mode) == status.mode { return [] }
      if try ifExists == .replace && !stage.children(of: path).isEmpty {
        throw StepFailure(
          "`\(path)` is a directory of another mode, and replacing it would remove what it "
            + "contains: leave `mode` out, or say `if-exists: keep`", at: path)
      }
    }
    let isWritten = try recorded.write(path, on: stage, ifExists) {
      try stage.createDirectory(path)
      guard let mode, var metadata = try stage.metadata(of: path) else { return }
      metadata.mode = mode
      try stage.putDirectory(at: path, metadata: metadata)
    }
    return isWritten ? [] : ["`\(path)` exists already: kept"]
  }
}

struct WriteFile: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.write",
      "Writes a file.",
      Argument<ContainerPath>("path"),
      Argument(
        [
          "text": "the content, as UTF-8, or",
          "data": "the content, in base64, or",
          "file": "a file of the migration's directory with the content",
        ], read: content),
      Argument(
        "mode", "octal; default 0o644, or the mode of the replaced file", ifGiven: { try $0.mode() }),
      IfExists.argument,
      example: OperationExample(
        before: "files: {Documents/About.txt: old}",
        step: "{path: Documents/About.txt, text: These are your notes., if-exists: replace}",
        after: "files: {Documents/About.txt: These are your notes.}"),
      make: Self.init)
  ]

  private let path: ContainerPath
  private let content: [UInt8]
  private let mode: UInt16?
  private let ifExists: IfExists

  private static func content(_ reader: YAMLReader, _ files: MigrationFiles) throws -> [UInt8] {
    let (key, node) = try reader.only(
      ["text", "data", "file"], needs: "one of `text`, `data` and `file`")
    switch (key, node.scalar?.value) {
    case ("text", _): return Array(try node.text("`text`").utf8)
    case ("file", _): return try files.bytes(of: node.text("`file`"), namedAt: node.position)
    case (_, .data(let bytes)): return bytes
    default: throw node.position.error("`data` is data in base64 (`!data AAEC`), not \(node.summary)")
    }
  }

  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    let status = try stage.status(of: path)
    if let status, try isThere(status, stage) { return [] }
    // A file keeps its metadata when its content is replaced.
    let existing = status?.type == .file ? try stage.metadata(of: path) : nil
    let isWritten = try recorded.write(path, on: stage, ifExists) {
      try stage.write(content, to: path, mode: mode)
      guard var metadata = existing, let written = try stage.metadata(of: path) else { return }
      (metadata.mode, metadata.modified) = (mode ?? metadata.mode, written.modified)
      try stage.setMetadata(metadata, of: path)
    }
    return isWritten ? [] : ["`\(path)` exists already: kept"]
  }

  var effects: StepEffects {
    StepEffects(writing: .replacement, databases: .at { [path] in $0.isEmpty || $0.contains(path) })
  }

  private func isThere(_ status: FileStatus, _ stage: StagedContainer) throws -> Bool {
    guard status.type == .file, status.size == UInt64(content.count), (mode ?? status.mode) == status.mode
    else { return false }
    return try stage.read(path) == content
  }
}

struct SetAttributes: MigrationOperation {
  static let kinds = [
    OperationKind(
      "files.set-backup-exclusion",
      "Sets or removes Apple's backup exclusion attribute.",
      ContainerSelection.argument(), Argument<Bool>("excluded", "`true` or `false`"), IfMissing.argument,
      example: OperationExample(
        before: "files: {Documents/a.tmp: x}", step: "{path: \"**/*.tmp\", excluded: true}",
        after: "{files: {Documents/a.tmp: x}, excluded: [Documents/a.tmp]}")
    ) { paths, isExcluded, ifMissing in
      Self(paths: paths, ifMissing: ifMissing) {
        $0.setAppleFlag(isExcluded)
      }
    },
    OperationKind(
      "files.set-protection",
      "Sets the data protection class.",
      ContainerSelection.argument(),
      Argument<ProtectionClass>(
        "class",
        "`complete`, `completeUnlessOpen`, `completeUntilFirstUserAuthentication`, "
          + "`completeWhenUserInactive` or `none`"), IfMissing.argument,
      example: OperationExample(
        before: "files: {Documents/Diary.md: x}", step: "{path: Documents/Diary.md, class: complete}",
        after: "{files: {Documents/Diary.md: x}, protection: {Documents/Diary.md: complete}}")
    ) { paths, protection, ifMissing in
      Self(paths: paths, ifMissing: ifMissing) { $0.protection = protection }
    },
  ]

  private let paths: [ContainerSelection]
  private let ifMissing: IfMissing
  private let change: @Sendable (inout FileMetadata) -> Void

  var effects: StepEffects { StepEffects() }

  /// - Throws: ``StepFailure`` when a path cannot have the attribute.
  func apply(to stage: StagedContainer, _ recorded: inout PriorValues) throws -> [String] {
    var notes: [String] = []
    for selection in paths { notes += try apply(selection, stage, &recorded) }
    return notes
  }

  private func apply(
    _ selection: ContainerSelection, _ stage: StagedContainer, _ recorded: inout PriorValues
  ) throws -> [String] {
    var notes: [String] = []
    for path in try selection.matches(in: stage, ifMissing, &notes) {
      // The main file has the attributes of the whole database.
      if try stage.isSidecar(path) { continue }
      guard let status = try stage.status(of: path), let before = try stage.metadata(of: path) else {
        continue
      }
      var after = before
      change(&after)
      if after == before { continue }
      if status.type == .symbolicLink {
        guard selection.path != nil else {
          notes.append("`\(path)` is a symbolic link, which cannot carry the attribute: skipped")
          continue
        }
        throw StepFailure(
          "`\(path)` is a symbolic link, which cannot carry the attribute: name what it points to", at: path)
      }
      guard try stage.attainable(after, for: status.type).attributes == after.attributes else {
        throw StepFailure(
          "`\(path)` cannot carry the attribute: its file system has no extended attributes", at: path)
      }
      try stage.setMetadata(after, of: path)
      recorded.note(attributes: path, before: before.attributes, after: after.attributes)
    }
    return notes
  }
}
