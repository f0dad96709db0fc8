import AppContainer
import DrydockErrors
import FileSystem
import Formats
import GRDB

/// The files of a fixture: `NAME.sql` is the content of the database `NAME`, `NAME.plist.yaml` and `NAME.plist.xml`
/// that of the binary property list `NAME.plist`, `shared_prefs/NAME.xml.yaml` and `NAME.preferences_pb.yaml` that of
/// Android's settings files; all else is taken as it is.
struct FixtureFiles {
  let fixture: Directory
  let setup: FixtureSetup
  let configuration: ContainerConfiguration

  /// Puts the files of the container and its groups into a container that is there and empty.
  func copy(to target: Directory) throws {
    var sources: Set<ContainerPath> = []
    var databases: Set<ContainerPath> = []
    for top in [FixtureSource.container, FixtureSource.groups] where try fixture.status(top) != nil {
      let source = try fixture.directory(top)
      try source.walk { entry in
        // Not a part of the container: notes, and files of a desktop.
        if top == FixtureSource.groups, entry.path.parent.isRoot, entry.status.type != .directory {
          return .over
        }
        let path = top == FixtureSource.groups ? entry.path.rebased(from: .root, to: .groups) : entry.path
        guard path != .groups else {
          throw DrydockError(
            .badFixture, "groups are beside the container, in `\(FixtureSource.groups)`",
            path: source.full(entry.path))
        }
        sources.insert(path)
        if let database = try add(entry, path, from: source, to: target) { databases.insert(database) }
        return .into
      }
    }
    for place in setup.verbatim where !sources.contains(place.path) {
      throw place.position.error("the fixture has no file `\(place.path)`")
    }
    for place in setup.onlyInWAL where !databases.contains(place.path) {
      throw place.position.error("the fixture has no `\(place.path).sql`")
    }
  }

  /// - Returns: the database that was made.
  private func add(
    _ entry: WalkEntry, _ path: ContainerPath, from source: Directory, to target: Directory
  ) throws -> ContainerPath? {
    let isFile = entry.status.type == .file
    if isFile, !setup.verbatim.contains(where: { $0.path == path }) {
      if let database = path.without(suffix: ".sql") {
        try requireFree(database, entry, source, target)
        try SQLDump(entry.path, in: source).build(
          database, in: target, onlyInWAL: setup.onlyInWAL.contains { $0.path == database },
          file: source.full(entry.path), configuration)
        return database
      }
      if let settings = Self.settings(madeBy: path) {
        try requireFree(settings, entry, source, target)
        try target.create(settings, Self.encoded(settings, from: entry.path, in: source), mode: 0o600)
        return nil
      }
    }
    if entry.status.type != .directory { try requireFree(path, entry, source, target) }
    try source.copy(entry, to: path, in: target)
    return nil
  }

  /// The settings file that a file of a fixture gives; nil when it is none of these.
  static func settings(madeBy path: ContainerPath) -> ContainerPath? {
    if let settings = path.without(suffix: ".xml"), settings.nameString.hasSuffix(".plist") {
      return settings
    }
    guard let settings = path.without(suffix: ".yaml") else { return nil }
    return settings.hasYAML ? settings : nil
  }

  /// A settings file in the format of its path, made from YAML, or from a property list in XML: a binary property list in
  /// Apple's layouts.
  private static func encoded(
    _ path: ContainerPath, from text: ContainerPath, in source: Directory
  ) throws -> [UInt8] {
    let file = source.full(text)
    let bytes = TextFile.committed(try source.contents(text))
    if text.nameString.hasSuffix(".xml") {
      do {
        let list = try PropertyListDocument(bytes: bytes)
        guard list.format == .xml else {
          throw DrydockError(
            .badFixture, "a binary property list; name it without `.xml` to take it unchanged", path: file)
        }
        return try PropertyListDocument(format: .binary, value: list.value).encoded()
      } catch let error as DrydockError {
        throw DrydockError(.badFixture, error.message, path: file, cause: error)
      }
    }
    let root = try YAMLDocument(bytes, file: file).root
    let values = try root.flatMap { $0.isNull ? nil : try $0.pairs("a property list").propertyListValues() }
    var settings = SettingsFile(newAt: path.description)
    for (key, value) in values ?? [:] {
      do {
        try settings.set(value, for: key)
      } catch let error as UnfitSetting {
        throw DrydockError(.badFixture, "the setting `\(key)` \(error.problem)", path: file)
      }
    }
    return try settings.encoded()
  }

  private func requireFree(
    _ path: ContainerPath, _ entry: WalkEntry, _ source: Directory, _ target: Directory
  ) throws {
    guard try target.status(path) != nil else { return }
    throw DrydockError(
      .badFixture, "another file of the fixture makes \(path)", path: source.full(entry.path))
  }
}

extension Directory {
  /// Copies what version control keeps: directories, links, files. The umask of a checkout must not show: of a mode, only
  /// "executable" counts.
  func copy(_ entry: WalkEntry, to path: ContainerPath, in target: Directory) throws {
    switch entry.status.type {
    case .directory: if !target.isRoot(path) { try target.makeDirectories(path) }
    case .symbolicLink: try target.createLink(path, target: linkTarget(entry.path))
    case .file:
      try copyContents(of: entry.path, to: path, in: target)
      try target.setMode(entry.status.mode & 0o100 == 0 ? 0o644 : 0o755, of: path)
    case .other:
      throw DrydockError(
        .badFixture, "a fixture has files, directories and links only", path: full(entry.path))
    }
  }
}

extension ContainerPath {
  /// Whether a fixture can have the settings file as YAML.
  var hasYAML: Bool {
    let name = nameString
    return name.hasSuffix(".plist") || name.hasSuffix(".preferences_pb") || preferencesBackup != nil
  }

  /// The path without a suffix of its name; nil when the name has another suffix, or nothing else.
  fileprivate func without(suffix: String) -> ContainerPath? {
    guard name.count > suffix.utf8.count, name.suffix(suffix.utf8.count) == Array(suffix.utf8)[...]
    else { return nil }
    return try? ContainerPath(bytes: bytes.dropLast(suffix.utf8.count))
  }
}

extension SQLDump {
  /// Makes the database of a fixture in a private directory and puts it in its place: in WAL mode, as apps have it,
  /// unless the SQL begins with another `PRAGMA journal_mode`, and closed; or with every row in the `-wal`, as an app
  /// leaves it that is killed.
  func build(
    _ path: ContainerPath, in target: Directory, onlyInWAL: Bool, file: String,
    _ settings: ContainerConfiguration
  ) throws {
    let temporary = try ScratchDirectory.temporary()
    let scratch = temporary.directory
    func place(_ name: ContainerPath, _ path: ContainerPath) throws {
      try scratch.copyContents(of: name, to: path, in: target)
      try target.setMode(0o644, of: path)
    }
    var (hasContent, hasMode) = (false, false)
    // The file is discarded on any failure, so that nothing waits for the disk.
    try build(
      at: scratch.full("database"), preparing: "PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON",
      settings: settings
    ) {
      db, word, statement in
      // What comes before the first content is about the file itself: its encoding, the size of its pages.
      if !hasContent, word == "PRAGMA" {
        hasMode = hasMode || statement.lowercased().contains("journal_mode")
      } else if !hasContent {
        hasContent = true
        if !hasMode { try db.execute(sql: "PRAGMA journal_mode = WAL") }
        try db.execute(sql: "PRAGMA wal_autocheckpoint = 0")
      }
      // In one transaction, unless the SQL says where its own begin, as dumps do.
      if !db.isInsideTransaction, !["PRAGMA", "BEGIN", "SAVEPOINT"].contains(word) {
        try db.beginTransaction()
      }
    } use: { _ in
      guard onlyInWAL else { return }
      guard try scratch.status("database-wal") != nil else {
        throw DrydockError(
          .badFixture, "`only-in-wal` needs WAL mode, and the SQL sets another `journal_mode`", path: file)
      }
      // While it is open: closing would move the rows into the main file.
      try place("database", path)
      try place("database-wal", path.withSuffix("-wal"))
    }
    if !onlyInWAL { try place("database", path) }
  }
}
