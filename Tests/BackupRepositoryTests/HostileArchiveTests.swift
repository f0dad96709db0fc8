@testable import ArchiveManifest
import Cryptography
import DrydockErrors
import FileSystem
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import BackupRepository

/// Archives whose parts are each well formed and do not agree, beyond those of `HostileArchiveSetTests`.
@Suite struct HostileArchiveTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  /// How an archive is spoilt, and who must notice: the data check always, the structure check and the restore
  /// where they read what is wrong.
  struct Case: CustomStringConvertible, Sendable {
    var description: String
    var atOpening = false, atStructure = false, atRestore = true
    var words: String?
    var spoil: @Sendable (inout HandmadeArchive) throws -> Void

    /// What is wrong in the manifest alone is noticed by all but the opening.
    static func manifest(_ description: String, _ sql: String) -> Case {
      Case(description: description, atStructure: true) { $0.sql = sql }
    }

    /// It would move what counts as the last content.
    static func placeOfNoEntry(_ description: String, _ row: String) -> Case {
      Case(description: description, atStructure: true, words: "places that are not its entries'") {
        $0.sql = "INSERT INTO extent \(row)"
      }
    }

    /// What is wrong in `drydock.json`, whose text is changed, is noticed at once.
    static func header(
      _ description: String, _ spoil: @escaping @Sendable (String) -> [UInt8]
    ) -> Case {
      Case(description: description, atOpening: true) {
        $0.header = spoil(String(decoding: $0.header, as: UTF8.self))
      }
    }

    static func header(_ description: String, adding property: String) -> Case {
      header(description) { Array($0.replacing("\"format\" :", with: property + ",\n  \"format\" :").utf8) }
    }

    /// What disagrees with the tar alone is noticed by who reads all of it.
    static func tar(
      _ description: String, _ spoil: @escaping @Sendable (inout HandmadeArchive) throws -> Void
    )
      -> Case
    {
      Case(description: description, atRestore: false, spoil: spoil)
    }
  }

  @Test(arguments: [
    "00112233445566778899AABBCCDDEEFF", "0011223344556677", "../../../../../../../etc/cron.d/x",
    String(repeating: "\u{FF11}", count: 32),
  ])
  func `An archive id is 32 hexadecimal digits in lower case`(text: String) throws {
    #expect(ArchiveID(text) == nil)
    let json = try JSONEncoder().encode([text])
    #expect(throws: DecodingError.self) { try JSONDecoder().decode([ArchiveID].self, from: json) }
  }

  static let cases: [Case] = [
    Case(description: "size in the manifest") { $0.entries[1].size += 1 },
    Case(description: "size in the manifest beyond the archive", atStructure: true) {
      $0.entries[1].size = 1 << 40
    },
    Case(description: "hash in the manifest") { $0.entries[1].digest = try SHA256.hash([1]) },
    .tar("type") { archive in
      archive.members[1].member.kind = .directory
      archive.members[1].content = []
      archive.entries[1] = try archive.file("file", [])
    },
    .tar("member missing from the tar") { $0.members.remove(at: 2) },
    .tar("mode") { $0.members[1].member.metadata.mode = 0o777 },
    .manifest("entry that is left out", "INSERT INTO excluded VALUES ('file', 'pattern', 'file', 'x')"),
    .manifest("entry below what is left out", "INSERT INTO excluded VALUES ('sub', 'layout', 'sub', 'x')"),
    .manifest(
      "Drydock's state among what is stored although excluded",
      """
      INSERT INTO property VALUES ('stores-excluded', 1);
      INSERT INTO excluded VALUES ('sub', 'state', 'sub', 'x');
      """),
    .manifest("stored although excluded, or not", "INSERT INTO property VALUES ('stores-excluded', 2)"),
    .manifest("unknown rule", "INSERT INTO excluded VALUES ('gone', 'whim', 'gone', 'x')"),
    .tar("nodump in the tar alone") { $0.members[1].0.metadata.isNoDump = true },
    .tar("nodump in the manifest alone") { $0.entries[1].metadata.isNoDump = true },
    Case(description: "order", atStructure: true) { $0.entries.swapAt(1, 2) },
    Case(description: "entry below a link", atStructure: true, words: "which is not a directory") {
      $0.entries.insert($0.directory("link/below"), at: 3)
    },
    Case(description: "order of the tar") { $0.members.swapAt(1, 2) },
    Case(description: "header in a tar without content") { archive in
      archive.members.removeAll { !$0.content.isEmpty }
      archive.entries.removeAll { $0.isFile }
      archive.members[1].member.metadata.mode = 0o700
    },
    .manifest("unknown reason of what was skipped", "INSERT INTO skipped VALUES ('gone', 'whim')"),
    Case(description: "hard link to nothing", atStructure: true) { try $0.addHardLink(to: "gone") },
    Case(description: "hard link to other content", atStructure: true) {
      try $0.addHardLink(to: "file", "other")
    },
    Case(description: "hard link with another mode", atStructure: true) { try $0.addHardLink(mode: 0o4755) },
    Case(description: "root that is a link", atStructure: true, words: "a root that is not a directory") {
      $0.entries[0].kind = .symbolicLink
      $0.entries[0].linkTarget = Array("elsewhere".utf8)
      $0.members[0].member.kind = .symbolicLink(target: Array("elsewhere".utf8))
    },
    Case(description: "no entries", atStructure: true) { ($0.entries, $0.members) = ([], []) },
    Case(description: "no root", atStructure: true) {
      $0.entries.removeFirst()
      $0.members.removeFirst()
    },
    Case(description: "no directory", atStructure: true, words: "not the directory that contains it") {
      $0.entries.remove(at: 3)
      $0.members.remove(at: 3)
    },
    Case(description: "Drydock's state", atStructure: true, words: "Drydock's own state") {
      $0.entries.insert($0.directory(".drydock-state"), at: 1)
      $0.members.insert(($0.member(".drydock-state", .directory), []), at: 1)
    },
    Case(description: "root of a group that is a link", atStructure: true, words: "a root that is not") {
      let text = String(decoding: $0.header, as: UTF8.self)
      $0.header = Array(text.replacing("\"format\" :", with: "\"groups\" : [\"g\"],\n  \"format\" :").utf8)
      var entry = $0.entry(".groups/g", .symbolicLink)
      entry.linkTarget = Array("elsewhere".utf8)
      $0.entries.insert(entry, at: 1)
    },
    .placeOfNoEntry("second place", "SELECT entry, 999, 0, offset, length FROM extent WHERE entry = 2"),
    .placeOfNoEntry("place without bytes", "VALUES (2, 999, 0, 0, 0)"),
    .placeOfNoEntry("place of an entry that is missing", "VALUES (99, 0, 0, 512, 1)"),
    .placeOfNoEntry("place that ends beyond all numbers", "VALUES (99, 0, 0, 9223372036854775807, 1)"),
    Case(description: "set-user-id header") { $0.headerMode = 0o4755 },
    Case(description: "set-user-id manifest") { $0.manifestMode = 0o4755 },
    .manifest(
      "entry of a negative number",
      """
      INSERT INTO entry SELECT -1, 'x', kind, mode, user, "group", modified, size, sha256, link_target, hard_link, flags,
        device, inode, changed FROM entry WHERE path = 'sub'
      """),
    .manifest(
      "attribute whose name is not UTF-8",
      "INSERT INTO attribute VALUES (2, CAST(x'757365722eff' AS TEXT), x'79')"),
    Case(description: "unknown property", atOpening: true) {
      $0.sql = "INSERT INTO property VALUES ('more', 1)"
    },
    Case(description: "property with more behind a NUL", atOpening: true) {
      $0.sql = "INSERT INTO property VALUES ('format' || char(0) || 'x', 1)"
    },
    Case(description: "another format in the manifest", atOpening: true) {
      $0.sql = "UPDATE property SET value = 3 WHERE name = 'format'"
    },
    .header("header with a byte-order mark") { Array("\u{FEFF}\($0)".utf8) },
    .header("header in UTF-16") { $0.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } },
    .header("group that leads out", adding: "\"groups\" : [\"..\"]"),
    .header("group of two names", adding: "\"groups\" : [\"a/b\"]"),
    .header("group twice", adding: "\"groups\" : [\"a\", \"a\"]"),
    .header("list of no groups", adding: "\"groups\" : []"),
    Case(description: "no snapshot id", atOpening: true) { $0.sql = "DELETE FROM property" },
    Case(description: "header that is no JSON", atOpening: true) { $0.header = Array("{".utf8) },
    Case(description: "header with a bad id", atOpening: true) { archive in
      archive.header = Array(
        String(decoding: archive.header, as: UTF8.self).replacing(archive.id.description, with: "../x").utf8)
    },
  ]

  private static func good(_ lab: Lab) throws -> HandmadeArchive {
    var archive = try HandmadeArchive(lab)
    try archive.addFile("file", "content")
    archive.addLink("link", to: "../outside")
    archive.addDirectory("sub")
    try archive.addFile("sub/file", "more")
    return archive
  }

  @Test func handmadeArchiveIsGood() throws {
    let path = try Self.good(lab).write()
    _ = try Verification.run(Archive(path: path), data: false)
    #expect(try Verification.run(Archive(path: path), data: true).entries == 5)
    try lab.restore(path)
    #expect(try lab.read("sub/file") == "more")
  }

  @Test func aLinkMayHaveMetadataOfAnotherMoment() throws {
    var archive = try Self.good(lab)
    try archive.addHardLink(mode: 0o600)
    let path = try archive.write()
    #expect(try Verification.run(Archive(path: path), data: true).entries == 6)
    try lab.restore(path)
    #expect(try lab.read("hard") == "content")
  }

  @Test func whatIsStoredAlthoughExcludedIsGoodWhenTheManifestSaysSo() throws {
    var archive = try Self.good(lab)
    archive.sql = """
      INSERT INTO property VALUES ('stores-excluded', 1);
      INSERT INTO excluded VALUES ('sub', 'layout', 'sub', 'x'), ('file', 'pattern', 'file', 'x');
      """
    #expect(try Verification.run(Archive(path: archive.write()), data: true).entries == 5)
  }

  @Test(arguments: cases) func disagreementIsFound(_ spoilt: Case) throws {
    var archive = try Self.good(lab)
    try spoilt.spoil(&archive)
    let path = try archive.write()
    let opened = failure { _ = try Archive(path: path) }
    #expect((opened != nil) == spoilt.atOpening, "\(String(describing: opened))")
    let structure = failure { _ = try Verification.run(Archive(path: path), data: false) }
    if spoilt.atOpening || spoilt.atStructure { #expect(isClear(structure)) }
    if let words = spoilt.words { #expect("\(structure as Any)".contains(words), "\(structure as Any)") }
    #expect(isClear(failure { _ = try Verification.run(Archive(path: path), data: true) }))
    if spoilt.atRestore { #expect(isClear(try lab.refusal(path))) }
    #expect(try RawFiles.names(in: Array(lab.directory.path.utf8)).count <= 3)
  }

  private func isClear(_ error: (any Error)?) -> Bool {
    guard let error = error as? DrydockError else { return false }
    return error.path != nil && !error.message.isEmpty
  }

  @Test(arguments: [(1, .unsupported), (3, .newerFormat)] as [(Int, DrydockError.Code)])
  func otherFormatIsNamed(_ format: Int, _ expected: DrydockError.Code) throws {
    var archive = try Self.good(lab)
    let text = String(decoding: archive.header, as: UTF8.self)
    archive.header = Array(text.replacing("\"format\" : 2", with: "\"format\" : \(format)").utf8)
    let path = try archive.write()
    expectError(expected) { try Archive(path: path) }
  }

  /// What SQLite would never store, and a file can hold: tables that say STRICT and were filled without.
  @Test(arguments: [
    ("mode", "NULL"), ("mode", "'text'"), ("mode", "-1"), ("mode", "65535"), ("size", "x'00'"),
    ("size", "-5"), ("size", "1e300"), ("kind", "NULL"), ("kind", "7"), ("kind", "'socket'"),
    ("user", "99999999999"), ("modified", "NULL"), ("modified", "'x'"), ("sha256", "NULL"),
    ("sha256", "'text'"), ("sha256", "x'00'"), ("link_target", "x'41'"), ("hard_link", "5"),
    ("device", "'x'"), ("inode", "NULL"), ("changed", "1.5"), ("flags", "NULL"), ("flags", "1"),
    ("flags", "'uchg'"), ("path", "NULL"), ("path", "7"), ("path", "'a//b'"), ("path", "x'00'"),
  ]) func valuesOfOtherTypesAreDamage(_ column: String, _ value: String) throws {
    var archive = try Self.good(lab)
    archive.sql = """
      PRAGMA writable_schema=ON;
      UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL', ''), 'STRICT', '') WHERE name = 'entry';
      PRAGMA writable_schema=RESET;
      UPDATE entry SET \(column) = \(value) WHERE path = 'file';
      PRAGMA writable_schema=ON;
      UPDATE sqlite_schema SET sql = '\(ManifestSchema.statements[1])' WHERE name = 'entry';
      """
    let path = try archive.write()
    expectError(.damaged) { try Verification.run(Archive(path: path), data: false) }
    #expect(code(try lab.refusal(path)) == "damaged")
  }

  /// The headers in front of contents are compared once for each reader, whatever the order of the pieces.
  @Test func alternatingPiecesAreCheckedOnce() throws {
    var handmade = try HandmadeArchive(lab)
    for name in ["a", "b", "c"] { try handmade.addFile(ContainerPath(name), "content of \(name)") }
    let part = try Archive(path: handmade.write()).parts[0]
    let manifest = part.manifest
    let reads = Mutex(0)
    let counted = EntryRows<ManifestEntry>(manifest) { after, _ in
      reads.withLock { $0 += 1 }
      return try manifest.entries().value(after + 1).map { [$0] } ?? []
    }
    let check = MemberCheck(part.reader.ranges, try part.allExpectedMembers(), counted)
    let offsets = try (["a", "c"] as [ContainerPath]).map { path in
      try #require(try part.manifest.entry(path)?.extents.single).offset
    }
    for offset in offsets { try check.check(contentAt: offset) }
    let once = reads.withLock(\.self)
    #expect(once > 0)
    for round in 0..<1000 { try check.check(contentAt: offsets[round % 2] + UInt64(round % 7)) }
    #expect(reads.withLock(\.self) == once)
  }

  @Test func contentThatIsNotWhatTheManifestSaysIsNotExported() throws {
    var handmade = try HandmadeArchive(lab)
    try handmade.addFile("a", "one")
    handmade.entries[1].digest = try SHA256.hash(Array("two".utf8))
    let archive = try Archive(path: handmade.write())
    let before = try RawFiles.names(in: Array(lab.repository.utf8))
    expectError(.damaged) {
      try SnapshotCopy.export(archive, to: .file(lab.repository + "/out.tar.zst"), tool: "test")
    }
    #expect(try RawFiles.names(in: Array(lab.repository.utf8)) == before)
  }

  @Test(.everyPlace) func entriesThatDoNotGiveTheSnapshotAreNotExported() throws {
    var handmade = try HandmadeArchive(lab)
    try handmade.addFile("a", "one")
    handmade.sql =
      "UPDATE property SET value = '\(String(repeating: "0", count: 64))' WHERE name = 'snapshot'"
    let archive = try Archive(path: handmade.write())
    expectError(.damaged) { try SnapshotCopy.export(archive, to: .repository(lab.repository), tool: "test") }
    #expect(try lab.storedNames().count == 1)
  }

  // A small archive whose list of paths would fill the memory is refused before the list is read.

  private func archive(sql: String) throws -> String {
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
    let path = try archive(sql: sql)
    #expect(try RawFiles.status(Array(path.utf8)).st_size < 2 << 20)
    expectError(.limit, "raise it if you trust") { try Archive(path: path) }
    if sql.contains("superseded") { _ = try Archive(path: path, limit: .init(bytes: 1 << 30)) }
  }

  @Test func oneLongTextIsNoneOfTheFormat() throws {
    for column in ["detail", "origin", "path"] {
      let path = try archive(
        sql: """
          INSERT INTO excluded VALUES ('x', 'layout', 'x', 'x');
          UPDATE excluded SET \(column) = \(Self.text.replacing("%", with: "2000000"));
          """)
      expectError(.damaged) { try Verification.run(Archive(path: path), data: false) }
      #expect(code(try lab.refusal(path)) == "damaged")
    }
  }
}

extension HandmadeArchive {
  /// Another name of `file` in the manifest; with a mode, also in the tar.
  fileprivate mutating func addHardLink(
    to target: ContainerPath = "file", _ text: String = "content", mode: UInt16? = nil
  ) throws {
    var entry = try file("hard", Array(text.utf8))
    entry.hardLink = target
    if let mode {
      entry.metadata.mode = mode
      var member = member("hard", .hardLink(target: Array("container/file".utf8)))
      member.metadata.mode = mode
      members.insert((member, []), at: 2)
    }
    entries.insert(entry, at: 2)
  }
}
