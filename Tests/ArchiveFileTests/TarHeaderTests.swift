import DrydockErrors
import FileSystem
import Testing

@testable import ArchiveFile

@Suite("Headers that tar programs read in different ways") struct TarHeaderTests {
  private static let member = ArchiveMember(
    name: Array("a".utf8), kind: .file(size: 2), mode: 0o644, modified: 0)

  /// A ustar block with texts at places.
  private static func block(_ kind: String = "0", _ changes: (Int, String)...) -> [UInt8] {
    var block = [UInt8](repeating: 0, count: 512)
    let fields = [
      (0, "container/a"), (100, "0000644\0"), (108, "0000000\0"), (116, "0000000\0"), (124, "00000000000\0"),
      (136, "14371573000\0"), (148, "0000000\0"), (156, kind), (257, "ustar\u{0}00"), (329, "0000000\0"),
      (337, "0000000\0"),
    ]
    for (place, text) in fields + changes {
      block.replaceSubrange(place..<(place + text.utf8.count), with: text.utf8)
    }
    return block
  }

  /// A pax header with one record, and a file's block.
  private static func pax(_ record: String, _ kind: String = "0") -> [UInt8] {
    // The length counts itself.
    let length = record.utf8.count + 2 + (record.utf8.count + 4 > 9 ? 2 : 1)
    let text = Array("\(length) \(record)\n".utf8)
    let size = "00000000" + String(text.count, radix: 8).leftPadded(to: 3) + "\0"
    return block("x", (124, size)) + text + [UInt8](repeating: 0, count: 512 - text.count) + block(kind)
  }

  private static let accepted: [[UInt8]] = [
    block(), block("5"), block("2"), block("1"), block("0", (124, "00000000002 ")),
    block("0", (108, "001750 \0")),
    pax("uid=4294967294"), pax("mtime=1700000000.5"), pax("mtime=-3.25"), pax("path=container/b"),
    pax("SCHILY.xattr.user.a="), pax("SCHILY.xattr.user.%C3%A4%3D="), block("0", (345, "prefix")),
  ]

  private static let refused: [[UInt8]] = [
    // Some skip what is in front of the digits, others read zero.
    block("0", (124, "\u{0}0000001000")), block("0", (100, " 000644\0")),
    block("0", (108, "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}")),
    block("0", (124, "0000001\u{0}000\0")),
    // Some read bytes behind the end of a text, or times behind the prefix.
    block("0", (90, "x")), block("2", (157, "a"), (200, "x")), block("0", (345, "a"), (482, "x")),
    block("0", (500, "x")), block("0", (508, "tar\0")),
    // Names of attributes in another form than the one, or not UTF-8.
    pax("SCHILY.xattr.user.%61="), pax("SCHILY.xattr.user.%c3%a4="), pax("SCHILY.xattr.user.\u{E4}="),
    pax("SCHILY.xattr.user.%FF="), pax("SCHILY.xattr.user.%00="), pax("SCHILY.xattr.100%="),
    pax("SCHILY.xattr.="),
    // The names of owners count before the numbers.
    block("0", (265, "daemon")), block("0", (297, "daemon")),
    // Some skip that many bytes.
    block("2", (124, "00000001000\0")), block("5", (124, "00000001000\0")),
    block("1", (124, "00000001000\0")),
    pax("size=512", "2"),
    // Empty values take back what was said before, or are zero; some read the digits of these numbers.
    pax("path="), pax("linkpath="), pax("uid="), pax("size="), pax("mtime="), pax("uid=12x"), pax("uid=+12"),
    pax("gid= 12"), pax("size=2 "), pax("mtime=.5"), pax("mtime=5,5"), pax("mtime=1e3"), pax("mtime=5."),
  ]

  @Test func usual() throws {
    for bytes in Self.accepted { try TarHeader.check(bytes, of: Self.member) }
  }

  @Test func odd() {
    for (number, bytes) in Self.refused.enumerated() {
      #expect(throws: DrydockError.self, "\(number)") { try TarHeader.check(bytes, of: Self.member) }
    }
  }
}

extension String {
  fileprivate func leftPadded(to width: Int) -> String {
    String(repeating: "0", count: max(width - count, 0)) + self
  }
}
