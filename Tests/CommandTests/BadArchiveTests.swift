import Foundation
import TestSupport
import Testing

@Suite("Bad archives are refused, and nothing changes")
struct BadArchiveTests {
  /// A container with a good archive of it, then changed, so that a restore has something to do.
  private func prepare(_ sandbox: Sandbox) throws -> [UInt8] {
    try sandbox.create(version: 4, photos: 4)
    let bytes = try Array(RawFiles.read(Array(sandbox.snapshot().utf8)))
    try sandbox.remove("Notes/Documents/Photos/IMG_0002.jpg")
    try sandbox.write("Notes/Documents/empty.txt", "changed\n")
    return bytes
  }

  /// Every way to read it says so; nothing is changed by trying.
  private func expectRefused(_ sandbox: Sandbox, _ words: [String], readsEnd: Bool = true) throws {
    try sandbox.expectRefusal(["restore", "bad.tar.zst", "Notes"], exit: 4, words)
    try sandbox.expectRefusal(["restore", "bad.tar.zst", "Notes", "--dry-run"], exit: 4, words)
    try sandbox.expectRefusal(["restore", "bad.tar.zst", "New"], exit: 4, words)
    #expect(!sandbox.exists("New"))
    let verified = try sandbox.drydock("verify", "bad.tar.zst", "--data")
    #expect(verified.exitCode == 4 && verified.output.hasPrefix("BAD bad.tar.zst  "), "\(verified)")
    if readsEnd { try sandbox.expectRefusal(["show", "bad.tar.zst"], exit: 4, words) }
  }

  @Test("Cut anywhere", arguments: [0, 1, 10, 50, 90, 99])
  func cut(_ percent: Int) throws {
    try Sandbox.with { sandbox in
      let bytes = try prepare(sandbox)
      try sandbox.write("bad.tar.zst", bytes: Array(bytes.prefix(bytes.count * percent / 100)))
      try expectRefused(sandbox, ["bad.tar.zst"])
      try sandbox.write("bad.tar.zst", bytes: bytes.dropLast())
      try expectRefused(sandbox, ["bad.tar.zst"])
    }
  }

  @Test("Cut exactly at a frame's end, which passes every stock check")
  func cutAtFrame() throws {
    try Sandbox.with { sandbox in
      let bytes = try prepare(sandbox)
      let starts = Self.frameStarts(bytes)
      #expect(starts.count >= 3, "an archive has frames of content, the manifest's place and the seek table")
      for start in starts.dropFirst() {
        try sandbox.write("bad.tar.zst", bytes: Array(bytes.prefix(start)))
        let stock = try Command.run(Tools.system("zstd"), ["-q", "-t", sandbox("bad.tar.zst")])
        #expect(stock.succeeded, "the cut at \(start) is at a frame's end: \(stock)")
        try expectRefused(sandbox, ["bad.tar.zst"])
      }
    }
  }

  @Test("One flipped byte, at many places")
  func flipped() throws {
    try Sandbox.with { sandbox in
      let bytes = try prepare(sandbox)
      var random = SeededRandom(seed: 11)
      var places = (0..<12).map { _ in Int.random(in: 0..<bytes.count, using: &random) }
      places += [0, 4, 8, bytes.count - 1, bytes.count - 5, bytes.count - 9, bytes.count - 30]
      for place in places {
        var damaged = bytes
        damaged[place] ^= 0x20
        try sandbox.write("bad.tar.zst", bytes: damaged)
        let verified = try sandbox.drydock("verify", "bad.tar.zst", "--data")
        #expect(verified.exitCode == 4 && verified.output.hasPrefix("BAD "), "byte \(place): \(verified)")
        // A restore needs not every byte; what it gives is right, or it gives nothing.
        let before = try sandbox.tree()
        let restored = try sandbox.drydock("restore", "bad.tar.zst", "Notes")
        if restored.succeeded {
          #expect(try sandbox.drydock("rollback", "Notes").succeeded)
        } else {
          sandbox.expect(restored, refusedWith: 4, ["bad.tar.zst"], #_sourceLocation)
        }
        try sandbox.tree().expectSame(as: before, "byte \(place)")
      }
    }
  }

  @Test("What is no archive at all", arguments: ["text", "empty", "zstd", "tar", "directory", "noise"])
  func foreign(_ kind: String) throws {
    try Sandbox.with { sandbox in
      _ = try prepare(sandbox)
      var exit: Int32 = 4
      switch kind {
      case "text": try sandbox.write("bad.tar.zst", "this is not an archive, only text\n")
      case "empty": try sandbox.write("bad.tar.zst", "")
      case "zstd":
        try sandbox.write("plain.txt", "hello\n")
        try sandbox.run(Tools.system("zstd"), "-q", "-o", sandbox("bad.tar.zst"), sandbox("plain.txt"))
      case "tar":
        try sandbox.run(
          Tools.system("tar"), "--zstd", "-cf", sandbox("bad.tar.zst"), "-C", sandbox("Notes"), "Documents")
      case "directory":
        try sandbox.run(Tools.system("mkdir"), sandbox("bad.tar.zst"))
        exit = 1
      default:
        var random = SeededRandom(seed: 3)
        try sandbox.write("bad.tar.zst", bytes: random.bytes(100_000))
      }
      for arguments in [["restore", "bad.tar.zst", "Notes"], ["show", "bad.tar.zst"]] {
        try sandbox.expectRefusal(arguments, exit: exit, ["bad.tar.zst"])
      }
      #expect(try sandbox.drydock("verify", "bad.tar.zst").exitCode == exit)
    }
  }

  @Test("No archive there")
  func missing() throws {
    try Sandbox.with { sandbox in
      _ = try prepare(sandbox)
      for arguments in [
        ["restore", "no.tar.zst", "Notes"], ["show", "no.tar.zst"],
      ] {
        try sandbox.expectRefusal(arguments, exit: 1, ["no.tar.zst", "no such archive", "give a file"])
      }
      // One that is missing does not keep others from being verified.
      let verified = try sandbox.drydock("verify", "no.tar.zst", "drydock.yaml")
      #expect(verified.exitCode != 0, "\(verified)")
      #expect(
        verified.output.split(separator: "\n").map { $0.prefix(16) } == [
          "BAD no.tar.zst  ", "BAD drydock.yaml",
        ])
      try sandbox.expectRefusal(
        ["restore", "ffffffff", "Notes", "-r", "Backups"], exit: 1, ["ffffffff", "drydock list"])
      try sandbox.expectRefusal(
        ["restore", "Nobody@latest", "Notes", "-r", "Backups"], exit: 1, ["Nobody@latest"])
    }
  }

  @Test("An archive of several instances must be named")
  func ambiguous() throws {
    try Sandbox.with { sandbox in
      try sandbox.create("Other", version: 4, "--uuid", "0B7E2C11-1111-4222-8333-944455556666")
      _ = try sandbox.snapshot("Other")
      _ = try prepare(sandbox)
      try sandbox.expectRefusal(
        ["restore", "latest", "Notes", "-r", "Backups"], exit: 1,
        ["0B7E2C11-1111-4222-8333-944455556666", "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90", "INSTANCE@latest"])
      let named = "6A1F0C52-3D7E-4B8A-9C11-0E5D2F7A4B90@latest"
      try sandbox.succeed("restore", named, "Notes", "-r", "Backups")
    }
  }

  /// Where zstd and skippable frames begin, read as the format says: magic, then blocks until the last one.
  static func frameStarts(_ bytes: [UInt8]) -> [Int] {
    func number(_ offset: Int, _ count: Int) -> Int {
      (0..<count).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }
    var starts: [Int] = []
    var offset = 0
    while offset + 8 <= bytes.count {
      starts.append(offset)
      let magic = number(offset, 4)
      if (0x184d_2a50...0x184d_2a5f).contains(magic) {
        offset += 8 + number(offset + 4, 4)
        continue
      }
      guard magic == 0xfd2f_b528 else { return starts }
      let descriptor = Int(bytes[offset + 4])
      let isSingle = descriptor & 0x20 != 0
      let sizeField = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]
      offset += 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][descriptor & 3] + sizeField
      var isLast = false
      while !isLast {
        let header = number(offset, 3)
        isLast = header & 1 == 1
        offset += 3 + (header >> 1 & 3 == 1 ? 1 : header >> 3)
      }
      if descriptor & 4 != 0 { offset += 4 }
    }
    return starts
  }
}
