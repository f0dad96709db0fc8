import Foundation
import TestSupport
import Testing

/// The guides for the first day, followed to the letter: every command is run, and prints what is written.
@Suite struct GuideStoryTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  /// The app of the stories, as Xcode downloads its container: settings in XML, one database with a number of its own.
  private static let container = """
    bundle=Downloads/com.example.trips.xcappdata/AppData
    mkdir -p $bundle/Documents $bundle/Library/Preferences $bundle/Library/Caches $bundle/tmp
    cat > $bundle/Library/Preferences/com.example.trips.plist <<'END'
    <?xml version="1.0" encoding="UTF-8"?>
    <plist version="1.0"><dict>
      <key>user_name</key><string>Ada Lovelace</string>
      <key>dark_mode</key><true/>
    </dict></plist>
    END
    sqlite3 $bundle/Documents/trips.sqlite "
      PRAGMA user_version = 3;
      CREATE TABLE trip (id INTEGER PRIMARY KEY, name TEXT NOT NULL, status TEXT NOT NULL);
      INSERT INTO trip VALUES (1, 'Lisbon', 'open'), (2, 'Oslo', 'done'), (3, 'Turin', 'open')"
    echo cached > $bundle/Library/Caches/tile
    mkdir trips; cd trips; git init -q -b main; git config user.email ada@example.com; git config user.name Ada
    """

  /// The app's first migration, released; `Ada` is a container before it.
  private static let released = """
    cd trips; cp -r ../Downloads/com.example.trips.xcappdata/AppData Ada; PATH=$(dirname $DRYDOCK):$PATH
    drydock init Ada --fixture v3; drydock new theme
    cat > Migrations/0001_theme.yaml <<'END'
    description: dark_mode becomes theme, open trips are planned
    steps:
      - defaults.convert: {key: dark_mode, to: theme, map: {true: dark, false: light}}
      - sql:
          database: trips
          up: UPDATE trip SET status = 'planned' WHERE status = 'open'
          down: UPDATE trip SET status = 'open' WHERE status = 'planned'
    END
    drydock release 4.0.0
    """

  /// The first script of the guide makes the containers.
  private static let fleet: String = {
    let path = Sandbox.repository + "/Sources/Drydock/Drydock.docc/CommandLine.md"
    let parts = ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").components(separatedBy: "```")
    return "cd trips\n" + (parts.first { $0.hasPrefix("sh\n") }?.dropFirst(3) ?? "exit 1")
  }()

  @Test func `The guide to imports goes as it is written`() throws {
    let story = try GuideStory("Inspecting#Importing")
    #expect(story.parts.count >= 3)
    try sandbox.shell(
      """
      mkdir -p imports/Backup; cd imports; cp -r '\(ImportTests.sample("encrypted"))' Backup/00008030-001A2B3C4D5E6F70
      cp '\(ImportTests.sample("plain-5.ab"))' backup.ab; echo 'correct horse' > password
      '\(sandbox.program)' keygen -o device.txt
      """)
    let found = try story.differences(in: sandbox, at: "imports", home: "/Users/ada")
    #expect(found.isEmpty, "\(found.joined(separator: "\n\n"))")
  }

  @Test func `The guide to signatures goes as it is written`() throws {
    let story = try GuideStory("Security#Signing archives")
    #expect(story.parts.count >= 4)
    try sandbox.create("signing/Notes", version: 4)
    try sandbox.write("signing/drydock.yaml", "app: com.example.notes\n")
    let found = try story.differences(in: sandbox, at: "signing", home: "/srv")
    #expect(found.isEmpty, "\(found.joined(separator: "\n\n"))")
  }

  @Test(arguments: [
    ("GettingStarted#Your first migration", ""), ("GettingStarted#An app that counts its own versions", ""),
    ("RollingBack#When a migration went wrong", Self.released),
    ("CommandLine#Many containers", Self.fleet),
    (
      "Stores#Settings",
      "cd trips; cp -r ../Downloads/com.example.trips.xcappdata/AppData Ada; \"$DRYDOCK\" init Ada"
    ),
  ])
  func `The story goes as it is written`(_ name: String, preparation: String) throws {
    let story = try GuideStory(name)
    #expect(story.parts.count >= 2)
    try sandbox.shell(Self.container)
    try sandbox.shell("DRYDOCK='\(sandbox.program)'\n" + preparation)
    let found = try story.differences(in: sandbox, at: "trips", home: "/Users/ada")
    #expect(found.isEmpty, "\(found.joined(separator: "\n\n"))")
  }

  @Test func `The session of the README goes as it is written, with its migration`() throws {
    let readme = try String(contentsOfFile: Sandbox.repository + "/README.md", encoding: .utf8)
    let session = Transcript(try block("console", of: readme))
    #expect(session.steps.count == 7)
    try sandbox.create(photos: 3)
    try sandbox.remove("drydock.yaml")
    for file in try FileManager.default.contentsOfDirectory(atPath: sandbox("Migrations")) {
      try sandbox.remove("Migrations/" + file)
    }
    try sandbox.write("Migrations/0001_theme.yaml", block("yaml", of: readme))
    try sandbox.write(
      "Migrations/0002_task_names.sql",
      "-- drydock: database database\n-- migrate:up\nALTER TABLE task RENAME COLUMN title TO name;\n")
    for (written, got) in zip(session.steps, try session.replayed(in: sandbox).steps) {
      let wanted = written.output.map {
        Transcript.normalized($0.replacing("/tmp/notes", with: sandbox.directory.path), in: sandbox)
      }
      let results = got.output.filter { !$0.hasPrefix("! ") }
      #expect(
        GuideStory.matches(wanted[...], results[...]),
        "$ \(got.command)\n\(got.output.joined(separator: "\n"))")
    }
  }

  private func block(_ language: String, of text: String) throws -> String {
    let start = try #require(text.firstRange(of: "```\(language)\n"))
    return String(text[start.upperBound...].prefix { $0 != "`" })
  }
}
