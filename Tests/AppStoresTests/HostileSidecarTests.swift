import Foundation
import TestSupport
import Testing

@testable import AppStores
@testable import FileSystem

/// Journals and logs are foreign input: SQLite plays a copy, and neither touches another file nor fills the disk.
@Suite struct HostileSidecarTests {
  private let sandbox: DatabaseSandbox
  init() throws { sandbox = try DatabaseSandbox() }

  private static let log: ContainerPath = "db.sqlite-wal", journal: ContainerPath = "db.sqlite-journal"

  /// Captures, and gives the kind, and the content of what SQLite can open; the live files stay as they are.
  private func capture(_ sandbox: DatabaseSandbox) throws -> (kind: String, DatabaseSandbox.Content?) {
    let before = try sandbox.listing()
    let image = try sandbox.capture()
    #expect(try sandbox.listing().differences(from: before, comparing: TreeListing.untouched) == [])
    return (image.kind, image.kind == "raw" ? nil : try sandbox.content(image))
  }

  /// A journal's header of one sector; of a transaction over several databases, with the record that names its super-journal.
  private static func journal(pages: UInt32, naming name: String? = nil) -> [UInt8] {
    func bigEndian(_ numbers: UInt32...) -> [UInt8] {
      numbers.flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
    }
    var bytes = DatabaseFormat.journalMagic + bigEndian(0, 7, pages, 512, 4096)
    bytes += [UInt8](repeating: 0, count: 512 - bytes.count)
    guard let name = name.map({ Array($0.utf8) }) else { return bytes }
    let sum = name.reduce(UInt32(0)) { $0 &+ UInt32($1) }
    return bytes + bigEndian(0x4000_0000 / 4096 + 1) + name + bigEndian(UInt32(name.count), sum)
      + DatabaseFormat.journalMagic
  }

  @Test(arguments: ["file", "pipe", "link", "nested"])
  func `A file that a journal calls its super-journal is neither opened nor removed`(_ kind: String) throws {
    try sandbox.make("DELETE")
    let (victim, other) = (sandbox.folder("victim"), sandbox.folder("other"))
    switch kind {
    case "pipe": #expect(mkfifo(victim, 0o600) == 0)
    case "link":
      try RawFiles.write(Array("x".utf8), to: Array(other.utf8))
      try FileManager.default.createSymbolicLink(atPath: victim, withDestinationPath: other)
    default: try RawFiles.write(Array("x".utf8), to: Array(victim.utf8))
    }
    var bytes = Self.journal(pages: 20, naming: victim)
    // A second record, which would be at the end if the first were cut off.
    if kind == "nested" { bytes += Self.journal(pages: 20, naming: victim).suffix(from: 512) }
    try sandbox.root.create(Self.journal, bytes)
    let all = { try TreeListing(sandbox.folder.path).without("scratch") }
    let before = try all()
    let (kind, content) = try capture(sandbox)
    #expect(kind == "copy" && content == DatabaseCaptureTests.whole)
    #expect(try all().differences(from: before, comparing: TreeListing.untouched) == [])
  }

  /// The first file that a commit removes is the super-journal: then it is committed.
  @Test(arguments: [1, 2, 3])
  func `A killed transaction over two databases is in both, or in neither`(removal: Int) throws {
    try sandbox.make("DELETE")
    try sandbox.root.createDirectory("sub")
    try sandbox.root.copyContents(of: sandbox.main, to: "sub/main.db", in: sandbox.root)
    let killed = try Command.run(
      Tools.system("strace"),
      Tools.tracing("unlink", "signal=SIGKILL:when=\(removal)") + [
        Tools.system("sqlite3"), "sub/main.db",
        """
        ATTACH 'db.sqlite' AS other; BEGIN; UPDATE account SET balance = balance + 1;
        UPDATE other.account SET balance = balance + 1; COMMIT
        """,
      ], directory: sandbox.folder("live"))
    #expect(killed.signal == SIGKILL, "\(killed)")
    let names = try sandbox.root.directory("sub").names().map { String(decoding: $0, as: UTF8.self) }
    #expect(names.contains { $0.contains("-mj") } == (removal == 1), "\(names)")
    let expected = DatabaseSandbox.Content(sum: removal == 1 ? 20_000 : 20_200, rows: 200, integrity: "ok")
    #expect(try capture(sandbox).1 == expected)
    let main: ContainerPath = "sub/main.db"
    let status = try #require(try sandbox.root.status(main))
    let unit = try #require(try sandbox.root.databaseUnit(main, status: status))
    let image = try sandbox.root.capture(unit, into: sandbox.scratch, as: "main", busyTimeout: 1)
    #expect(try sandbox.content(image) == expected)
  }

  @Test(arguments: ["alone", "with a journal", "with a page of that number"])
  func `A log that claims more pages than there are is not played`(_ kind: String) throws {
    try sandbox.make("WAL")
    try sandbox.leaveLog("UPDATE account SET balance = 7 WHERE id = 3")
    var bytes = try sandbox.root.contents(Self.log)
    let frame = bytes.count - 24 - 4096
    #expect(bytes[frame + 4..<frame + 8] != [0, 0, 0, 0], "no commit")
    bytes.replaceSubrange(frame + 4..<frame + 8, with: [0x7f, 0xff, 0xff, 0xff])
    if kind.hasSuffix("number") {
      bytes.replaceSubrange(frame..<frame + 4, with: [0x7f, 0xff, 0xff, 0xff])
    }
    let previous = frame == 32 ? 24 : frame - 24 - 4096 + 16
    bytes.replaceSubrange(frame + 16..<frame + 24, with: Self.sum(bytes, frame, after: previous))
    try sandbox.root.removeFile(Self.log)
    try sandbox.root.create(Self.log, bytes)
    // As on another machine.
    try sandbox.root.removeFile("db.sqlite-shm")
    if kind == "with a journal" { try sandbox.root.create(Self.journal, Self.journal(pages: 8)) }
    let kind = try capture(sandbox).kind
    let left = try sandbox.scratch.names()
    #expect(kind == "raw" && left == [])
  }

  /// The checksum of a frame, as SQLite writes it on this machine (<https://www.sqlite.org/fileformat2.html#checksum_algorithm>).
  private static func sum(_ bytes: [UInt8], _ frame: Int, after previous: Int) -> [UInt8] {
    bytes.withUnsafeBytes { bytes in
      let isBig = bytes[3] & 1 == 1
      func word(_ offset: Int) -> UInt32 {
        let value = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBig ? UInt32(bigEndian: value) : UInt32(littleEndian: value)
      }
      var (first, second) = (bytes.bigEndian(at: previous), bytes.bigEndian(at: previous + 4))
      for offset in [frame] + Array(stride(from: frame + 24, to: frame + 24 + 4096, by: 8)) {
        first &+= word(offset) &+ second
        second &+= word(offset + 4) &+ first
      }
      return [first, second].flatMap { sum in withUnsafeBytes(of: sum.bigEndian) { Array($0) } }
    }
  }

  @Test func `A journal that would make terabytes of a database is not played`() throws {
    try sandbox.make("DELETE")
    try sandbox.root.create(Self.journal, Self.journal(pages: 0x7fff_ffff))
    let kind = try capture(sandbox).kind
    let left = try sandbox.scratch.names()
    #expect(kind == "raw" && left == [])
  }
}
