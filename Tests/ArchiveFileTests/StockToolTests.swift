import FileSystem
import Foundation
import TestSupport
import Testing

@testable import ArchiveFile

/// Programs that know nothing of this project open an archive.
@Suite struct StockToolTests {
  private static let time: Int64 = 1_700_000_000_123_456_789
  private static let oddName: [UInt8] = Array("d/caf".utf8) + [0xE9]

  private static func samples() -> [Sample] {
    var random = SeededRandom(seed: 3)
    let attributes: [ExtendedAttribute] = [
      .init(name: "user.comment", value: Array("hällo".utf8)),
      .init(name: "user.binary", value: [0, 10, 61, 255]),
    ]
    return [
      Sample(ArchiveMember(name: Array("d".utf8), kind: .directory, mode: 0o755, modified: time)),
      Sample(
        ArchiveMember(
          name: Array("d/text".utf8), kind: .file(size: 4), mode: 0o640, modified: time,
          attributes: attributes),
        Array("text".utf8)),
      Sample("d/random", random.bytes(9 << 20)),
      Sample(ArchiveMember(name: oddName, kind: .file(size: 1), mode: 0o600, modified: -1_500_000_000), [1]),
      Sample("d/größe", [2], modified: -86_400_000_000_000),
      Sample(
        ArchiveMember(
          name: Array("d/link".utf8), kind: .symbolicLink(target: Array("text".utf8)), mode: 0o777,
          modified: time)),
      Sample(
        ArchiveMember(
          name: Array("d/hard".utf8), kind: .hardLink(target: Array("d/random".utf8)), mode: 0o644,
          modified: time)),
    ]
  }

  /// What a tool complains of, but for two notes that GNU tar prints: that times before 1970 are implausibly old,
  /// and, once for each name that is not ASCII, that it does not know pax's own `hdrcharset`.
  private func complaints(_ result: CommandResult) -> [Substring] {
    let notes = result.errors.split(separator: "\n")
    #expect(notes.count { $0.contains("hdrcharset") } <= 2)
    return notes.filter { !$0.contains("implausibly old time stamp") && !$0.contains("keyword 'hdrcharset'") }
  }

  @Test(arguments: ["bsdtar", "tar"]) func toolsExtract(_ tool: String) throws {
    let directory = try TemporaryDirectory()
    let samples = Self.samples()
    try writeArchive(samples, to: directory("a.tar.zst"))
    try RawFiles.createDirectories(directory("x"))
    let arguments =
      tool == "tar"
      ? ["--xattrs", "--xattrs-include=*", "--zstd", "-xpf", "../a.tar.zst"]
      : ["-xpf", "../a.tar.zst", "--xattrs"]
    let result = try run(tool, arguments + ["--no-same-owner"], in: directory("x"))
    #expect(result.succeeded && complaints(result).isEmpty, "\(result.errors)")

    for sample in samples {
      guard case .file = sample.member.kind else { continue }
      let path = Array((directory("x/")).utf8) + sample.member.name
      var status = stat()
      #expect(
        (path.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
          $0.baseAddress.map { lstat($0, &status) }
        } == 0)
      #expect(status.st_mode & 0o7777 == mode_t(sample.member.metadata.mode))
      #expect(UInt64(status.st_size) == sample.member.contentSize)
      #if os(Linux)
        let time = status.st_mtim
      #else
        let time = status.st_mtimespec
      #endif
      let modified = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
      // GNU tar reads a fraction before 1970 with the sign of the seconds: known, and up to a second off.
      if tool == "bsdtar" || sample.member.metadata.modified >= 0
        || sample.member.metadata.modified % 1_000_000_000 == 0
      {
        #expect(modified == sample.member.metadata.modified)
      }
    }
    let random = try Data(contentsOf: URL(fileURLWithPath: directory("x/d/random")))
    #expect(Array(random) == samples[2].content)
    #expect(try run("readlink", ["d/link"], in: directory("x")).output == "text\n")
    #expect(try run("stat", ["-c", "%h", "d/hard"], in: directory("x")).output == "2\n")
    // What the file system got, seen by packing it again with a program that writes attributes as they are.
    let packed = try run(
      "tar", ["--xattrs", "--xattrs-include=user.*", "--format=pax", "-cf", "-", "d/text"],
      in: directory("x"))
    for attribute in samples[1].member.metadata.attributes {
      let record =
        Array("SCHILY.xattr.".utf8) + Array(attribute.name.utf8) + [0x3D] + attribute.value + [0x0A]
      #expect(packed.outputBytes.firstRange(of: record) != nil)
    }
  }
}
