import DrydockErrors
import TestSupport
import Testing

@testable import AppContainer

@Suite struct AndroidRuleTests {
  static let files = [
    "shared_prefs/app.xml", "shared_prefs/secret.xml", "databases/a.db", "databases/b.db", "databases/dir/x",
    "files/keep/a", "files/keep/b", "files/drop", "app_web/page", "cache/c", "code_cache/d", "no_backup/e",
    "lib/f",
  ]
  static let always = ["cache/c", "code_cache/d", "no_backup/e", "lib/f"]

  /// What is left out with rules in the two files and some YAML under `android:`.
  private func leftOut(
    full: String? = nil, extraction: String? = nil, _ keys: [String] = [], also: [String] = []
  ) throws -> Set<String> {
    var sandbox = try ContainerSandbox()
    try sandbox.make(Self.files + also)
    sandbox.configuration = try configuration(sandbox, full: full, extraction: extraction, keys)
    return Set(
      try sandbox.scan().filter { !$0.value.isEmpty }.keys.filter { (Self.files + also).contains($0) })
  }

  private func configuration(
    _ sandbox: ContainerSandbox, full: String? = nil, extraction: String? = nil, _ keys: [String] = []
  ) throws -> ContainerConfiguration {
    let folder = String(sandbox.path.dropLast(2))
    var lines = keys
    if let full {
      try RawFiles.write(Array(full.utf8), to: Array((folder + "/full.xml").utf8))
      lines.append("full-backup-content: full.xml")
    }
    if let extraction {
      try RawFiles.write(Array(extraction.utf8), to: Array((folder + "/rules.xml").utf8))
      lines.append("data-extraction-rules: rules.xml")
    }
    let text = "layout: android\nandroid:\n" + lines.map { "  \($0)\n" }.joined()
    try RawFiles.write(Array(text.utf8), to: Array((folder + "/drydock.yaml").utf8))
    return try ContainerConfiguration(file: folder + "/drydock.yaml", sections: [])
  }

  private func full(_ rules: String) -> String { "<full-backup-content>\n\(rules)\n</full-backup-content>" }

  // MARK: The layout

  @Test func theLayoutIsDetectedAndSkipsWhatAndroidSkips() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(Self.files + ["files/.drydock/history.json"])
    try sandbox.root.createLink("files/link", target: Array("drop".utf8))
    sandbox.configuration = ContainerConfiguration()
    let container = try sandbox.container()
    #expect(container.layout == .android && container.historyPath == "files/.drydock/history.json")
    let found = try sandbox.scan()
    #expect(found["cache/c"] == "layout @cache" && found["lib"] == "layout @lib")
    #expect(found["files/link"] == "layout @files/link")
    #expect(found["files/drop"] == "" && found["app_web/page"] == "")
    sandbox = try ContainerSandbox()
    try sandbox.make(["files/a", "databases/b", "cache/c"])
    sandbox.configuration = ContainerConfiguration()
    #expect(try sandbox.container().layout == .generic)
  }

  @Test func anotherDeviceGetsCachesToo() throws {
    #expect(try leftOut() == Set(Self.always))
    #expect(try leftOut(["transfer: device"]) == ["lib/f"])
  }

  @Test func thePackageIsNamedByItsSettings() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(["shared_prefs/org.example.app_preferences.xml", "shared_prefs/other.xml"])
    sandbox.configuration = ContainerConfiguration()
    #expect(try sandbox.container().app == "org.example.app")
  }

  // MARK: Rules

  struct Case: Sendable, CustomTestStringConvertible {
    var rules: String, out: Set<String>
    init(_ rules: String, _ out: Set<String>) { (self.rules, self.out) = (rules, out) }
    var testDescription: String { rules }
  }

  static let all = Set(files).subtracting(always)
  static let cases = [
    Case("", []),
    Case(#"<exclude domain="file" path="drop"/>"#, ["files/drop"]),
    Case(#"<exclude domain="file" path="keep"/>"#, ["files/keep/a", "files/keep/b"]),
    Case(#"<exclude domain="file" path="./keep/"/>"#, ["files/keep/a", "files/keep/b"]),
    Case(#"<exclude domain="file"/>"#, ["files/keep/a", "files/keep/b", "files/drop"]),
    Case(#"<exclude domain="root" path="app_web"/>"#, ["app_web/page"]),
    Case(#"<exclude domain="root" path="files/drop"/>"#, ["files/drop"]),
    // A whole root leaves the other domains alone.
    Case(#"<exclude domain="root"/>"#, ["app_web/page"]),
    // No wildcards, no unknown domains, no way up.
    Case(#"<exclude domain="file" path="ke*"/>"#, []),
    Case(#"<exclude domain="files" path="drop"/>"#, []),
    Case(#"<exclude path="drop"/>"#, []),
    Case(#"<exclude domain="file" path="keep/../drop"/>"#, []),
    Case(#"<exclude domain="file" path="keep//a"/>"#, []),
    Case(#"<exclude domain="external" path="drop"/><exclude domain="device_file"/>"#, []),
    Case(#"<exclude domain="sharedpref" path="secret"/>"#, ["shared_prefs/secret.xml"]),
    Case(#"<exclude domain="sharedpref" path="secret.xml"/>"#, ["shared_prefs/secret.xml"]),
    Case(#"<exclude domain="database" path="a.db"/>"#, ["databases/a.db"]),
    // Once there is an include, only includes count; exclude wins.
    Case(#"<include domain="file" path="keep"/>"#, all.subtracting(["files/keep/a", "files/keep/b"])),
    Case(
      #"<include domain="file" path="keep"/><exclude domain="file" path="keep/b"/>"#,
      all.subtracting(["files/keep/a"])),
    Case(#"<include domain="file" path="keep/a"/><exclude domain="file" path="keep"/>"#, all),
    Case(
      #"<include domain="sharedpref"/>"#,
      all.subtracting(["shared_prefs/app.xml", "shared_prefs/secret.xml"])),
    Case(#"<include domain="external"/>"#, all),
    // A flag that the transport lacks: the include counts for nothing, and is still one.
    Case(
      #"<include domain="file" path="drop"/><include domain="database" requireFlags="clientSideEncryption"/>"#,
      all.subtracting(["files/drop"])),
    Case(#"<include domain="file" path="drop" requireFlags="deviceToDeviceTransfer"/>"#, all),
    Case("<!-- nothing --> <exclude domain='file' path='drop'></exclude>", ["files/drop"]),
  ]

  @Test(arguments: cases) func fullBackupContent(_ row: Case) throws {
    #expect(try leftOut(full: full(row.rules)) == row.out.union(Self.always))
  }

  @Test func sidecarsOfADatabaseAndDirectories() throws {
    let sidecars = ["databases/x-journal", "databases/x-wal", "databases/x-shm", "databases/dir-wal"]
    let out = try leftOut(
      full: full(#"<exclude domain="database" path="x"/><exclude domain="database" path="dir"/>"#),
      also: sidecars)
    #expect(out == Set(["databases/x-journal", "databases/x-wal", "databases/dir/x"] + Self.always))
  }

  @Test func flagsOfTheTransport() throws {
    let rules = full(
      #"<include domain="file" path="drop" requireFlags="clientSideEncryption|deviceToDeviceTransfer"/>"#)
    let dropped = { (keys: [String]) in try leftOut(full: rules, keys).contains("files/drop") }
    #expect(try dropped(["transfer: device"]))
    #expect(try dropped(["client-side-encryption: true"]))
    #expect(try !dropped(["transfer: device", "client-side-encryption: true"]))
  }

  // MARK: Sections

  @Test func sectionsAndWhatComesAfterThem() throws {
    let rules = """
      <data-extraction-rules>
        <cloud-backup><exclude domain="file" path="drop"/></cloud-backup>
        <device-transfer/>
        <cross-platform-transfer platform="ios">
          <include domain="file" path="keep"/>
          <platform-specific-params bundleId="org.example" teamId="T" contentVersion="1"/>
        </cross-platform-transfer>
      </data-extraction-rules>
      """
    let old = full(#"<exclude domain="file" path="keep/a"/>"#)
    #expect(try leftOut(full: old, extraction: rules) == Set(Self.always + ["files/drop"]))
    // An empty section: the older file counts, and without one everything is taken.
    #expect(try leftOut(full: old, extraction: rules, ["transfer: device"]) == ["lib/f", "files/keep/a"])
    #expect(try leftOut(extraction: rules, ["transfer: device"]) == ["lib/f"])
    let cross = try leftOut(extraction: rules, ["transfer: cross-platform"])
    #expect(cross == Set(Self.files).subtracting(["files/keep/a", "files/keep/b"]))
  }

  @Test func aCloudThatMustBeEncrypted() throws {
    let rules = """
      <data-extraction-rules><cloud-backup disableIfNoEncryptionCapabilities="true">
      <exclude domain="file" path="drop"/></cloud-backup></data-extraction-rules>
      """
    #expect(try leftOut(extraction: rules) == Set(Self.files))
    let encrypted = try leftOut(extraction: rules, ["client-side-encryption: true"])
    #expect(encrypted == Set(Self.always + ["files/drop"]))
  }

  // MARK: Errors

  static let wrong: [(text: String, message: String)] = [
    ("<backup/>", "full.xml:1: the root element is <backup>, not <full-backup-content>"),
    ("<full-backup-content>\n<keep/></full-backup-content>", "full.xml:2: <keep> is not a rule"),
    (
      "<full-backup-content>\n\n<exclude domain='file' path='a' requireFlags='x'/></full-backup-content>",
      "full.xml:3: <exclude> has 3 attributes; at most 2 are allowed"
    ),
    (
      "<full-backup-content><include domain='file' path='a' requireFlags='x' y='z'/></full-backup-content>",
      "full.xml:1: <include> has 4 attributes; at most 3 are allowed"
    ),
    (
      "<full-backup-content><include domain='file'><include domain='file'/></include></full-backup-content>",
      "<include> inside <include>"
    ),
    ("<full-backup-content>\n<exclude domain='file'>", "full.xml:2: not well-formed XML"),
    ("", "not well-formed XML"),
    ("text", "not well-formed XML"),
    (
      "<!DOCTYPE full-backup-content [<!ENTITY a 'x'>]>\n<full-backup-content>&a;</full-backup-content>",
      "full.xml:1: a document type declaration"
    ),
    (
      "\n<!DOCTYPE f [<!ENTITY a SYSTEM 'file:///etc/hostname'>]>\n<full-backup-content>&a;</full-backup-content>",
      "full.xml:2: a document type declaration"
    ),
  ]

  @Test(arguments: wrong) func errorsNameTheLine(_ row: (text: String, message: String)) throws {
    try refused(row)
  }

  // Not an argument: the test runner writes each argument into many events.
  @Test func largeRules() throws {
    try refused((String(repeating: " ", count: 1 << 20) + "<full-backup-content/>", "full.xml"))
  }

  private func refused(_ row: (text: String, message: String)) throws {
    let sandbox = try ContainerSandbox()
    expectError(.badConfiguration, row.message) { try configuration(sandbox, full: row.text) }
  }

  @Test func errorsOfTheConfiguration() throws {
    let sandbox = try ContainerSandbox()
    let section = "<data-extraction-rules><cloud-backups/></data-extraction-rules>"
    expectError(nil, "did you mean `cloud-backup`?") { try configuration(sandbox, extraction: section) }
    expectError(.badConfiguration) { try configuration(sandbox, ["full-backup-content: nowhere.xml"]) }
    expectError(nil, "did you mean `cloud`?") { try configuration(sandbox, ["transfer: clouds"]) }
    let text = "layout: ios\nandroid: {transfer: device}\n"
    let file = String(sandbox.path.dropLast(2)) + "/drydock.yaml"
    try RawFiles.write(Array(text.utf8), to: Array(file.utf8))
    let layout = #expect(throws: DrydockError.self) { try ContainerConfiguration(file: file, sections: []) }
    #expect(layout?.message.contains("`android` needs the layout android") == true)
  }

  @Test func rulesWithoutEffectAreReported() throws {
    var sandbox = try ContainerSandbox()
    try sandbox.make(Self.files)
    sandbox.configuration = try configuration(
      sandbox, full: full("<exclude domain='nope'/>\n<include domain='file' path='../x'/>"))
    let warnings = ContainerWarning.find(in: try sandbox.container(), excluded: [])
    #expect(warnings.map(\.kind) == [.rule, .rule])
    #expect(warnings.first?.message.contains("full.xml:2: <exclude domain=\"nope\"/> has no effect") == true)
  }
}
