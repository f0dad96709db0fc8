import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import ArchiveFile

/// Files that are no archive, and tar streams that no honest writer makes.
@Suite struct ForeignFileTests {
  private func code(opening bytes: [UInt8], in directory: TemporaryDirectory) throws -> DrydockError.Code? {
    try store(bytes, at: directory("file"))
    return errorCode { _ = try ArchiveReader(path: directory("file")) }
  }

  @Test func otherFilesAreRecognised() throws {
    let directory = try TemporaryDirectory()
    #expect(try code(opening: [], in: directory) == .truncated)
    #expect(try code(opening: [0x28, 0xB5], in: directory) == .truncated)
    #expect(try code(opening: Array("hello".utf8), in: directory) == .notAnArchive)
    #expect(try code(opening: [UInt8](repeating: 0, count: 5000), in: directory) == .notAnArchive)
    #expect(try code(opening: Array("age-encryption.org/v1\n-> X25519 abc".utf8), in: directory) == .damaged)
    #expect(
      try code(opening: Array("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl".utf8), in: directory) == .encrypted
    )
    #expect(errorCode { _ = try ArchiveReader(path: directory.path) } == .notAnArchive)
    #expect(errorCode { _ = try ArchiveReader(path: directory("absent")) } == .io)
    #expect(try run("mkfifo", [directory("fifo")]).succeeded)
    #expect(errorCode { _ = try ArchiveReader(path: directory("fifo")) } == .io)
    do {
      _ = try ArchiveReader(path: directory("file"))
      Issue.record("an age file was opened")
    } catch {
      #expect("\(error)".hasPrefix(directory("file: the archive is encrypted")))
    }
  }

  @Test func aForeignTarIsRecognised() throws {
    let directory = try TemporaryDirectory()
    try store(Array("content".utf8), at: directory("one"))
    #expect(try run("tar", ["--zstd", "-cf", "foreign.tar.zst", "one"], in: directory.path).succeeded)
    #expect(errorCode { _ = try ArchiveReader(path: directory("foreign.tar.zst")) } == .notAnArchive)
  }

  /// The code of the error that walking a tar stream gives.
  private func code(walking tar: [UInt8], in directory: TemporaryDirectory) throws -> DrydockError.Code? {
    try seal(tar, at: directory("sealed"))
    return errorCode { _ = try readAll(directory("sealed")) }
  }

  private func pack(_ arguments: [String], in directory: String) throws -> [UInt8] {
    let result = try run(
      "tar", ["-P", "--format=pax", "--pax-option=delete=atime,delete=ctime", "-cf", "-"] + arguments,
      in: directory)
    #expect(result.succeeded, "\(result.errors)")
    return result.outputBytes
  }

  @Test func hostileTarStreamsAreRefused() throws {
    let directory = try TemporaryDirectory()
    let x = directory("x")
    try FileManager.default.createDirectory(atPath: x + "/d", withIntermediateDirectories: true)
    try store(Array("one".utf8), at: x + "/one")
    try store(Array("two".utf8), at: x + "/d/two")
    try store([UInt8](repeating: 65, count: 5000), at: x + "/long")
    try FileManager.default.createSymbolicLink(atPath: x + "/link", withDestinationPath: "/etc")
    #expect(try run("mkfifo", ["fifo"], in: x).succeeded)
    #expect(try run("ln", ["one", "hard"], in: x).succeeded)
    #expect(try run("truncate", ["-s", "1G", "sparse"], in: x).succeeded)

    let honest = try pack(["one", "d", "link"], in: x)
    #expect(try code(walking: honest, in: directory) == nil)
    #expect(try code(walking: pack([x + "/one"], in: x), in: directory) == .unsafeName)
    #expect(try code(walking: pack(["d/../one"], in: x), in: directory) == .unsafeName)
    #expect(try code(walking: pack(["./one"], in: x), in: directory) == .unsafeName)
    #expect(
      try code(walking: pack(["--hard-dereference", "one", "one"], in: x), in: directory) == .unsafeName)
    #expect(try code(walking: pack(["fifo"], in: x), in: directory) == .damaged)
    #expect(try code(walking: pack(["-S", "sparse"], in: x), in: directory) == .damaged)
    // A hard link whose file is not in the archive, and something below a link and below a file.
    #expect(
      try code(walking: pack(["one", "hard", "--transform=s,^one$,other,H"], in: x), in: directory)
        == .unsafeName)
    #expect(
      try code(walking: pack(["link", "d/two", "--transform=s,^d/,link/,rS"], in: x), in: directory)
        == .unsafeName)
    #expect(
      try code(walking: pack(["one", "d/two", "--transform=s,^d/,one/,r"], in: x), in: directory)
        == .unsafeName)
    #expect(
      try code(walking: pack(["d/two", "one", "--transform=s,^one$,d,r"], in: x), in: directory)
        == .unsafeName)

    // The end: missing, half, followed by more.
    let end = try #require(lastContent(honest))
    #expect(try code(walking: Array(honest[..<end]), in: directory) == .truncated)
    #expect(try code(walking: Array(honest[..<(end + 512)]), in: directory) == .truncated)
    #expect(try code(walking: Array(honest[..<(end + 1024)]), in: directory) == nil)
    #expect(try code(walking: honest + honest, in: directory) == .damaged)
    #expect(try code(walking: honest + [1], in: directory) == .damaged)

    // Content that is not all there, a damaged header, no tar at all.
    let long = try pack(["long"], in: x)
    #expect(try code(walking: Array(long[..<3000]), in: directory) == .truncated)
    var bent = honest
    bent[1024] ^= 1
    #expect(try code(walking: bent, in: directory) != nil)
    #expect(try code(walking: [UInt8](repeating: 7, count: 4096), in: directory) != nil)
    // Another format inside, which libarchive would know.
    let cpio = try run("bsdtar", ["--format=cpio", "-cf", "-", "one"], in: x).outputBytes
    #expect(try code(walking: cpio, in: directory) != nil)
    let v7 = try run("tar", ["--format=v7", "-cf", "-", "one"], in: x).outputBytes
    #expect(try code(walking: v7, in: directory) == .damaged)
  }

  /// Where the zeros at the end begin, in whole blocks.
  private func lastContent(_ tar: [UInt8]) -> Int? {
    tar.lastIndex { $0 != 0 }.map { ($0 / 512 + 1) * 512 }
  }

  @Test func namesAreValidated() {
    for name in ["a", "a/b", "...", "a/..b", ".hidden", "a b", "-x"] {
      #expect(errorCode { try MemberName.validate(Array(name.utf8)) } == nil)
    }
    for name in [
      "", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/./b", "../a", "a/..", "a/../b", "a\0b",
    ] {
      #expect(errorCode { try MemberName.validate(Array(name.utf8)) } == .unsafeName)
    }
    let long = [UInt8](repeating: 0x61, count: MemberName.maximumLength + 1)
    #expect(errorCode { try MemberName.validate(long) } == .limit)
    #expect(errorCode { try MemberName.validate(Array(long.dropLast())) } == nil)
  }
}
