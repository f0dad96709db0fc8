@testable import ArchiveManifest
import ArchiveFile
import Cryptography
import FileSystem
import Foundation
import TestSupport
import Testing

@testable import BackupRepository

/// Incremental archives whose parents are forged: `verify --data` of the archive alone refuses what its restore refuses,
/// and checks no more of the parents than that reads.
@Suite struct HostileParentTests {
  private let lab: Lab
  init() throws { lab = try Lab() }

  private func good() throws -> HandmadeArchive {
    var archive = try HandmadeArchive(lab, name: "parent.tar.zst")
    try archive.addFile("file", "content")
    archive.addDirectory("sub")
    try archive.addFile("sub/file", "more")
    try archive.addFile("zoo", "last")
    return archive
  }

  /// What restoring an archive into a new container says, and what verifying its data says.
  private func outcomes(_ path: String) throws -> (restore: String, verify: String) {
    let target = lab.directory("new-" + UUID().uuidString)
    let restore = code { try lab.restore(path, to: target) }
    return (restore, code { try Verification.run(Archive(path: path), data: true) })
  }

  /// An archive over a parent; with blocks of one content of its own, or none.
  private func child(over parent: String, hasPages: Bool) throws -> String {
    var child = try HandmadeArchive(lab, over: parent)
    guard hasPages else { return try child.write() }
    let number = try #require(child.entries.firstIndex { $0.path == "file" })
    let rest = child.entries[number].extents.pieces(3..<7)
    child.entries[number].digest = try SHA256.hash(Array("CONtent".utf8))
    child.entries[number].extents = Extents([Extent(offset: 0, length: 3)] + rest)
    child.members.insert((try pages(child, 3), Array("CON".utf8)), at: 1)
    return try child.write()
  }

  private func pages(_ archive: HandmadeArchive, _ size: UInt64) throws -> ArchiveMember {
    var member = archive.member("file", .file(size: size))
    member.name = try #require(MemberNames(groups: []).pagesName(of: "file"))
    return member
  }

  @Test(arguments: [false, true]) func aGoodParentIsFine(hasPages: Bool) throws {
    let child = try child(over: good().write(), hasPages: hasPages)
    let (restore, verify) = try outcomes(child)
    #expect(restore == "none" && verify == "none")
    #expect(try Verification.run(Archive(path: child), data: false).entries == 5)
  }

  static let forgeries: [(String, @Sendable (inout HandmadeArchive) throws -> Void)] = [
    ("header in front of a content", { $0.members[1].member.metadata.mode = 0o777 }),
    ("header of a directory in front of a content", { $0.members[2].member.metadata.mode = 0o700 }),
    (
      "additional member",
      { archive in
        let bytes = Array("more".utf8)
        archive.members.insert((archive.member("extra", .file(size: 4)), bytes), at: 1)
      }
    ),
    (
      "additional member at the end",
      { archive in archive.members.append((archive.member("zzz", .file(size: 4)), Array("more".utf8))) }
    ),
  ]

  @Test(arguments: forgeries.indices, [false, true])
  func whatARestoreRefusesIsFound(_ number: Int, hasPages: Bool) throws {
    var parent = try good()
    try Self.forgeries[number].1(&parent)
    let child = try child(over: parent.write(), hasPages: hasPages)
    let (restore, verify) = try outcomes(child)
    #expect(restore == "damaged" && verify == "damaged", "\(Self.forgeries[number].0)")
  }

  /// The paths that need the damaged header are named, as a restore names them.
  @Test func affectedPathsAreNamed() throws {
    var parent = try good()
    parent.members[1].member.metadata.mode = 0o777
    let child = try HandmadeArchive(lab, over: parent.write()).write()
    func named<Value>(_ body: () throws -> Value) -> [UnreadableArchive] {
      (expectError { try body() }?.cause as? UnreadableArchives)?.archives ?? []
    }
    let verified = named { try Verification.run(Archive(path: child), data: true) }
    #expect(verified.map(\.archive) == [parent.id.description])
    #expect(verified.map(\.affected) == [["file"]])
    #expect(verified == named { try lab.restore(child, to: lab.directory("new")) })
  }

  @Test func whatIsNotNeededIsNotChecked() throws {
    var parent = try good()
    parent.members[4].member.metadata.mode = 0o777
    parent.members.append((parent.member("zzz", .file(size: 4)), Array("more".utf8)))
    var child = try HandmadeArchive(lab, over: parent.write())
    // Its own content; so the parent's last one is not read, nor what comes after it.
    child.entries.removeLast()
    try child.addFile("zoo", "else")
    let (restore, verify) = try outcomes(child.write())
    #expect(restore == "none" && verify == "none")
  }

  /// Its headers were compared when it was verified itself.
  @Test func aParentThatWasVerifiedIsNotComparedAgain() throws {
    let parent = try good()
    let path = try parent.write()
    let child = try HandmadeArchive(lab, over: path).write()
    var forged = parent
    forged.members[1].member.metadata.mode = 0o777
    _ = try forged.write()
    let opened = try Archive(path: child)
    // The good file takes the name; the open archive reads the other one.
    try RawFiles.remove(Array(path.utf8))
    _ = try parent.write()
    var verification = Verification()
    _ = try verification.verify(Archive(path: path), data: true)
    _ = try verification.verify(opened, data: true)
    expectError(.damaged) { try Verification.run(opened, data: true) }
  }

  /// Only the newest manifest's chain has both: that of its parent alone cannot be opened with such a place.
  @Test func aPlaceInANewerArchive() throws {
    var parent = try HandmadeArchive(lab, over: good().write(), name: "middle.tar.zst")
    try parent.addFile("zoo2", "content")
    var child = try HandmadeArchive(lab, over: parent.write())
    child.inherited = ["zoo2"]
    try child.addFile("zoo3", "another")
    let path = try child.write()
    let good = try outcomes(path)
    #expect(good.restore == "none" && good.verify == "none")
    let place = try #require(try Archive(path: path).manifest.entry("zoo3")?.extents.single)
    parent.entries[parent.entries.count - 1].extents = Extents([place])
    parent.members.removeLast()
    _ = try parent.write()
    let (restore, verify) = try outcomes(path)
    #expect(restore == "damaged" && verify == "damaged")
    expectError(nil, "(zoo2)") { try Verification.run(Archive(path: path), data: false) }
  }

  /// An earlier version of some blocks: only an incremental archive has blocks.
  @Test(arguments: [false, true]) func replacedBlocks(isFull: Bool) throws {
    var archive = try good()
    if !isFull { archive = try HandmadeArchive(lab, over: archive.write()) }
    let member = try pages(archive, 4)
    archive.members.insert((member, Array("more".utf8)), at: 1)
    let walk = try Archive(path: archive.write()).parts[0].reader.ranges.headers(from: 0)
    var found = try walk.next()
    while found.0.name != member.name { found = try walk.next() }
    archive.sql = "INSERT INTO superseded VALUES (\(found.1), 'file', 4)"
    let (restore, verify) = try outcomes(archive.write())
    let expected = isFull ? "damaged" : "none"
    #expect(restore == expected && verify == expected)
  }

  /// In front of the first content and behind the last one: in a header and in the manifest. The structure says so, to all who
  /// read the entries.
  @Test(arguments: [false, true]) func aPlaceOutsideOfAllContents(isBehind: Bool) throws {
    let path = try good().write()
    let parent = try Archive(path: path)
    var child = try HandmadeArchive(lab, over: path)
    let offset = isBehind ? parent.parts[0].reader.manifest.offset : 512
    let number = try #require(child.entries.firstIndex { $0.path == "file" })
    var bytes: [UInt8] = []
    try parent.parts[0].reader.read(offset: offset, length: 7) { bytes.append(contentsOf: $0) }
    child.entries[number].digest = try child.file("file", bytes).digest
    child.entries[number].extents = Extents([
      Extent(archive: parent.header.archive, offset: offset, length: 7)
    ])
    let forged = try child.write()
    let (restore, verify) = try outcomes(forged)
    #expect(restore == "damaged" && verify == "damaged")
    expectError(nil, "(file)") { try Verification.run(Archive(path: forged), data: false) }
    let target = ArchiveTarget.file(lab.directory("exported.tar.zst"))
    expectError(.damaged) { try SnapshotCopy.export(Archive(path: forged), to: target, tool: "test") }
    let walk = try ArchiveSide(Archive(path: forged)).walk()
    expectError(.damaged) { while try walk() != nil {} }
  }

  /// Also an end that is missing, and what only bytes can forge.
  @Test func theCommittedSetAsParents() throws {
    var refused = 0
    for parent in try HostileArchive.all() where parent.noticed == .data || parent.noticed == .never {
      let lab = try Lab()
      let path = lab.repository + "/parent.tar.zst"
      try RawFiles.write(Array(RawFiles.read(Array(parent.path.utf8))), to: Array(path.utf8))
      let child = try HandmadeArchive(lab, over: path).write()
      let restore = code { try lab.restore(child, to: lab.directory("new")) }
      let verify = code { try Verification.run(Archive(path: child), data: true) }
      #expect(
        restore == verify && (restore != "none") == parent.isRefusedByRestore,
        "\(parent): \(restore), \(verify)")
      if verify != "none" { refused += 1 }
    }
    #expect(refused > 30)
  }
}

extension HandmadeArchive {
  /// An incremental archive with the snapshot of its parent, which has all of the content.
  init(_ lab: Lab, over parent: String, name: String = "child.tar.zst") throws {
    let parent = try Archive(path: parent)
    try self.init(lab, name: name, parent: parent.header.archive)
    (members, entries) = ([], [])
    try parent.manifest.entries { entry in
      entries.append(entry)
      guard entry.hasMember(in: id) else { return }
      let kind: ArchiveMember.Kind =
        switch entry.kind {
        case .directory: .directory
        case .symbolicLink: .symbolicLink(target: entry.linkTarget ?? [])
        default: .file(size: 0)
        }
      members.append((MemberNames(groups: []).member(entry, kind), []))
    }
  }
}
