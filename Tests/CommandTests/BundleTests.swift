import Foundation
import TestSupport
import Testing

/// A container as Xcode downloads it (`.xcappdata`), and as other tools copy it (a directory named by bundle id).
@Suite("Bundles and bare directories")
struct BundleTests {
  enum Shape: String, CaseIterable, Sendable {
    case bundle = "Ada's iPhone.xcappdata"
    case bare = "com.example.notes"
  }

  /// Makes one; gives the path of its data root.
  private func make(_ shape: Shape, in lab: Lab) throws -> String {
    let root = shape == .bundle ? shape.rawValue + "/AppData" : shape.rawValue
    try lab.create(root)
    // Neither of them has Apple's metadata: the app is told by the bundle, or by the directory's name.
    try lab.remove(root + "/.com.apple.mobile_container_manager.metadata.plist")
    if shape == .bundle {
      try lab.write(
        shape.rawValue + "/AppDataInfo.plist",
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>CFBundleIdentifier</key><string>com.example.notes</string></dict></plist>
        """)
    }
    // Detected, not configured.
    let text = String(decoding: try lab.read("drydock.yaml"), as: UTF8.self)
    try lab.write("drydock.yaml", text.replacing(/(?m)^(app|layout|defaults):.*\n/, with: ""))
    return root
  }

  @Test("Inspect, snapshot, migrate, rollback and restore", arguments: Shape.allCases)
  func wholeLife(_ shape: Shape) throws {
    try Lab.with { lab in
      let root = try make(shape, in: lab)
      let whole = try lab.tree(shape.rawValue)
      let inspected = try JSONTests.document(lab.drydock("inspect", shape.rawValue, "--json"))
      let container = try #require(inspected["container"] as? [String: Any])
      #expect(container["root"] as? String == lab(root))
      #expect(container["app"] as? String == "com.example.notes")
      #expect(container["layout"] as? String == "ios")
      #expect(container["schema_version"] as? Int == 0)
      let instance = shape == .bundle ? "Ada's iPhone" : "com.example.notes"
      #expect(container["instance"] as? String == instance)

      let archive = try lab.snapshot(shape.rawValue)
      try lab.tree(shape.rawValue).expectSame(as: whole, comparing: TreeListing.untouched)
      let members = try lab.run(Tools.system("bsdtar"), "-tf", archive)
      #expect(members.contains("container/Documents/database.sqlite\n") && !members.contains("AppDataInfo"))

      try lab.succeed("migrate", shape.rawValue)
      #expect(lab.exists(root + "/" + Lab.newDatabase))
      // State is kept beside the bundle, never in it.
      if shape == .bundle { #expect(try lab.names(shape.rawValue) == ["AppData", "AppDataInfo.plist"]) }
      #expect(try lab.names().filter { $0.hasPrefix(".drydock-") }.count == 1)
      // A bundle's own directory saw one of its names change.
      try lab.succeed("rollback", shape.rawValue)
      try lab.tree(shape.rawValue).expectSame(as: whole, ignoringTimesOf: shape == .bundle ? [""] : [])

      try lab.remove(root + "/Documents/private.txt")
      try lab.write(root + "/Documents/new.txt", "new\n")
      try lab.succeed("restore", archive, shape.rawValue)
      try lab.tree(shape.rawValue).expectSame(as: whole, ignoringTimesOf: shape == .bundle ? [""] : [])
    }
  }

  @Test("A bundle's data root is the same container")
  func innerRoot() throws {
    try Lab.with { lab in
      let root = try make(.bundle, in: lab)
      let result = try lab.drydock("inspect", root, "--json")
      let container = try #require(try JSONTests.document(result)["container"] as? [String: Any])
      #expect(container["layout"] as? String == "ios")
    }
  }
}
