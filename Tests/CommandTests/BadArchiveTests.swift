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

  /// Reads damaged archives to the last byte: each is said to be bad.
  private func expectBad(
    _ sandbox: Sandbox, _ archives: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let verified = try sandbox.drydock(["verify", "--data"] + archives)
    let lines = verified.output.split(separator: "\n").filter { !$0.hasPrefix(" ") }
    let areBad =
      lines.count == archives.count && zip(lines, archives).allSatisfy { $0.hasPrefix("BAD \($1)  ") }
    #expect(verified.exitCode == 4 && areBad, "\(verified)", sourceLocation: sourceLocation)
  }

  @Test("Cut anywhere, also exactly at a frame's end, which passes every stock check")
  func cut() throws {
    try Sandbox.with { sandbox in
      let bytes = try prepare(sandbox)
      let frames = Array(Self.frameStarts(bytes).dropFirst())
      #expect(frames.count >= 2, "an archive has frames of content, the manifest's place and the seek table")
      let percent = [0, 1, 10, 50, 90, 99].map { bytes.count * $0 / 100 }
      let lengths = Set(frames + percent + [bytes.count - 1]).sorted()
      func archive(_ length: Int) -> String { "Bad/\(length).tar.zst" }
      for length in lengths { try sandbox.write(archive(length), bytes: Array(bytes.prefix(length))) }
      try Command.run(
        Tools.system("zstd"), ["-q", "-t"] + frames.map { sandbox(archive($0)) }
      ).expect()
      // Every way to read them says so; nothing is changed by trying.
      try sandbox.expectUnchanged {
        for length in lengths {
          for target in ["Notes", "New"] {
            try sandbox.expectError(["restore", archive(length), target], exit: 4, [archive(length)])
          }
        }
        for length in [frames[0], bytes.count / 2] {
          for arguments in [["restore", archive(length), "Notes", "--dry-run"], ["show", archive(length)]] {
            try sandbox.expectError(arguments, exit: 4, [archive(length)])
          }
        }
        try expectBad(sandbox, lengths.map(archive))
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
      let archives = places.map { "Bad/byte-\($0).tar.zst" }
      for (place, archive) in zip(places, archives) {
        var damaged = bytes
        damaged[place] ^= 0x20
        try sandbox.write(archive, bytes: damaged)
      }
      try expectBad(sandbox, archives)
      let before = try sandbox.tree()
      for archive in archives {
        // A restore needs not every byte; what it gives is right, or it gives nothing.
        let restored = try sandbox.drydock("restore", archive, "Notes")
        if restored.succeeded {
          try sandbox.succeed("rollback", "Notes")
        } else {
          restored.expectError(exit: 4, [archive])
        }
        try sandbox.tree().expectSame(as: before, archive)
      }
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
