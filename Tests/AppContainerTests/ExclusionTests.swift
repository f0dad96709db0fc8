import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem

@Suite struct ExclusionTests {
  static let flag = ExtendedAttribute(
    name: "user.com.apple.metadata:com_apple_backup_excludeItem", value: Array("bplist00".utf8))

  /// Scans a container and gives each path's rule, "" for what is taken.
  private func scan(
    _ folder: TemporaryDirectory, exclude: [String] = [], include: [String] = [],
    layout: ContainerLayout? = .ios,
    entersExcluded: Bool = false
  ) throws -> [String: String] {
    var configuration = ContainerConfiguration()
    configuration.layout = layout
    configuration.exclude = PatternList(exclude)
    configuration.include = PatternList(include)
    let container = try Container(at: folder("c"), configuration: configuration)
    var found: [String: String] = [:]
    var scan = ContainerScan(
      try Directory(container.root), rules: ExclusionRules(container), entersExcluded: entersExcluded)
    while let entry = try scan.nextEntry() {
      found[entry.path.description] = entry.exclusion.map { "\($0.rule.rawValue) @\($0.origin)" } ?? ""
    }
    return found
  }

  private func make(_ folder: TemporaryDirectory, files: [ContainerPath], flagged: [ContainerPath] = [])
    throws
  {
    let root = try Directory(folder.path)
    try root.createDirectory("c")
    let container = try root.directory("c")
    for path in files {
      try container.createDirectories(path.parent)
      try container.create(path, Array("x".utf8))
    }
    for path in flagged { try container.setAttribute(Self.flag, of: path) }
  }

  @Test func iosLayout() throws {
    let folder = try TemporaryDirectory()
    try make(
      folder,
      files: [
        "Documents/a", "Library/b", "GeoJSON/c", "tmp/d", "SystemData/e", "StoreKit/f", "loose",
        "Library/Caches/g", "Library/SyncedPreferences/h", "Library/Saved Application State/i",
        "Library/SplashBoard/j", "Library/Application Support/Caches/k", "Documents/tmp/l",
      ])
    let found = try scan(folder, entersExcluded: true)
    for taken in [
      "Documents", "Documents/a", "Library/b", "GeoJSON/c", "Library/Application Support/Caches/k",
      "Documents/tmp/l",
    ] { #expect(found[taken] == "", "\(taken)") }
    for (path, origin) in [
      ("tmp/d", "tmp"), ("tmp", "tmp"), ("SystemData/e", "SystemData"), ("StoreKit/f", "StoreKit"),
      ("loose", "loose"), ("Library/Caches/g", "Library/Caches"),
      ("Library/SyncedPreferences/h", "Library/SyncedPreferences"),
      ("Library/SplashBoard/j", "Library/SplashBoard"),
    ] { #expect(found[path] == "layout @\(origin)", "\(path)") }
    // Without going in, only the top of what is excluded is visited.
    #expect(try scan(folder)["tmp/d"] == nil && scan(folder)["tmp"] == "layout @tmp")
    #expect(try scan(folder, layout: .generic)["tmp/d"] == "")
  }

  @Test func appleAttributeCoversWhatIsBelow() throws {
    let folder = try TemporaryDirectory()
    try make(
      folder, files: ["Documents/off/x/y", "Documents/one", "Documents/two"],
      flagged: ["Documents/off", "Documents/one"])
    let found = try scan(folder, entersExcluded: true)
    #expect(found["Documents/off/x/y"] == "apple-attribute @Documents/off")
    #expect(found["Documents/one"] == "apple-attribute @Documents/one")
    #expect(found["Documents/two"] == "")
  }

  @Test func ofAFlaggedDirectoryOnlyTheHistoryIsIncluded() throws {
    let folder = try TemporaryDirectory()
    try make(
      folder,
      files: [
        "Library/Application Support/.drydock/history.json", "Library/Application Support/big",
        "Library/Application Support/.drydock/other", "Library/x",
      ], flagged: ["Library/Application Support"])
    let found = try scan(folder)
    #expect(found["Library/Application Support/.drydock/history.json"] == "")
    #expect(found["Library/Application Support"] == "")
    #expect(found["Library/Application Support/big"] == "apple-attribute @Library/Application Support")
    #expect(
      found["Library/Application Support/.drydock/other"] == "apple-attribute @Library/Application Support")
    #expect(found["Library/x"] == "")
  }

  @Test func patternsAndIncludes() throws {
    let folder = try TemporaryDirectory()
    try make(
      folder,
      files: [
        "Documents/a.part", "Documents/sub/b.part", "Documents/keep.part", "Library/Caches/want/x",
        "Library/Caches/other", "Documents/off/in", "Documents/off/out",
      ], flagged: ["Documents/off"])
    let found = try scan(
      folder, exclude: ["Documents/**/*.part"],
      include: ["keep.part", "Library/Caches/want", "Documents/off/in"])
    #expect(found["Documents/a.part"] == "pattern @Documents/a.part")
    #expect(found["Documents/sub/b.part"] == "pattern @Documents/sub/b.part")
    #expect(found["Documents/keep.part"] == "")
    #expect(found["Library/Caches/want/x"] == "" && found["Library/Caches/want"] == "")
    #expect(found["Library/Caches/other"] == "layout @Library/Caches")
    #expect(found["Documents/off/in"] == "" && found["Documents/off/out"] == "apple-attribute @Documents/off")
  }

  @Test(arguments: [true, false]) func aDatabaseIsOneUnit(flagOnMain: Bool) throws {
    let folder = try TemporaryDirectory()
    try make(folder, files: ["Documents/.db_SUPPORT/_EXTERNAL_DATA/blob", "Documents/db.sqlite-other"])
    let made = try Command.run(
      try Tools.system("sqlite3"),
      [
        folder("c/Documents/db.sqlite"),
        "PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1);",
        ".shell kill -9 $PPID",
      ])
    #expect(made.signal == 9)
    let root = try Directory(folder("c/Documents"))
    try root.setAttribute(Self.flag, of: flagOnMain ? "db.sqlite" : "db.sqlite-wal")
    let found = try scan(folder, entersExcluded: true)
    for part in [
      "db.sqlite", "db.sqlite-wal", "db.sqlite-shm", ".db_SUPPORT", ".db_SUPPORT/_EXTERNAL_DATA/blob",
    ] {
      let rule = try #require(found["Documents/" + part], "\(part)")
      #expect(rule.isEmpty != flagOnMain, "\(part): \(rule)")
    }
    #expect(found["Documents/db.sqlite-other"] == "")
  }

  @Test func aNotesAppContainer() throws {
    let folder = try TemporaryDirectory()
    let made = try Command.run(try Tools.notesApp(), ["create", folder("c"), "--leave-wal"])
    #expect(made.succeeded, "\(made)")
    let before = try TreeListing(folder("c"))
    let container = try Container(at: folder("c"))
    var kinds: [String: ScannedEntry.Kind] = [:]
    var excluded: [String] = []
    var scan = ContainerScan(try Directory(container.root), rules: ExclusionRules(container))
    while let entry = try scan.nextEntry() {
      kinds[entry.path.description] = entry.kind
      if entry.exclusion != nil { excluded.append(entry.path.description) }
    }
    #expect(
      excluded.sorted() == [
        ".com.apple.mobile_container_manager.metadata.plist", "Library/Application Support/Downloads",
        "Library/Caches", "SystemData", "tmp",
      ])
    guard case .database(let unit) = kinds["Documents/database.sqlite"] else {
      Issue.record("no database")
      return
    }
    #expect(unit.sidecars.map(\.nameString) == ["database.sqlite-shm", "database.sqlite-wal"])
    #expect(kinds["Documents/database.sqlite-wal"] == .sidecar(of: "Documents/database.sqlite"))
    #expect(kinds["Documents/Latest.md"] == .symbolicLink)
    #expect(kinds["Documents/scan-\\xff\\xfe.dat"] == .file)
    #expect(try TreeListing(folder("c")).differences(from: before, comparing: TreeListing.untouched).isEmpty)
  }
}
