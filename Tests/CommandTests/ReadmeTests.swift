import Foundation
import TestSupport
import Testing

/// The session of the README goes as it is written; `…` is for lines that are left out.
@Suite("The README")
struct ReadmeTests {
  @Test("Its session goes as it is written, with its migration")
  func session() throws {
    let readme = try String(contentsOfFile: Sandbox.repository + "/README.md", encoding: .utf8)
    let session = Transcript(try block("console", of: readme))
    #expect(session.steps.count == 7)
    try Sandbox.with { sandbox in
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
  }

  /// The first block of a language.
  private func block(_ language: String, of text: String) throws -> String {
    let start = try #require(text.firstRange(of: "```\(language)\n"))
    return String(text[start.upperBound...].prefix { $0 != "`" })
  }
}
