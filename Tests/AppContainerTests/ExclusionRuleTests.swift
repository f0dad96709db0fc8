import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem

/// Each rule, on a file, on a directory, inherited from it, and overridden by an include.
@Suite struct ExclusionRuleTests {
  /// A way to keep a path out, whatever the path is.
  struct Marker: Sendable, CustomTestStringConvertible {
    var name: String
    var rule: Exclusion.Rule
    /// Nil where the path's name does it, or a pattern.
    var attribute: ExtendedAttribute?
    var isNoDump = false
    var pattern: String?
    var testDescription: String { name }

    init(_ name: String, _ rule: Exclusion.Rule, attribute: String, _ value: [UInt8]) {
      (self.name, self.rule) = (name, rule)
      self.attribute = ExtendedAttribute(name: attribute, value: value)
    }

    init(_ name: String, _ rule: Exclusion.Rule, isNoDump: Bool = false, pattern: String? = nil) {
      (self.name, self.rule, self.isNoDump, self.pattern) = (name, rule, isNoDump, pattern)
    }

    func put(on path: ContainerPath, in root: Directory) throws {
      if let attribute { try root.setAttribute(attribute, of: path) }
      if isNoDump { try root.setNoDump(true, of: path) }
    }
  }

  static let apple = "user.com.apple.metadata:com_apple_backup_excludeItem"
  static let text = Array("com.apple.backupd".utf8)
  /// As Apple's systems write it: the binary property list of the text, 61 bytes.
  static let propertyList: [UInt8] =
    Array("bplist00".utf8) + [0x5f, 0x10, 0x11] + text + [8] + Array(repeating: 0, count: 6) + [1, 1]
    + [0, 0, 0, 0, 0, 0, 0, 1] + Array(repeating: 0, count: 8) + [0, 0, 0, 0, 0, 0, 0, 0x1c]

  static let markers = [
    Marker("Apple's property list", .appleAttribute, attribute: apple, propertyList),
    Marker("Apple's name with text", .appleAttribute, attribute: apple, text),
    Marker("Apple's name with true", .appleAttribute, attribute: apple, Array("true".utf8)),
    Marker("Apple's name with nothing", .appleAttribute, attribute: apple, []),
    Marker("Apple's old name", .appleAttribute, attribute: "user.com.apple.MobileBackup", [1]),
    Marker("robots", .robotsAttribute, attribute: "user.xdg.robots.backup", Array("false".utf8)),
    Marker("robots, a line", .robotsAttribute, attribute: "user.xdg.robots.backup", Array("false\n".utf8)),
    Marker("nodump", .noDump, isNoDump: true),
    Marker("a pattern", .pattern, pattern: "it"),
  ]

  static let harmless = [
    Marker("robots true", .robotsAttribute, attribute: "user.xdg.robots.backup", Array("true".utf8)),
    Marker("robots, nothing", .robotsAttribute, attribute: "user.xdg.robots.backup", []),
    Marker(
      "robots, two words", .robotsAttribute, attribute: "user.xdg.robots.backup", Array("false no".utf8)),
    Marker("old Apple's 0", .appleAttribute, attribute: "user.com.apple.MobileBackup", [0]),
    Marker("old Apple's nothing", .appleAttribute, attribute: "user.com.apple.MobileBackup", []),
    Marker("another attribute", .appleAttribute, attribute: apple + "2", text),
  ]

  @Test(arguments: markers) func onAFile(_ marker: Marker) throws {
    var sandbox = try ContainerSandbox(marker.pattern.map { [$0] } ?? [])
    try sandbox.make(["Documents/it", "Documents/other"])
    try marker.put(on: "Documents/it", in: sandbox.root)
    #expect(try sandbox.found("Documents/it") == "\(marker.rule.rawValue) @Documents/it")
    #expect(try sandbox.found("Documents/other") == "" && sandbox.found("Documents") == "")
    sandbox.configuration.include = ["Documents/it"]
    #expect(try sandbox.found("Documents/it") == "")
  }

  @Test(arguments: markers) func onADirectoryAndBelow(_ marker: Marker) throws {
    var sandbox = try ContainerSandbox(marker.pattern.map { [$0] } ?? [])
    try sandbox.make(["Documents/it/x/deep", "Documents/it/y", "Documents/other"])
    try marker.put(on: "Documents/it", in: sandbox.root)
    for path in ["Documents/it", "Documents/it/x", "Documents/it/x/deep", "Documents/it/y"] {
      #expect(try sandbox.found(path) == "\(marker.rule.rawValue) @Documents/it", "\(path)")
    }
    #expect(try sandbox.found("Documents/other") == "")
    // An include takes the path, and the directories above it as such.
    sandbox.configuration.include = ["Documents/it/x/deep"]
    #expect(
      try sandbox.found("Documents/it/x/deep") == "" && sandbox.found("Documents/it/x") == ""
        && sandbox.found("Documents/it") == "")
    #expect(try sandbox.found("Documents/it/y") == "\(marker.rule.rawValue) @Documents/it")
    // One of a directory takes all below, but for what it takes back.
    sandbox.configuration.include = ["Documents/it", "!Documents/it/x"]
    #expect(try sandbox.found("Documents/it") == "" && sandbox.found("Documents/it/y") == "")
    #expect(try sandbox.found("Documents/it/x/deep") == "\(marker.rule.rawValue) @Documents/it")
  }

  @Test(arguments: harmless) func whatDoesNotExclude(_ marker: Marker) throws {
    let sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/it"])
    try marker.put(on: "Documents/it", in: sandbox.root)
    #expect(try sandbox.found("Documents/it") == "")
  }

  /// Bare names cannot be set on Linux; they come from macOS and from archives.
  @Test func bareNamesCountToo() throws {
    let rule = { (name: String, value: [UInt8]) in
      Exclusion.rule(among: ["user.other", name]) { _ in value }?.rule
    }
    #expect(rule("com.apple.metadata:com_apple_backup_excludeItem", []) == .appleAttribute)
    #expect(rule("com.apple.MobileBackup", [1]) == .appleAttribute)
    #expect(rule("com.apple.MobileBackup", [0]) == nil)
    #expect(rule("user.user.com.apple.MobileBackup", [1]) == nil)
  }

  // MARK: Names and tags

  @Test func namesThatDeviceBackupsSkip() throws {
    var sandbox = try ContainerSandbox()
    let skipped = [
      "Library/Preferences/a.plist.AbC1234", "Documents/x.plist.1234567",
      "Library/Cookies/binarycookies_tmp_1.dat",
      "Documents/a_binarycookies_tmp.dat", "Documents/.dat.nosync0", "Documents/.dat.nosync-dir/inside",
    ]
    let taken = [
      "Library/Preferences/a.plist", "Documents/a.plist.123456", "Documents/a.plist.12345678",
      "Documents/binarycookies_tmp.txt", "Documents/a.dat.nosync", "Documents/.dat",
      "Library/Cookies/Cookies.binarycookies",
    ]
    try sandbox.make(skipped + taken)
    for path in skipped { #expect(try sandbox.found(path).hasPrefix("layout @"), "\(path)") }
    for path in taken { #expect(try sandbox.found(path) == "", "\(path)") }
    sandbox.configuration.layout = .generic
    for path in skipped { #expect(try sandbox.found(path) == "", "\(path)") }
  }

  static let signature = "Signature: 8a477f597d28d172789f06886806bc55"

  @Test func aTaggedDirectoryStaysWithItsTagAndNothingElse() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/c/a", "Documents/c/d/b", "Documents/n", "CACHEDIR.TAG"])
    try sandbox.root.create("Documents/c/CACHEDIR.TAG", Array((Self.signature + "\n# more").utf8))
    #expect(try sandbox.found("Documents/c") == "" && sandbox.found("Documents/c/CACHEDIR.TAG") == "")
    #expect(try sandbox.found("Documents/c/a") == "cachedir-tag @Documents/c")
    #expect(try sandbox.found("Documents/c/d/b") == "cachedir-tag @Documents/c")
    #expect(try sandbox.found("Documents/n") == "")
    sandbox.configuration.include = ["Documents/c/d/b"]
    #expect(try sandbox.found("Documents/c/d/b") == "" && sandbox.found("Documents/c/d") == "")
    #expect(try sandbox.found("Documents/c/a") == "cachedir-tag @Documents/c")
  }

  @Test(arguments: ["short", "long", "directory", "link", "root"]) func invalidTags(_ how: String) throws {
    var sandbox = try ContainerSandbox()
    sandbox.configuration.layout = .generic
    try sandbox.make(["c/a"])
    let tag: ContainerPath = how == "root" ? "CACHEDIR.TAG" : "c/CACHEDIR.TAG"
    switch how {
    case "short": try sandbox.root.create(tag, Array(Self.signature.utf8.dropLast()))
    case "long": try sandbox.root.create(tag, Array((" " + Self.signature).utf8))
    case "directory": try sandbox.root.createDirectory(tag)
    case "link":
      try sandbox.root.create("real", Array(Self.signature.utf8))
      try sandbox.root.createLink(tag, target: Array("../real".utf8))
    default: try sandbox.root.create(tag, Array(Self.signature.utf8))
    }
    #expect(try sandbox.found("c/a") == "")
  }

  // MARK: Order, and what nothing overrides

  @Test func patternsAreReadInOrder() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/a.part", "Documents/keep.part", "Documents/d/keep.part", "Documents/x/y"])
    sandbox.configuration.exclude = ["*.part", "!keep.part", "Documents/d", "x/", "!x/y"]
    #expect(try sandbox.found("Documents/a.part") == "pattern @Documents/a.part")
    #expect(try sandbox.found("Documents/keep.part") == "")
    // As with git, nothing comes back below a directory that is out.
    #expect(try sandbox.found("Documents/d/keep.part") == "pattern @Documents/d")
    #expect(try sandbox.found("Documents/x/y") == "pattern @Documents/x")
  }

  @Test func nothingOverridesDrydocksOwnState() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make([".drydock-state/journal", "Documents/.drydock-state/a"])
    sandbox.configuration.include = ["**"]
    #expect(try sandbox.found(".drydock-state") == "state @.drydock-state")
    #expect(try sandbox.found(".drydock-state/journal") == "state @.drydock-state")
    #expect(try sandbox.found("Documents/.drydock-state/a") == "")
  }

  @Test func negatedIncludes() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(["tmp/a/b/c/d", "tmp/a/b/e", "tmp/f"])
    sandbox.configuration.include = ["tmp/a", "!tmp/a/b", "tmp/a/b/c"]
    #expect(try sandbox.found("tmp/a") == "" && sandbox.found("tmp/a/b/c/d") == "")
    #expect(try sandbox.found("tmp/a/b") == "" && sandbox.found("tmp") == "")
    #expect(try sandbox.found("tmp/a/b/e") == "layout @tmp" && sandbox.found("tmp/f") == "layout @tmp")
  }

  @Test func aDatabasesPartsGoTogether() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/.db_SUPPORT/_EXTERNAL_DATA/blob", "tmp/.db_SUPPORT/_EXTERNAL_DATA/blob"])
    for folder in ["Documents", "tmp"] {
      try Command.succeed(
        try Tools.system("sqlite3"), [sandbox.path + "/\(folder)/db.sqlite", "CREATE TABLE t (x)"])
      try sandbox.root.create(ContainerPath("\(folder)/db.sqlite-wal"), [])
    }
    let flag = ExtendedAttribute(name: Self.apple, value: [])
    for part in ["db.sqlite-wal", ".db_SUPPORT", ".db_SUPPORT/_EXTERNAL_DATA/blob"] {
      try sandbox.root.setAttribute(flag, of: ContainerPath("Documents/" + part))
    }
    // Flags on parts say nothing: the main file has none.
    for part in ["db.sqlite", "db.sqlite-wal", ".db_SUPPORT", ".db_SUPPORT/_EXTERNAL_DATA/blob"] {
      #expect(try sandbox.found("Documents/" + part) == "", "\(part)")
      #expect(try sandbox.found("tmp/" + part) == "layout @tmp", "\(part)")
    }
    sandbox.configuration.include = ["tmp/db.sqlite"]
    for part in ["db.sqlite", "db.sqlite-wal", ".db_SUPPORT", ".db_SUPPORT/_EXTERNAL_DATA/blob"] {
      #expect(try sandbox.found("tmp/" + part) == "", "\(part)")
    }
  }

  // MARK: One path

  @Test func explainAgreesWithTheScan() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make([
      "Documents/a", "Documents/off/in/x", "Documents/off/out", "Documents/c/CACHEDIR.TAG/x",
      "Library/Caches/y",
      "tmp/z", "Library/Application Support/.drydock/history.json", "Documents/a.part",
    ])
    try sandbox.root.setAttribute(ExtendedAttribute(name: Self.apple, value: []), of: "Documents/off")
    sandbox.configuration.include = ["Documents/off/in"]
    sandbox.configuration.exclude = ["*.part"]
    for (path, rule) in try sandbox.scan() {
      #expect(try sandbox.explained(path) == rule, "\(path)")
    }
  }

  @Test func explainMissingPaths() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/off/in", "Documents/d/y"])
    try sandbox.root.setAttribute(ExtendedAttribute(name: Self.apple, value: []), of: "Documents/off")
    sandbox.configuration.exclude = ["*.part", "build/"]
    #expect(try sandbox.explained("Documents/off/new/file") == "apple-attribute @Documents/off")
    #expect(try sandbox.explained("Library/Caches/new") == "layout @Library/Caches")
    #expect(try sandbox.explained("Documents/new.part") == "pattern @Documents/new.part")
    #expect(try sandbox.explained("Documents/build") == "")
    #expect(try sandbox.explained("Documents/build", isDirectory: true) == "pattern @Documents/build")
    #expect(try sandbox.explained("Documents/build/x") == "pattern @Documents/build")
    #expect(try sandbox.explained("Documents/d/y/z") == "")
    sandbox.configuration.include = ["Documents/off/new"]
    #expect(try sandbox.explained("Documents/off/new/file") == "")
  }
}
