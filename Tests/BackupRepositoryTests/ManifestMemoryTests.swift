import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// A small archive whose list of paths would fill the memory is refused before the list is read.
@Suite struct ManifestMemoryTests {
  private func archive(_ lab: Lab, sql: String) throws -> String {
    var archive = try HandmadeArchive(lab)
    try archive.addFile("file", "content")
    archive.sql = sql
    return try archive.write()
  }

  private static func rows(_ count: Int, _ insert: String, _ columns: String) -> String {
    """
    BEGIN; WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT \(count))
    INSERT INTO \(insert) SELECT \(columns) FROM r; COMMIT;
    """
  }

  private static let text = "replace(hex(zeroblob(%)), '00', 'a')"

  @Test(arguments: [
    rows(
      90_000, "entry",
      "n + 2, printf('z%06d', n), 'directory', 493, 0, 0, 0, 0, NULL, NULL, NULL, '', 1, 1, 1"),
    rows(490_000, "superseded", "n * 512, 'a', 1"),
    "INSERT INTO excluded VALUES ('x', 'layout', 'x', \(text.replacing("%", with: "70000000")))",
    "INSERT INTO property VALUES ('x', \(text.replacing("%", with: "70000000")))",
  ]) func moreThanTheMemoryIsRefused(_ sql: String) throws {
    let lab = try Lab()
    let path = try archive(lab, sql: sql)
    #expect(try RawFiles.status(Array(path.utf8)).st_size < 2 << 20)
    let error = expectError(.limit) { try Archive(path: path) }
    #expect("\(String(describing: error))".contains("raise it if you trust"))
    if sql.contains("superseded") { _ = try Archive(path: path, limit: .init(bytes: 1 << 30)) }
  }

  @Test func oneLongTextIsNoneOfTheFormat() throws {
    let lab = try Lab()
    for column in ["detail", "origin", "path"] {
      let path = try archive(
        lab,
        sql: """
          INSERT INTO excluded VALUES ('x', 'layout', 'x', 'x');
          UPDATE excluded SET \(column) = \(Self.text.replacing("%", with: "2000000"));
          """)
      expectError(.damaged) { try Verification.run(Archive(path: path), data: false) }
      #expect(code(try lab.refusal(path)) == "damaged")
    }
  }
}
