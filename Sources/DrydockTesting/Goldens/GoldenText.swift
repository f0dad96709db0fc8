import AppContainer
import AppStores
import ContainerDiff
import ContainerTransaction
import Cryptography
import DrydockErrors
import FileSystem
import Formats

/// A container as the text of a golden, with an entry for each thing that the text says. Volatile values are
/// normalized. The same container gives the same text.
///
/// Values are written unchanged, secrets too: goldens are of made-up containers.
package struct GoldenText: Sendable {
  /// The lines of each file; a statement may be several lines.
  private(set) var files: [ContainerPath: [String]] = [:]
  /// In the order in which differences are reported.
  var entries: [GoldenEntry] { contents + paths }
  private var contents: [GoldenEntry] = []
  private var paths: [GoldenEntry] = []
  private var lineCounts: [ContainerPath: Int] = [:]
  /// All settings: their secrets are hidden wherever they appear in a finding.
  private(set) var settings: [PropertyListDictionary] = []
  /// The names in `volatile` of a fixture that match something in it.
  private(set) var volatileNames: Set<String> = []

  /// A container, with everything that belongs to the app: also what backups exclude. It is only read.
  ///
  /// - Parameters:
  ///   - volatile: what differs in each run: it gets a fixed value of the same type.
  ///   - deviceKeys: what opens the vault; without it the golden has the sealed file's digest, which changes with each
  ///     sealing.
  /// - Throws: What reading the container throws; `DrydockError` with code `badFixture` for an invalid pattern.
  package init(
    of container: Container, volatile: VolatileValues = VolatileValues(), deviceKeys: DeviceKeys? = nil
  ) throws {
    let stage = try DiscardedStage(on: container)
    try self.init(of: ContentSide(live: stage, isWhole: true), volatile: volatile, deviceKeys: deviceKeys)
  }

  /// A side of a comparison.
  package init(
    of side: any ComparisonSide, volatile: VolatileValues = VolatileValues(), deviceKeys: DeviceKeys? = nil
  ) throws {
    let side = try NormalizedSide(side, volatile)
    var listed: [GoldenLine] = []
    for entry in side.entries {
      // The content of a volatile directory is not listed.
      if entry.path.ancestors.contains(where: { side.volatileDirectories.contains($0) }) { continue }
      listed.append(try line(entry, side, deviceKeys))
    }
    let hidden = side.volatileDirectories
    for (path, reason) in side.omitted where !hidden.contains(path) {
      if path.ancestors.contains(where: hidden.contains) { continue }
      var line = GoldenLine(path: path, type: GoldenLine.excluded)
      line.content = reason.split(separator: ":").first.map { GoldenLine.escaped(Array($0.utf8), " ") }
      listed.append(line)
    }
    volatileNames = side.normalizer.found.all
    _ = add(Golden.heading, to: Golden.list)
    for line in listed.sorted(by: { $0.path < $1.path }) {
      var entry = line.entry
      entry?.line = add(line.text, to: Golden.list)
      paths += [entry].compactMap { $0 }
    }
  }

  /// One database as SQL.
  static func sql(
    of database: String, at path: ContainerPath, _ normalizer: ValueNormalizer
  ) throws -> String {
    var text = GoldenText()
    let place = GoldenDatabase.Place(path: path, file: "database.sql")
    try GoldenDatabase.write(database, as: place, normalizer, to: &text)
    return text.files[place.file]?.joined(separator: "\n") ?? ""
  }

  private init() {}

  // MARK: Building

  /// Adds a line, or a statement, to a file.
  ///
  /// - Returns: the number of its first line, from 1.
  @discardableResult
  mutating func add(_ text: String, to file: ContainerPath) -> Int {
    let line = lineCounts[file, default: 0] + 1
    files[file, default: []].append(text)
    lineCounts[file] = line + text.utf8.count { $0 == 0x0A }
    return line
  }

  mutating func add(_ entry: GoldenEntry) { contents.append(entry) }

  private mutating func line(
    _ entry: ComparedEntry, _ side: NormalizedSide, _ deviceKeys: DeviceKeys?
  ) throws -> GoldenLine {
    if !entry.hasContent { return GoldenLine(volatile: entry) }
    var line = GoldenLine(path: entry.path, type: entry.kind.rawValue)
    // A link's mode is meaningless.
    line.mode = entry.kind == .link ? nil : entry.mode
    line.flags = entry.attributes ?? [:]
    switch entry.kind {
    case .directory, .other: break
    case .link: line.content = entry.linkTarget.map { GoldenLine.escaped($0, " ") }
    case .file:
      line.content = try side.digest(of: entry)?.hex
      if let document = try side.document(of: entry) { addDocument(entry.path, document) }
    case .vault:
      if let items = try items(entry.path, side, deviceKeys) {
        addVault(entry.path, items, side.normalizer)
        line.content = Golden.vault.description
      } else {
        line.content = try side.digest(of: entry)?.hex
      }
    case .settings:
      if let values = try side.settings(of: entry.path), addSettings(entry.path, values) {
        settings.append(values)
        line.content = Golden.defaults.description
      } else {
        // Nothing that can be written as settings: compared as a file.
        line.type = ComparedEntry.Kind.file.rawValue
        line.content = try side.digest(of: entry)?.hex
      }
    case .database:
      if case .raw(let digests) = try side.databaseDigest(of: entry.path) {
        line.rawDigests = digests
      } else {
        let file = try sqlFile(entry.path)
        line.content = file.description
        let temporary = try ScratchDirectory.temporary()
        let database = try side.plainDatabaseFile(of: entry.path, in: temporary.directory)
        defer { side.forgetDatabase(entry.path) }
        try GoldenDatabase.write(
          database, as: GoldenDatabase.Place(path: entry.path, file: file), side.normalizer, to: &self)
      }
    }
    return line
  }

  private func sqlFile(_ path: ContainerPath) throws -> ContainerPath {
    let plain = path.nameString.map {
      $0.isASCII && ($0.isLetter || $0.isNumber || "._-".contains($0)) ? $0 : "-"
    }
    let stem = String(plain.drop { $0 == "." })
    // A file system may be case-insensitive.
    let taken = Set(files.keys.map { $0.description.lowercased() })
    let names = (1...).lazy.map { "\(stem.isEmpty ? "database" : stem)\($0 == 1 ? "" : "-\($0)").sql" }
    return try ContainerPath(names.first { !taken.contains($0.lowercased()) } ?? "database.sql")
  }

  // MARK: Settings, vault, documents

  /// - Returns: false for values that YAML cannot hold.
  private mutating func addSettings(_ path: ContainerPath, _ values: PropertyListDictionary) -> Bool {
    guard let yaml = GoldenYAML.lines(values, of: path) else { return false }
    let (file, id) = (Golden.defaults, [path.description, "settings"])
    let name = "\(GoldenYAML.quoted(GoldenLine.text(path))):" + (yaml.isEmpty ? " {}" : "")
    add(GoldenEntry(id, path.description, at: file, line: add(name, to: file), text: name))
    for ((key, value), text) in zip(values.sorted(), yaml) {
      let shown = { @Sendable (redactor: Redactor) in redactor.shown(value, key: key) }
      var entry = GoldenEntry(
        id + [key], nil, "setting", at: file, line: add(text, to: file), text: text,
        fields: [
          .init(
            "value", GoldenYAML.text(value, of: path) ?? "", "the setting has another value",
            type: value.typeName, shown: shown)
        ])
      entry.name = { "\(path): \($0.shown(name: key))" }
      entry.whole = shown
      add(entry)
    }
    return true
  }

  private func items(
    _ path: ContainerPath, _ side: NormalizedSide, _ deviceKeys: DeviceKeys?
  ) throws -> [VaultItem]? {
    switch try side.vault(of: path) {
    case .items(let listed): listed
    case .sealed(let bytes):
      try deviceKeys.map { try Vault(opening: bytes, with: $0, path: path.description).sorted }
    case nil: nil
    }
  }

  private mutating func addVault(
    _ path: ContainerPath, _ items: [VaultItem], _ normalizer: ValueNormalizer
  ) {
    let (file, id) = (Golden.vault, [path.description, "vault"])
    add(GoldenEntry(id, path.description, at: file))
    if items.isEmpty { add("[]", to: file) }
    for item in items {
      let identity = VaultItem.Attribute.allCases.filter(item.itemClass.identifying.contains)
      let text = GoldenYAML.item(item, normalizer).joined(separator: "\n")
      let line = self.add(text, to: file)
      var entry = GoldenEntry(
        id + [item.itemClass.rawValue, "\(item.isSynchronizable)"] + identity.map { item[$0] ?? "" },
        "\(path): \(item.id)", "vault item", at: file, line: line, text: text)
      func add(_ name: String, _ text: String?, shown: (@Sendable (Redactor) -> String)? = nil) {
        entry.fields.append(
          GoldenEntry.Field(name, text ?? "", "the vault item has another \(name)") { redactor in
            text.map { shown?(redactor) ?? $0 }
          })
      }
      for attribute in VaultItem.Attribute.allCases where !identity.contains(attribute) {
        let text = item[attribute]
        add(attribute.words, text) { $0.shown(.string(text ?? ""), key: "") }
      }
      add("accessible", item.accessibility.rawValue)
      add("access control", item.accessControl?.description)
      add("value", GoldenYAML.value(item, normalizer)) { $0.shown(secret: item.value) }
      self.add(entry)
    }
  }

  /// A document that both sides have is compared value by value, and else by its digest.
  private mutating func addDocument(_ path: ContainerPath, _ document: GoldenDocument) {
    let (file, id) = (GoldenDocument.place(of: path), [path.description, GoldenEntry.document])
    // The text ends with a line break, as every file does.
    add(document.text.last == "\n" ? String(document.text.dropLast()) : document.text, to: file)
    add(GoldenEntry(id, path.description, at: file))
    for leaf in document.leaves {
      let shown = { @Sendable (redactor: Redactor) in leaf.shown(redactor) }
      var entry = GoldenEntry(
        id + [leaf.pointer.description], "\(GoldenLine.text(path)): \(leaf.pointer)", "value", at: file,
        line: leaf.line, in: id,
        fields: [.init("value", leaf.text, "the value differs", type: leaf.value.typeName, shown: shown)])
      entry.whole = shown
      let tokens = leaf.pointer.tokens.map { Int($0) == nil ? $0 : "*" }
      entry.pattern = "\(GoldenLine.text(path)): \(JSONPointer(tokens: tokens))"
      add(entry)
    }
  }

  // MARK: Files

  /// Writes the files into a new directory; its parent must exist.
  package func write(to directory: String) throws {
    let (parent, name) = try ContainerPath.split(directory)
    try Directory(parent).createDirectory(name, mode: 0o755)
    let target = try Directory(directory)
    for (file, lines) in files {
      try target.createDirectories(file.parent, mode: 0o755)
      try target.create(file, Self.bytes(lines), mode: 0o644)
    }
  }

  /// Whether a golden has exactly these files.
  func isSame(as golden: String) throws -> Bool {
    guard let root = try? Directory(golden), try root.status(Golden.list) != nil,
      try Golden.files(root) == Set(files.keys)
    else { return false }
    return try files.allSatisfy { file, lines in
      let (bytes, written) = (try root.contents(file, limit: 1 << 30), Self.bytes(lines))
      return bytes == written || TextFile.committed(bytes) == written
    }
  }

  private static func bytes(_ lines: [String]) -> [UInt8] { lines.flatMap { Array($0.utf8) + [0x0A] } }
}

/// One thing that a golden says: a path, a setting, an item of the vault, a value in a document, a definition, a row.
struct GoldenEntry: Sendable {
  /// A value of an entry.
  struct Field: Sendable {
    var name: String
    /// As it is compared.
    var text: ExactText
    /// What is said about a difference.
    var message: String
    /// The value's type, where it has one.
    var type: String?
    /// The value for people.
    var shown: @Sendable (Redactor) -> String?

    init(
      _ name: String, _ text: String, _ message: String, type: String? = nil,
      shown: (@Sendable (Redactor) -> String?)? = nil
    ) {
      (self.name, self.text, self.message, self.type) = (name, ExactText(text), message, type)
      self.shown = shown ?? { _ in text }
    }
  }

  /// The group of the values of a JSON document.
  static let document = "document"

  /// Its identity, which begins with that of what it is in.
  var id: [ExactText]
  /// The id of what it is in, without which it is not compared.
  var group: [ExactText]?
  /// Where it is in the container, for people.
  var name: @Sendable (Redactor) -> String
  /// Its place without what identifies it among many rows or files; nil where it is one of a kind.
  var pattern: String?
  /// What it is, such as `setting`; nil for what only has a place.
  var noun: String?
  var fields: [Field] = []
  /// What is shown where the other side lacks it.
  var whole: @Sendable (Redactor) -> String? = { _ in nil }
  /// The golden's file, the line in it, and the text there.
  var file: ContainerPath, line: Int?, text: String

  init(
    _ id: [String], _ name: String? = nil, _ noun: String? = nil, at file: ContainerPath, line: Int? = nil,
    text: String = "", in group: [String]? = nil, fields: [Field] = []
  ) {
    (self.id, self.group) = (id.map { ExactText($0) }, group?.map { ExactText($0) })
    (self.noun, self.file, self.line, self.text, self.fields) = (noun, file, line, text, fields)
    self.name = { _ in name ?? "" }
  }

  subscript(_ field: String) -> Field? { fields.first { $0.name == field } }
}
