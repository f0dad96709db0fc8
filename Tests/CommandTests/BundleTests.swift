import Foundation
import TestSupport
import Testing

/// A container as Xcode downloads it (`.xcappdata`), and as other tools copy it (a directory named by bundle id).
@Suite struct BundleTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  enum Shape: String, CaseIterable, Sendable {
    case bundle = "Ada's iPhone.xcappdata"
    case bare = "com.example.notes"
  }

  private func make(_ shape: Shape) throws -> String {
    let root = shape == .bundle ? shape.rawValue + "/AppData" : shape.rawValue
    try sandbox.create(root)
    // Neither of them has Apple's metadata: the app is told by the bundle, or by the directory's name.
    try sandbox.remove(root + "/.com.apple.mobile_container_manager.metadata.plist")
    if shape == .bundle {
      try sandbox.write(
        shape.rawValue + "/AppDataInfo.plist",
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>com.example.notes</string></dict></plist>
        """)
    }
    // Detected, not configured.
    let text = try sandbox.text("drydock.yaml")
    try sandbox.write("drydock.yaml", text.replacing(/(?m)^(app|layout|defaults):.*\n/, with: ""))
    return root
  }

  @Test(arguments: Shape.allCases)
  func `Inspect, snapshot, migrate, rollback and restore`(_ shape: Shape) throws {
    let root = try make(shape)
    let whole = try sandbox.tree(shape.rawValue)
    let inspected = try sandbox.document("inspect", shape.rawValue)
    let container = inspected["container"]
    #expect(container["root"].text == sandbox(root))
    #expect(container["app"].text == "com.example.notes")
    #expect(container["layout"].text == "ios")
    #expect(container["schema_version"].number == 0)
    let instance = shape == .bundle ? "Ada's iPhone" : "com.example.notes"
    #expect(container["instance"].text == instance)

    let archive = try sandbox.snapshot(shape.rawValue)
    try sandbox.tree(shape.rawValue).expectSame(as: whole, comparing: TreeListing.untouched)
    let members = try sandbox.run(Tools.system("bsdtar"), "-tf", archive)
    #expect(members.contains("container/Documents/database.sqlite\n") && !members.contains("AppDataInfo"))

    try sandbox.succeed("migrate", shape.rawValue)
    #expect(sandbox.exists(root + "/" + Sandbox.newDatabase))
    // State is kept beside the bundle, never in it.
    if shape == .bundle { #expect(try sandbox.names(shape.rawValue) == ["AppData", "AppDataInfo.plist"]) }
    #expect(try sandbox.names().filter { $0.hasPrefix(".drydock-") }.count == 1)
    // A bundle's own directory saw one of its names change.
    try sandbox.succeed("rollback", shape.rawValue)
    try sandbox.tree(shape.rawValue).expectSame(as: whole, ignoringTimesOf: shape == .bundle ? [""] : [])

    try sandbox.remove(root + "/Documents/private.txt")
    try sandbox.write(root + "/Documents/new.txt", "new\n")
    try sandbox.succeed("restore", archive, shape.rawValue)
    try sandbox.tree(shape.rawValue).expectSame(as: whole, ignoringTimesOf: shape == .bundle ? [""] : [])
  }

  @Test func `A restore makes a bundle of a new path that is named like one`() throws {
    _ = try make(.bare)
    let archive = try sandbox.snapshot("com.example.notes")
    try sandbox.succeed("restore", archive, "Plain")
    let plain = try sandbox.tree("Plain")
    let trial = try sandbox.drydock("restore", archive, "New.xcappdata/", "--dry-run").expect()
    #expect(!sandbox.exists("New.xcappdata"), "\(trial)")

    try sandbox.succeed("restore", archive, "New.xcappdata/")
    #expect(try sandbox.names("New.xcappdata") == ["AppData", "AppDataInfo.plist"])
    try sandbox.tree("New.xcappdata/AppData").expectSame(as: plain, ignoringTimesOf: [""])
    let info = try sandbox.text("New.xcappdata/AppDataInfo.plist")
    #expect(
      info.contains("<key>CFBundleIdentifier</key>") && info.contains("<string>com.example.notes</string>"))
    let container = try sandbox.document("inspect New.xcappdata")["container"]
    #expect(container["app"].text == "com.example.notes" && container["instance"].text == "New")
    let again = try sandbox.succeed("restore", archive, "New.xcappdata")
    #expect(again.contains("nothing to change"), "\(again)")
    // The bundle stays, so that the restore can be redone into it.
    try sandbox.succeed("rollback New.xcappdata")
    try sandbox.succeed("rollback New.xcappdata --redo")
    try sandbox.tree("New.xcappdata/AppData").expectSame(as: plain, ignoringTimesOf: [""])
  }

  @Test(arguments: ["staged", "committed", "exchanged"])
  func `A killed restore leaves no part of a bundle's data; the next completes it`(_ point: String) throws {
    _ = try make(.bare)
    let archive = try sandbox.snapshot("com.example.notes")
    try sandbox.succeed("restore", archive, "Plain")
    let words = ["restore", archive, "New.xcappdata"]
    try sandbox.kill(words, at: point)
    try sandbox.succeed("recover New.xcappdata")
    try sandbox.succeed(words)
    #expect(try sandbox.names("New.xcappdata") == ["AppData", "AppDataInfo.plist"])
    try sandbox.tree("New.xcappdata/AppData").expectSame(as: sandbox.tree("Plain"), ignoringTimesOf: [""])
  }

  @Test func `A restore that fails leaves no bundle`() throws {
    _ = try make(.bare)
    try sandbox.succeed("snapshot com.example.notes -o whole.tar.zst")
    var bytes = try sandbox.read("whole.tar.zst")
    for place in bytes.count / 3..<bytes.count / 3 + 100 { bytes[place] ^= 0xFF }
    try sandbox.write("damaged.tar.zst", bytes: bytes)
    let failed = try sandbox.drydock("restore damaged.tar.zst Failed.xcappdata").expect(exit: 4)
    #expect(!sandbox.exists("Failed.xcappdata"), "\(failed)")
  }
}
