import Foundation
import TestSupport
import Testing

/// That every cut and flipped byte is found is tested in `DamagedArchiveTests` of the repository.
@Suite("Bad archives are refused, and nothing changes")
struct BadArchiveTests {
  @Test("Cut in the middle and at the end, and with a flipped byte: every way to read them says so")
  func bad() throws {
    try Sandbox.with { sandbox in
      try sandbox.create(version: 4, photos: 4)
      let bytes = try Array(RawFiles.read(Array(sandbox.snapshot().utf8)))
      try sandbox.remove("Notes/Documents/Photos/IMG_0002.jpg")
      try sandbox.write("Notes/Documents/empty.txt", "changed\n")
      var flipped = bytes
      flipped[bytes.count / 3] ^= 0x20
      let archives = ["cut", "short", "empty", "flipped"].map { "Bad/\($0).tar.zst" }
      let contents = [Array(bytes.prefix(bytes.count / 2)), Array(bytes.dropLast(1)), [], flipped]
      for (archive, content) in zip(archives, contents) { try sandbox.write(archive, bytes: content) }
      try sandbox.expectUnchanged {
        for archive in archives.dropLast() {
          for line in ["restore \(archive) Notes", "restore \(archive) New", "show \(archive)"] {
            try sandbox.expectError(line, exit: 4, [archive])
          }
        }
        try sandbox.expectError("restore \(archives[0]) Notes --dry-run", exit: 4, [archives[0]])
      }
      let verified = try sandbox.drydock(["verify", "--data"] + archives).expect(exit: 4)
      let lines = verified.output.split(separator: "\n").filter { !$0.hasPrefix(" ") }
      #expect(lines.count == archives.count, "\(verified)")
      for (line, archive) in zip(lines, archives) {
        #expect(line.hasPrefix("BAD \(archive)  "), "\(verified)")
      }
    }
  }
}
