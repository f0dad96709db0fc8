import AppStores
import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem

@Suite struct ExclusionTests {
  private static let flag = ExtendedAttribute(name: ExclusionRuleTests.apple, value: Array("bplist00".utf8))

  @Test func iosLayout() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make([
      "Documents/a", "Library/b", "GeoJSON/c", "tmp/d", "SystemData/e", "StoreKit/f", "loose",
      "Library/Caches/g", "Library/SyncedPreferences/h", "Library/Saved Application State/i",
      "Library/SplashBoard/j", "Library/Application Support/Caches/k", "Documents/tmp/l",
    ])
    let found = try sandbox.scan()
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
    #expect(try sandbox.found("tmp/d") == "layout @tmp")
    sandbox.configuration.layout = .generic
    #expect(try sandbox.found("tmp/d") == "")
  }

  @Test func ofAFlaggedDirectoryOnlyTheHistoryIsIncluded() throws {
    let sandbox = try ContainerSandbox()
    let directory = "Library/Application Support"
    try sandbox.make(
      ["/.drydock/history.json", "/big", "/.drydock/other"].map { directory + $0 } + ["Library/x"])
    try sandbox.root.setAttribute(Self.flag, of: ContainerPath(directory))
    for path in [directory + "/.drydock/history.json", directory, "Library/x"] {
      #expect(try sandbox.found(path) == "", "\(path)")
    }
    for path in [directory + "/big", directory + "/.drydock/other"] {
      #expect(try sandbox.found(path) == "apple-attribute @\(directory)", "\(path)")
    }
  }

  @Test(arguments: [true, false]) func aDatabaseIsOneUnit(flagOnMain: Bool) throws {
    let sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/.db_SUPPORT/_EXTERNAL_DATA/blob", "Documents/db.sqlite-other"])
    let made = try Command.run(
      try Tools.system("sqlite3"),
      [
        sandbox.path + "/Documents/db.sqlite",
        "PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (1);",
        ".shell kill -9 $PPID",
      ])
    #expect(made.signal == 9)
    try sandbox.root.setAttribute(
      Self.flag, of: flagOnMain ? "Documents/db.sqlite" : "Documents/db.sqlite-wal")
    let found = try sandbox.scan()
    for part in [
      "db.sqlite", "db.sqlite-wal", "db.sqlite-shm", ".db_SUPPORT", ".db_SUPPORT/_EXTERNAL_DATA/blob",
    ] {
      let rule = try #require(found["Documents/" + part], "\(part)")
      #expect(rule.isEmpty != flagOnMain, "\(part): \(rule)")
    }
    #expect(found["Documents/db.sqlite-other"] == "")
  }

  /// A snapshot knows the attributes of the main file from its parent.
  @Test(arguments: [true, false])
  func `A database has one decision, also when a flag is set during the scan`(hasExternal: Bool) throws {
    let sandbox = try ContainerSandbox()
    let (external, main): (ContainerPath, ContainerPath) = ("Documents/.db_SUPPORT", "Documents/db.sqlite")
    if hasExternal { try sandbox.make(["\(external)/_EXTERNAL_DATA/blob"]) }
    try sandbox.make(["\(main)-wal"])
    try sandbox.root.create(main, DatabaseFormat.headerMagic + [UInt8](repeating: 0, count: 496))
    try sandbox.root.setAttribute(Self.flag, of: main)
    var scan = ContainerScan(
      sandbox.root, rules: ExclusionRules(try sandbox.container()),
      attributes: { path, _ in path == main ? [] : nil })
    var found: [ContainerPath: Bool] = [:]
    while let entry = try scan.nextEntry() { found[entry.path] = entry.exclusion != nil }
    // The first one that is visited decides.
    #expect(found[main] == hasExternal && found[main.withSuffix("-wal")] == hasExternal, "\(found)")
    #expect(found[external] == (hasExternal ? true : nil))
  }

  @Test func `A name that a listing has twice is once in its group`() {
    let names: [ContainerPath] = ["CURRENT", "LOG", "LOG", "MANIFEST-1"]
    let groups = FileGroup.find([], files: names, found: Set(names)) { _ in false }
    #expect(groups["LOG"]?.names == ["CURRENT", "LOG", "MANIFEST-1"])
  }

  @Test func aNotesAppContainer() throws {
    let folder = try TemporaryDirectory()
    try Command.succeed(try Tools.notesApp(), ["create", folder("c"), "--leave-wal"])
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
