import AppContainer
import ArchiveFile
import ContainerTransaction
import Cryptography
import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import DeviceBackups

@Suite("Android backups")
struct AndroidBackupTests {
  static let samples = ["plain-5", "stored-1", "encrypted-5", "encrypted-1"]

  private static func password(_ name: String) -> SecretBytes {
    name == "encrypted-1" ? SecretBytes(Array("pässword".utf8)) : Samples.password
  }

  private static func contents(of path: String, _ password: SecretBytes) throws -> [String: [UInt8]] {
    let backup = try AndroidBackup(at: path)
    var found: [String: [UInt8]] = [:]
    try backup.members(backup.key(password), .standard) { member, read in
      var bytes: [UInt8] = []
      try read { _, piece in bytes += piece }
      found[member.printableName] = bytes
    }
    return found
  }

  @Test("Every form has the same members", arguments: samples)
  func members(_ name: String) throws {
    let found = try Self.contents(of: Samples.path(name + ".ab"), Self.password(name))
    let plain = try Self.contents(of: Samples.path("stored-1.ab"), Samples.password)
    #expect(found == plain && found.count == 18)
    #expect(found["apps/com.example.notes/ef/export.txt"] == Array("on shared storage".utf8))
  }

  @Test("A backup of MIUI is one of Android behind five lines")
  func miui() throws {
    let plain = Array(try Data(contentsOf: URL(fileURLWithPath: Samples.path("plain-5.ab"))))
    let lines = Array("MIUI BACKUP\n2\ncom.example.notes Notizen ü\n-1\n0\n".utf8)
    let directory = try TemporaryDirectory()
    let path = directory("Notes(com.example.notes).bak")
    try RawFiles.write(lines + plain, to: Array(path.utf8))
    #expect(DeviceSource.find(at: path) == .androidBackup)
    let found = try Self.contents(of: path, Samples.password)
    #expect(try found == Self.contents(of: Samples.path("plain-5.ab"), Samples.password))
    // Without an ordinary backup behind them, the lines are none.
    try RawFiles.write(lines + Array("PK".utf8), to: Array(path.utf8))
    expectError(.notAContainer) { try AndroidBackup(at: path) }
  }

  @Test("The list has files and bytes of each app, without its program", arguments: samples)
  func list(_ name: String) throws {
    let backup = try AndroidBackup(at: Samples.path(name + ".ab"))
    let list = try backup.list(backup.key(Self.password(name)), limit: .standard)
    #expect(list.map(\.package) == ["com.example.notes", "com.example.other"])
    #expect(
      list[0].files == 9 && list[0].hasProgram && list[0].groups == ["device-protected", "external-files"])
    #expect(list[1].files == 1 && list[1].bytes == 14 && !list[1].hasProgram)
  }

  @Test("A wrong password, and none, are refused as such", arguments: ["encrypted-5", "encrypted-1"])
  func wrongPassword(_ name: String) throws {
    let backup = try AndroidBackup(at: Samples.path(name + ".ab"))
    for password in [nil, SecretBytes([]), SecretBytes(Array("wrong".utf8))] {
      let error = #expect(throws: DrydockError.self) { try backup.key(password) }
      #expect(error?.code == .badKey && error?.code.exitCode == 4)
    }
  }

  @Test("Every prefix of a file is refused", arguments: samples)
  func prefixes(_ name: String) throws {
    let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: Samples.path(name + ".ab"))))
    let directory = try TemporaryDirectory()
    // Each byte of the header, and of the last blocks; in between some.
    // Without its last block of zeros a tar is whole; an encrypted or compressed one is not.
    let end = name == "stored-1" ? bytes.count - 1024 : bytes.count
    let lengths = Array(0..<700) + Array(stride(from: 700, to: end - 40, by: 997)) + Array(end - 40..<end)
    for length in lengths {
      try RawFiles.write(Array(bytes.prefix(length)), to: Array(directory("cut.ab").utf8))
      let error = #expect(throws: DrydockError.self, "\(length)") {
        try Self.contents(of: directory("cut.ab"), Self.password(name))
      }
      #expect(
        [.truncated, .damaged, .notAContainer, .newerFormat, .badKey].contains(error?.code),
        "\(length): \(error as Any)")
    }
  }

  @Test("Flipped bytes give errors or other contents, never a crash", arguments: samples)
  func flips(_ name: String) throws {
    let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: Samples.path(name + ".ab"))))
    let directory = try TemporaryDirectory()
    // Most cost the derivation of a key.
    let header = Array(0..<32) + Array(stride(from: 32, to: 600, by: TestExtent.isFull ? 1 : 5))
    for index in header + Array(stride(from: 600, to: bytes.count, by: 641)) {
      var changed = bytes
      changed[index] ^= 0x11
      try RawFiles.write(changed, to: Array(directory("changed.ab").utf8))
      do { _ = try Self.contents(of: directory("changed.ab"), Self.password(name)) } catch is DrydockError {
      }
    }
  }

  @Test(
    "Headers that lie are refused",
    arguments: [
      ("ANDROID BACKUP\n6\n0\nnone\n", DrydockError.Code.newerFormat),
      ("ANDROID BACKUP\n0\n0\nnone\n", .newerFormat),
      ("ANDROID BACKUP\n5\n2\nnone\n", .damaged), ("ANDROID BACKUP\n5\n0\nDES\n", .encrypted),
      ("ANDROID BACKUPS\n5\n0\nnone\n", .notAContainer), ("ANDROID BACKUP\n5\n0\n", .truncated),
      ("ANDROID BACKUP\n5\n0\nAES-256\nAB\nAB\n4000000000\nAB\nAB\n", .limit),
      ("ANDROID BACKUP\n5\n0\nAES-256\nAB\nAB\n99999999999999999999999\nAB\nAB\n", .damaged),
      ("ANDROID BACKUP\n5\n0\nAES-256\nAB\nAB\n-1\nAB\nAB\n", .damaged),
      ("ANDROID BACKUP\n5\n0\nAES-256\nXY\nAB\n1\nAB\nAB\n", .damaged),
      ("ANDROID BACKUP\n5\n0\nAES-256\nAB\nAB\n1\nAB\nAB\n", .damaged),
      ("ANDROID BACKUP\n5\n0\nAES-256\n" + String(repeating: "AB", count: 9000), .truncated),
    ])
  func header(_ text: String, _ code: DrydockError.Code) throws {
    let directory = try TemporaryDirectory()
    try RawFiles.write(Array(text.utf8), to: Array(directory("x.ab").utf8))
    expectError(code) { try Self.contents(of: directory("x.ab"), Samples.password) }
  }

  @Test("Names that the container's file system takes for one are refused")
  func foldedNames() throws {
    let directory = try TemporaryDirectory()
    let script = """
      import tarfile
      with open("x.ab", "wb") as f:
        f.write(b"ANDROID BACKUP\\n5\\n0\\nnone\\n")
        with tarfile.open(fileobj=f, mode="w|") as tar:
          for name in ("a/x", "A/x"): tar.addfile(tarfile.TarInfo("apps/com.example.notes/f/" + name))
      """
    try Command.succeed(Tools.system("python3"), ["-c", script], directory: directory.path)
    let backup = try AndroidBackup(at: directory("x.ab"))
    let app = try AndroidApp("com.example.notes", in: backup, nil, limit: .standard)
    let container = try #require(
      try Container.planned(at: directory("Notes"), configuration: ContainerConfiguration()))
    for folds in [true, false] {
      var options = TransactionOptions()
      options.seams.foldsNames = folds
      let staged = try DiscardedStage(creating: container, options: options)
      guard folds else {
        #expect(try app.stage(into: staged).files == 2)
        continue
      }
      let error = #expect(throws: DrydockError.self) { try app.stage(into: staged) }
      #expect(error?.message.hasPrefix("cannot hold both files/A and files/a:") == true)
    }
  }

  @Test("Data that expands without end is stopped at the limit")
  func bomb() throws {
    let directory = try TemporaryDirectory()
    let script = """
      import zlib, tarfile, io
      info = tarfile.TarInfo("apps/com.example.notes/f/zeros"); info.size = 300_000_000
      head = info.tobuf(tarfile.USTAR_FORMAT)
      c = zlib.compressobj(9)
      with open("bomb.ab", "wb") as f:
        f.write(b"ANDROID BACKUP\\n5\\n1\\nnone\\n" + c.compress(head))
        for _ in range(300): f.write(c.compress(bytes(1_000_000)))
        f.write(c.flush())
      """
    try Command.succeed(Tools.system("python3"), ["-c", script], directory: directory.path)
    let backup = try AndroidBackup(at: directory("bomb.ab"))
    let error = #expect(throws: DrydockError.self) {
      try backup.list(nil, limit: ExpansionLimit(bytes: 10_000_000))
    }
    #expect(error?.code == .limit && error?.code.exitCode == 4)
  }
}
