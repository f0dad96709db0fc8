import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer
@testable import FileSystem

@Suite struct ContainerDetectionTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private func plist(_ values: [String: String]) throws -> [UInt8] {
    Array(try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0))
  }

  @Test func metadataNamesAppAndInstance() throws {
    let root = try Directory(folder.path)
    try root.createDirectory("x")
    try root.create(
      "x/.com.apple.mobile_container_manager.metadata.plist",
      plist(["MCMMetadataIdentifier": "com.example.a", "MCMMetadataUUID": "UU-ID"]))
    let container = try Container(at: folder("x"))
    #expect(container.layout == .ios && container.app == "com.example.a" && container.instance == "UU-ID")
    #expect(container.root == folder("x") && container.anchor == folder("x"))
    #expect(container.standardDefaults == "Library/Preferences/com.example.a.plist")
    #expect(try Container(at: folder("x"), instance: "mine").instance == "mine")
    // Metadata that cannot be read names nothing, and is no error.
    try root.removeFile("x/.com.apple.mobile_container_manager.metadata.plist")
    try root.create("x/.com.apple.mobile_container_manager.metadata.plist", Array("bplist00".utf8))
    let damaged = try Container(at: folder("x"))
    #expect(damaged.layout == .ios && damaged.app == "x")
  }

  @Test func bundle() throws {
    let root = try Directory(folder.path)
    try root.createDirectories("My App.xcappdata/AppData/Documents")
    try root.create("My App.xcappdata/AppDataInfo.plist", plist(["CFBundleIdentifier": "com.example.b"]))
    for path in ["My App.xcappdata", "My App.xcappdata/", "My App.xcappdata/AppData"] {
      let container = try Container(at: folder(path))
      #expect(container.layout == .ios && container.app == "com.example.b")
      #expect(container.root == folder("My App.xcappdata/AppData"))
      #expect(container.anchor == folder("My App.xcappdata"))
      #expect(container.instance == "My App")
    }
    try root.createDirectory("no.xcappdata")
    let plain = try Container(at: folder("no.xcappdata"))
    #expect(plain.layout == .generic && plain.root == plain.anchor)
  }

  @Test func aDataStoreIsAndroids() throws {
    let root = try Directory(folder.path)
    for path in ["app/files/datastore", "other/files/datastore"] as [ContainerPath] {
      try root.createDirectories(path)
    }
    try root.create("app/files/datastore/settings.preferences_pb", [])
    try root.create("other/files/datastore/cache.pb", [])
    let (app, other) = (try Container(at: folder("app")), try Container(at: folder("other")))
    #expect(app.layout == .android && other.layout == .generic)
  }

  @Test func bareAndGeneric() throws {
    let root = try Directory(folder.path)
    for path in [
      "com.example.bare/Documents", "com.example.bare/Library", "plain/Documents",
      "one/Library/Preferences",
      "one/Documents", "two.words/sub",
    ] as [ContainerPath] { try root.createDirectories(path) }
    let bare = try Container(at: folder("com.example.bare"))
    #expect(bare.layout == .ios && bare.app == "com.example.bare" && bare.instance == "com.example.bare")
    let plain = try Container(at: folder("plain"))
    #expect(plain.layout == .generic && plain.app == "plain" && plain.standardDefaults == nil)
    try root.create("one/Library/Preferences/com.example.one.plist", plist([:]))
    try root.create("one/Library/Preferences/com.apple.x.plist", plist([:]))
    #expect(try Container(at: folder("one")).app == "com.example.one")
    try root.create("one/Library/Preferences/other.plist", plist([:]))
    #expect(try Container(at: folder("one")).app == "one")
    #expect(try Container(at: folder("two.words")).app == "two.words")
  }

  @Test func aLinkToTheContainerIsResolvedAndOneInItIsFine() throws {
    let root = try Directory(folder.path)
    try root.createDirectories("real/Documents")
    try root.createDirectories("elsewhere/Preferences")
    try root.createLink("link", target: Array("real".utf8))
    try root.createLink("chain", target: Array("link".utf8))
    #expect(try Container(at: folder("chain")).root == folder("real"))
    try root.createLink("real/Library", target: Array("../elsewhere".utf8))
    #expect(try Container(at: folder("real")).layout == .generic)
  }

  @Test func otherPathsAreRejected() throws {
    let root = try Directory(folder.path)
    try root.create("file", [])
    try root.createLink("dangling", target: Array("nowhere".utf8))
    try root.createLink("loop", target: Array("loop".utf8))
    let table: [(String, DrydockError.Code)] = [
      (folder("missing"), .notFound), (folder("dangling"), .notFound), (folder("file"), .notAContainer),
      (folder("file/x"), .notAContainer), ("/", .notAContainer), (folder("loop"), .unsupported),
      ("", .notFound),
    ]
    for (path, expected) in table { expectError(expected) { try Container(at: path) } }
  }

  @Test func configurationOverrides() throws {
    let root = try Directory(folder.path)
    try root.createDirectories("c/deep")
    try root.create(
      "c/drydock.yaml",
      Array("app: com.example.set\nlayout: ios\ndatabases: {notes: [a.sqlite, b.sqlite]}\n".utf8))
    let file = try #require(ContainerConfiguration.nearestFile(from: folder("c/deep")))
    let configuration = try ContainerConfiguration(file: file, sections: [])
    let container = try Container(at: folder("c"), configuration: configuration)
    #expect(container.app == "com.example.set" && container.layout == .ios)
    #expect(try container.databasePlaces("notes") == ["a.sqlite", "b.sqlite"])
    #expect { try container.databasePlaces("note") } throws: {
      ($0 as? DrydockError)?.message.contains("notes") ?? false
    }
  }
}
