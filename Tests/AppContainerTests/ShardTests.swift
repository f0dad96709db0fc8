import DrydockErrors
import Foundation
import TestSupport
import Testing

@testable import AppContainer

@Suite("Shards and lists of containers")
struct ShardTests {
  @Test("Every name is in exactly one shard, whatever their number")
  func partition() throws {
    var random = SeededRandom(seed: 18)
    for _ in 0..<40 {
      let count = Int.random(in: 1...64, using: &random)
      let shards = try (1...count).map { try Shard($0, of: count) }
      for _ in 0..<20 {
        let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
          UInt8.random(in: 0...255, using: &random)
        }
        let name = String(decoding: bytes, as: UTF8.self)
        let own = shards.filter { $0.contains(name) }
        #expect(own.count == 1, "\(name.debugDescription) of \(count): \(own)")
      }
    }
  }

  /// Computed by another program: `int.from_bytes(hashlib.sha256(name).digest()[:8], "big")`.
  @Test(
    "The hash is the documented one",
    arguments: [
      ("anna", 6149554607595376846), ("ben", 7422080192894945294), ("carl", 7620057476322828767),
      ("", 16406829232824261652), ("Zoë", 14312763526516556048), ("c00001", 5715417465584127368),
    ] as [(String, UInt64)])
  func hash(_ name: String, _ hash: UInt64) throws {
    #expect(Shard.hash(name) == hash)
    #expect(try Shard(Int(hash % 8) + 1, of: 8).contains(name))
  }

  @Test(
    "A text names a shard or is refused",
    arguments: ["0/8", "9/8", "1/0", "+1/8", "1/ 8", "1", "1/8/2", "", "/", "-1/8", "1/99999999999999999999"])
  func refused(_ text: String) {
    #expect(Shard(text) == nil)
  }

  @Test("The shards of a directory together have all its containers once, and all other entries once")
  func directory() throws {
    let folder = try TemporaryDirectory()
    for number in 0..<40 {
      try RawFiles.createDirectories(folder("all/c\(number)/shared_prefs"))
      try Data().write(to: URL(fileURLWithPath: folder("all/f\(number)")))
      try FileManager.default.createSymbolicLink(
        atPath: folder("all/l\(number)"), withDestinationPath: "c\(number)")
    }
    let whole = try ContainerDirectory(folder("all"))
    #expect(whole.containers.count == 40 && whole.skipped.count == 40)
    for count in [1, 2, 7, 100] {
      let parts = try (1...count).map { try ContainerDirectory(folder("all"), shard: Shard($0, of: count)) }
      #expect(parts.flatMap(\.containers).map(\.name).sorted() == whole.containers.map(\.name))
      #expect(parts.flatMap(\.skipped).sorted() == whole.skipped)
    }
    #expect(throws: DrydockError.self) { try ContainerDirectory(folder("gone"), shard: Shard(1, of: 2)) }
    try RawFiles.createDirectories(folder("empty"))
    #expect(throws: DrydockError.self, "a mistaken path is not an empty shard") {
      try ContainerDirectory(folder("empty"), shard: Shard(1, of: 2))
    }
  }

  private func list(_ text: String, shard: Shard? = nil) throws -> ContainerDirectory {
    try ContainerDirectory(list: Array(text.utf8), at: "list", relativeTo: "above/", shard: shard)
  }

  @Test("A list has one path a line, relative to its directory; comments and blank lines do not count")
  func lists() throws {
    let found = try list("\u{FEFF}# all\n\nben\r\n./anna//Data/\n./#x\n/srv/carl")
    #expect(found.containers.map(\.name) == ["#x", "/srv/carl", "anna/Data", "ben"])
    #expect(found.containers.map(\.path) == ["above/#x", "/srv/carl", "above/anna/Data", "above/ben"])
    #expect(found.skipped.isEmpty)
    let names = (0..<100).map { "c\($0)" }
    let parts = try (1...7).map { try list(names.joined(separator: "\n"), shard: Shard($0, of: 7)) }
    #expect(parts.flatMap(\.containers).map(\.name).sorted() == names.sorted())
  }

  @Test("Names are not trimmed")
  func spaces() throws {
    #expect(try list("\u{FEFF} ben\nben \n\tben").containers.map(\.name) == ["\tben", " ben", "ben "])
  }

  @Test("A container that a list names twice is refused with both lines, however it is named")
  func again() throws {
    let folder = try TemporaryDirectory()
    try RawFiles.createDirectories(folder("a"))
    try FileManager.default.createSymbolicLink(atPath: folder("link"), withDestinationPath: "a")
    for (other, shard) in [
      ("a", nil), (folder("a"), try Shard(1, of: 2)), ("link", try Shard(2, of: 2)), ("./gone", nil),
    ] as [(String, Shard?)] {
      let text = "# all\ngone\na\n\(other)\n"
      let error = expectError(.malformed, "as in line \(other == "./gone" ? 2 : 3)") {
        try ContainerDirectory(list: Array(text.utf8), at: "list", relativeTo: folder(""), shard: shard)
      }
      #expect(error?.place == "list:4:1", "\(other)")
    }
  }

  @Test("A list without paths, and one that is no text, are refused with the line")
  func badLists() throws {
    #expect(throws: DrydockError.self) { try list("# nothing\n\n") }
    let error = expectError(.malformed) {
      try ContainerDirectory(list: Array("a\nb".utf8) + [0xFF], at: "list", relativeTo: "")
    }
    #expect(error?.place == "list:2:1")
  }
}
