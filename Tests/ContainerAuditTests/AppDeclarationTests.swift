import DrydockErrors
import TestSupport
import Testing

@testable import ContainerAudit
@testable import FileSystem
@testable import Formats

@Suite("What an app declares") struct AppDeclarationTests {
  private static let groups: PropertyListDictionary = [
    "com.apple.security.application-groups": ["group.com.example.notes"]
  ]

  private static func xml(_ values: PropertyListDictionary) throws -> [UInt8] {
    try PropertyListFile(format: .xml, root: values).encoded()
  }

  private func with<T>(_ files: [String: [UInt8]], _ body: (String) throws -> T) throws -> T {
    try TemporaryDirectory.with { folder in
      let root = try Directory(folder.path)
      for (path, bytes) in files {
        let path = try ContainerPath(path)
        try root.createDirectories(path.parent)
        try root.create(path, bytes)
      }
      return try body(folder.path)
    }
  }

  @Test("A bundle's property lists, its SDKs' manifests, and the entitlements of its profile")
  func bundle() throws {
    let profile = [0x30, 0x80, 0] + (try Self.xml(["Entitlements": .dictionary(Self.groups)])) + [0, 1, 2]
    let files: [String: [UInt8]] = [
      "Payload/Notes.app/Info.plist": try Self.xml(["CFBundleIdentifier": "com.example.notes"]),
      "Payload/Notes.app/PrivacyInfo.xcprivacy": try Self.xml(["NSPrivacyTracking": false]),
      "Payload/Notes.app/Frameworks/A.framework/PrivacyInfo.xcprivacy": try Self.xml([
        "NSPrivacyTracking": true
      ]),
      "Payload/Notes.app/embedded.mobileprovision": profile,
    ]
    try with(files) { path in
      for start in [path, path + "/Payload", path + "/Payload/Notes.app"] {
        let app = try AppDeclaration(bundle: start, shown: start)
        #expect(app.info?.values["CFBundleIdentifier"] == "com.example.notes")
        #expect(app.privacy?.count == 2)
        #expect(app.hasOwnManifest)
        #expect(app.entitlements?.values == Self.groups)
        #expect(app.notes.count == 1, "a profile allows more than the app may have")
      }
    }
  }

  @Test("An SDK's manifest is not the app's")
  func frameworkManifest() throws {
    let files: [String: [UInt8]] = [
      "Notes.app/Info.plist": try Self.xml([:]),
      "Notes.app/A.bundle/PrivacyInfo.xcprivacy": try Self.xml([:]),
    ]
    try with(files) { path in
      let sandbox = try AuditSandbox()
      try sandbox.settings(["theme": "dark"])
      sandbox.app = try AppDeclaration(bundle: path + "/Notes.app", shown: "Notes.app")
      #expect(try sandbox.audit().findings.map(\.rule) == [.privacyManifestMissing])
    }
  }

  private static func big(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * (3 - $0))) }
  }

  private static func little(_ number: Int) -> [UInt8] { big(number).reversed() }

  /// A program of no instructions, with a signature of these entitlements.
  private static func program(_ entitlements: [UInt8], blobLength: Int? = nil) -> [UInt8] {
    let blob = big(0xfade_7171) + big(blobLength ?? entitlements.count + 8) + entitlements
    let signature = big(0xfade_0cc0) + big(20 + blob.count) + big(1) + big(5) + big(20) + blob
    let other = little(0x19) + little(16) + little(0) + little(0)
    let command = little(0x1d) + little(16) + little(32 + 32) + little(signature.count)
    let header =
      little(0xfeed_facf) + little(0x0100_000c) + little(0) + little(2) + little(2) + little(32) + little(0)
      + little(0)
    return header + other + command + signature
  }

  @Test("The entitlements of the signature come first, in a thin and in a universal program")
  func signature() throws {
    let thin = Self.program(try Self.xml(Self.groups))
    let fat =
      Self.big(0xcafe_babe) + Self.big(1) + Self.big(0x0100_000c) + Self.big(0) + Self.big(64)
      + Self.big(thin.count) + Self.big(6) + [UInt8](repeating: 0, count: 64 - 28) + thin
    for program in [thin, fat] {
      let files: [String: [UInt8]] = [
        "Info.plist": try Self.xml(["CFBundleExecutable": "Notes"]), "Notes": program,
        "archived-expanded-entitlements.xcent": try Self.xml([:]),
      ]
      try with(files) { path in
        let app = try AppDeclaration(bundle: path, shown: path)
        #expect(app.entitlements?.path == path + "/Notes")
        #expect(app.entitlements?.values == Self.groups)
        #expect(app.notes.isEmpty)
      }
    }
  }

  @Test("A damaged program has no entitlements, and the next source is used")
  func damaged() throws {
    let sound = Self.program(try Self.xml(Self.groups))
    var programs = stride(from: 0, to: sound.count, by: 7).map { Array(sound.prefix($0)) }
    programs.append(Self.program(try Self.xml(Self.groups), blobLength: 0x7fff_ffff))
    programs.append(Self.program(try Self.xml(Self.groups), blobLength: 3))
    for offset in 16..<64 {
      var program = sound
      program[offset] = 0xff
      programs.append(program)
    }
    for program in programs {
      try with(["Info.plist": try Self.xml(["CFBundleExecutable": "Notes"]), "Notes": program]) { path in
        let app = try AppDeclaration(bundle: path, shown: path)
        #expect(app.entitlements == nil || app.entitlements?.values == Self.groups)
        #expect(app.entitlements != nil || app.notes.count == 1)
      }
    }
  }

  @Test("What is no app is refused")
  func refused() throws {
    try with(["a.txt": []]) { path in
      let error = try #require(throws: DrydockError.self) { try AppDeclaration(bundle: path, shown: path) }
      #expect(error.code == .notFound)
      #expect(throws: DrydockError.self) { try AppDeclaration(info: path + "/a.txt") }
      #expect(throws: DrydockError.self) { try AppDeclaration(info: path + "/none") }
    }
    try with(["Payload/a.app/Info.plist": [], "Payload/b.app/Info.plist": []]) { path in
      let error = try #require(throws: DrydockError.self) { try AppDeclaration(bundle: path, shown: path) }
      #expect(error.code == .ambiguous)
    }
  }
}
