import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import ArchiveFile

/// Files that are no archive, and tar streams that no honest writer makes.
@Suite struct ForeignFileTests {
  private let directory: TemporaryDirectory
  init() throws { directory = try TemporaryDirectory() }

  private func code(opening bytes: [UInt8]) throws -> DrydockError.Code? {
    try store(bytes, at: directory("file"))
    return errorCode { _ = try ArchiveReader(path: directory("file")) }
  }

  @Test func otherFilesAreRecognised() throws {
    for (bytes, expected) in [
      ([], .truncated), ([0x28, 0xB5], .truncated), (Array("hello".utf8), .notAnArchive),
      ([UInt8](repeating: 0, count: 5000), .notAnArchive),
      (Array("age-encryption.org/v1\n-> X25519 abc".utf8), .damaged),
      (Array("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl".utf8), .encrypted),
    ] as [([UInt8], DrydockError.Code)] { #expect(try code(opening: bytes) == expected) }
    expectError(.notAnArchive) { try ArchiveReader(path: directory.path) }
    expectError(.io) { try ArchiveReader(path: directory("absent")) }
    #expect(try run("mkfifo", [directory("fifo")]).succeeded)
    expectError(.io) { try ArchiveReader(path: directory("fifo")) }
    do {
      _ = try ArchiveReader(path: directory("file"))
      Issue.record("an age file was opened")
    } catch {
      #expect("\(error)".hasPrefix(directory("file: the archive is encrypted")))
    }
  }

  @Test func aForeignTarIsRecognised() throws {
    try store(Array("content".utf8), at: directory("one"))
    #expect(try run("tar", ["--zstd", "-cf", "foreign.tar.zst", "one"], in: directory.path).succeeded)
    expectError(.notAnArchive) { try ArchiveReader(path: directory("foreign.tar.zst")) }
  }

  /// The code of the error that walking a tar stream gives.
  private func code(walking tar: [UInt8]) throws -> DrydockError.Code? {
    try seal(tar, at: directory("sealed"))
    return errorCode { _ = try readAll(directory("sealed")) }
  }

  /// - Parameter owner: no names of owners, which an archive does not have either.
  private func pack(
    _ arguments: [String], owner: String = "--numeric-owner", in directory: String
  ) throws -> [UInt8] {
    let result = try run(
      "tar", ["-P", "--format=pax", "--pax-option=delete=atime,delete=ctime", owner, "-cf", "-"] + arguments,
      in: directory)
    #expect(result.succeeded, "\(result.errors)")
    return result.outputBytes
  }

  @Test func hostileTarStreamsAreRefused() throws {
    let x = directory("x")
    try RawFiles.createDirectories(x + "/d")
    try store(Array("one".utf8), at: x + "/one")
    try store(Array("two".utf8), at: x + "/d/two")
    try store([UInt8](repeating: 65, count: 5000), at: x + "/long")
    try FileManager.default.createSymbolicLink(atPath: x + "/link", withDestinationPath: "/etc")
    #expect(try run("mkfifo", ["fifo"], in: x).succeeded)
    #expect(try run("ln", ["one", "hard"], in: x).succeeded)
    #expect(try run("truncate", ["-s", "1G", "sparse"], in: x).succeeded)

    let honest = try pack(["one", "d", "link"], in: x)
    #expect(try code(walking: honest) == nil)
    #expect(try code(walking: pack(["one"], owner: "--owner=daemon:1", in: x)) == .damaged)
    for (arguments, expected) in [
      ([x + "/one"], .unsafeName), (["d/../one"], .unsafeName), (["./one"], .unsafeName),
      (["--hard-dereference", "one", "one"], .unsafeName), (["fifo"], .damaged),
      (["-S", "sparse"], .damaged),
      // A hard link whose file is not in the archive, and something below a link and below a file.
      (["one", "hard", "--transform=s,^one$,other,H"], .unsafeName),
      (["link", "d/two", "--transform=s,^d/,link/,rS"], .unsafeName),
      (["one", "d/two", "--transform=s,^d/,one/,r"], .unsafeName),
      (["d/two", "one", "--transform=s,^one$,d,r"], .unsafeName),
    ] as [([String], DrydockError.Code)] {
      #expect(try code(walking: pack(arguments, in: x)) == expected, "\(arguments)")
    }

    // The end: missing, half, followed by more.
    let end = try #require(lastContent(honest))
    #expect(try code(walking: Array(honest[..<end])) == .truncated)
    #expect(try code(walking: Array(honest[..<(end + 512)])) == .truncated)
    #expect(try code(walking: Array(honest[..<(end + 1024)])) == nil)
    #expect(try code(walking: honest + honest) == .damaged)
    #expect(try code(walking: honest + [1]) == .damaged)

    // Content that is not all there, a damaged header, no tar at all.
    let long = try pack(["long"], in: x)
    #expect(try code(walking: Array(long[..<3000])) == .truncated)
    var bent = honest
    bent[1024] ^= 1
    #expect(try code(walking: bent) != nil)
    #expect(try code(walking: [UInt8](repeating: 7, count: 4096)) != nil)
    // Another format inside, which libarchive would know.
    let cpio = try run("bsdtar", ["--format=cpio", "-cf", "-", "one"], in: x).outputBytes
    #expect(try code(walking: cpio) != nil)
    let v7 = try run("tar", ["--format=v7", "-cf", "-", "one"], in: x).outputBytes
    #expect(try code(walking: v7) == .damaged)
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
      expectError(.unsafeName) { try MemberName.validate(Array(name.utf8)) }
    }
    let long = [UInt8](repeating: 0x61, count: MemberName.maximumLength + 1)
    expectError(.limit) { try MemberName.validate(long) }
    #expect(errorCode { try MemberName.validate(Array(long.dropLast())) } == nil)
  }
}
