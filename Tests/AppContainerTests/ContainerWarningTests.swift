import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem
@testable import Formats

@Suite struct ContainerWarningTests {
  /// A JPEG's start with a maker in its Exif data, as long as a photo.
  private static func photo(maker: UInt8 = 0x0f, size: Int = 300_000) -> [UInt8] {
    let exif = Array("Exif\0\0".utf8)
    let tiff: [UInt8] = [0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1, 0x01, maker, 0, 2, 0, 0, 0, 4, 0x41, 0, 0, 0]
    let start: [UInt8] = [0xff, 0xd8, 0xff, 0xe1, 0, 40] + exif + tiff
    return start + [UInt8](repeating: 7, count: size - start.count)
  }

  private func warnings(_ sandbox: ContainerSandbox) throws -> [String] {
    var excluded: [(ContainerPath, Exclusion)] = []
    let container = try sandbox.container()
    var scan = ContainerScan(sandbox.root, rules: ExclusionRules(container))
    while let entry = try scan.nextEntry() {
      if let exclusion = entry.exclusion { excluded.append((entry.path, exclusion)) }
    }
    return ContainerWarning.find(in: container, excluded: excluded).map {
      "\($0.kind.rawValue) \($0.path?.description ?? "-")"
    }
  }

  private func put(_ sandbox: ContainerSandbox, _ path: ContainerPath, _ bytes: [UInt8]) throws {
    try sandbox.root.createDirectories(path.parent, mode: 0o755)
    try sandbox.root.create(path, bytes)
  }

  private func database(_ sandbox: ContainerSandbox, _ path: String, _ table: String) throws {
    try sandbox.root.createDirectories(ContainerPath(path).parent, mode: 0o755)
    try Command.succeed(
      try Tools.system("sqlite3"),
      [sandbox.path + "/" + path, "PRAGMA journal_mode=WAL; CREATE TABLE \(table) (x)"])
  }

  /// As large as nobody's settings should be, and some are.
  @Test func secretsBehindMegabytesOfSettings() throws {
    let sandbox = try ContainerSandbox()
    let lines = (0..<22_000).map {
      "<key>a\($0)</key><string>\(String(repeating: "word ", count: 40))</string>"
    }
    try put(
      sandbox, "Library/Preferences/com.example.app.plist",
      Array(
        ("<?xml version=\"1.0\" encoding=\"UTF-8\"?><plist version=\"1.0\"><dict>" + lines.joined()
          + "<key>zz_auth_token</key><string>sk_live_4eC39HqLyjWDarjtT1zdp7dc</string></dict></plist>").utf8
      ))
    #expect(try warnings(sandbox) == ["secret Library/Preferences/com.example.app.plist"])
  }

  @Test func userFilesInEmptiedPlaces() throws {
    let sandbox = try ContainerSandbox()
    try put(sandbox, "tmp/report.pdf", Array("%PDF-1.7".utf8))
    try put(sandbox, "Library/Caches/deep/Letter.DOCX", [0x50, 0x4b, 3, 4])
    try put(sandbox, "Library/Caches/IMG_0001.JPG", Self.photo())
    try database(sandbox, "tmp/notes.db", "note")
    #expect(
      try warnings(sandbox) == [
        "photo Library/Caches/IMG_0001.JPG", "document Library/Caches/deep/Letter.DOCX",
        "database tmp/notes.db",
        "document tmp/report.pdf",
      ])
  }

  @Test func fewFalseAlarms() throws {
    var sandbox = try ContainerSandbox()
    // Backed up, or left out on purpose.
    try put(sandbox, "Documents/report.pdf", Array("%PDF-1.7".utf8))
    try put(sandbox, "Documents/off/report.pdf", Array("%PDF-1.7".utf8))
    sandbox.configuration.exclude = ["off"]
    // By name only, thumbnails, pictures without a camera, the system's own.
    try put(sandbox, "Library/Caches/fake.pdf", Array("<html>".utf8))
    try put(sandbox, "Library/Caches/thumb.jpg", Self.photo(size: 20_000))
    try put(sandbox, "Library/Caches/banner.jpg", Self.photo(maker: 0x10))
    try put(sandbox, "Library/Caches/com.apple.nsurlsessiond/file.pdf", Array("%PDF-1.7".utf8))
    try put(sandbox, "Library/Caches/WebKit/file.pdf", Array("%PDF-1.7".utf8))
    try database(sandbox, "Library/Caches/com.example/Cache.db", "cfurl_cache_response")
    try put(sandbox, "tmp/notes.txt", Array("text".utf8))
    #expect(try warnings(sandbox) == [])
  }

  @Test func settingsThatLookLikeSecrets() throws {
    var sandbox = try ContainerSandbox()
    let token = "hunter2-hunter2"
    func file(_ settings: PropertyListDictionary, _ format: PropertyListFile.Format = .binary) throws
      -> [UInt8]
    {
      try PropertyListFile(format: format, root: settings).encoded()
    }
    let nested = try file(["deep": .array([.dictionary(["pin": .string("4821")])])])
    try put(
      sandbox, "Library/Preferences/a.plist",
      file([
        "auth_token": .string(token), "state": .data(nested), "theme": .string("dark"),
        "showPassword": .boolean(true), "tokenCount": .integer(48_213),
        "url": .string("https://a:\(token)@x.org"),
        "key": .string("9f86d081884c7d659a2feaa0c55ad015"),
      ]))
    try put(sandbox, "Library/Preferences/b.plist", file(["password": .string(token)], .xml))
    try put(sandbox, "Library/Preferences/damaged.plist", Array("bplist00 password \(token)".utf8))
    try put(sandbox, "Library/Preferences/notes.txt", Array("password: \(token)".utf8))
    try put(sandbox, "Documents/suite.plist", file(["apiKey": .string(token)]))
    try put(sandbox, "Documents/other.plist", file(["apiKey": .string(token)]))
    try put(sandbox, "Documents/off/suite.plist", file(["apiKey": .string(token)]))
    try put(sandbox, "Library/Preferences/dir.plist/x", [])
    sandbox.configuration.defaults = [
      "group": "Documents/suite.plist", "off": "Documents/off/suite.plist", "gone": "Documents/gone.plist",
    ]
    sandbox.configuration.exclude = ["off"]
    let container = try sandbox.container()
    let excluded = [
      (ContainerPath("Documents/off"), Exclusion(rule: .pattern, origin: "Documents/off", detail: "off"))
    ]
    let found = ContainerWarning.find(in: container, excluded: excluded)
    #expect(
      found.map {
        "\($0.path?.description ?? "-") \($0.message.split(separator: "`").dropFirst().first ?? "")"
      } == [
        "Documents/suite.plist apiKey", "Library/Preferences/a.plist auth_token",
        "Library/Preferences/a.plist state", "Library/Preferences/a.plist url",
        "Library/Preferences/b.plist password",
      ])
    #expect(found.allSatisfy { $0.kind == .secret && !$0.description.contains("hunter2") })
    #expect(ContainerWarning.find(in: container, excluded: excluded, secrets: false).isEmpty)
  }

  /// A text that is referred to a thousand times is small in a binary property list, and large to who reads it.
  @Test func theSearchOfExpandingSettingsIsBounded() throws {
    let sandbox = try ContainerSandbox()
    let text = PropertyListValue.string(String(repeating: "not a secret ", count: 1_000))
    let list = PropertyListValue.array(Array(repeating: text, count: 1_000))
    try put(
      sandbox, "Library/Preferences/a.plist",
      PropertyListFile(root: ["a": list, "password": .string("hunter2")]).encoded())
    #expect(try sandbox.root.contents("Library/Preferences/a.plist").count < 50_000)
    let found = ContainerWarning.find(in: try sandbox.container(), excluded: [])
    #expect(found.count == 1)
    #expect(
      found.first?.message.hasPrefix("the search for secrets stopped, at the setting `a`, since") == true)
  }

  @Test func flagsOnTheRoot() throws {
    let sandbox = try ContainerSandbox()
    try sandbox.make(["Documents/a"])
    try sandbox.root.setNoDump(true, of: .root)
    try sandbox.root.create("CACHEDIR.TAG", Array(ExclusionRuleTests.signature.utf8))
    #expect(try warnings(sandbox) == ["root-flag .", "root-flag ."] && sandbox.found("Documents/a") == "")
  }
}
