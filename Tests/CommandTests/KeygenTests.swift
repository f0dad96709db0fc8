import Foundation
import TestSupport
import Testing

/// What the transcript cannot show of `drydock keygen`.
@Suite struct KeygenTests {
  private let sandbox: Sandbox
  init() throws { sandbox = try Sandbox() }

  @Test func `The file is its owner's alone, whatever the mask says, and each key is another`() throws {
    for (number, mask) in ["000", "022", "077"].enumerated() {
      let result = try sandbox.execute(
        "/bin/sh", ["-c", "umask \(mask); \"$0\" keygen -o key\(number)", sandbox.program]
      ).expect()
      #expect(result.output.isEmpty, "\(result)")
      let status = try RawFiles.status(Array(sandbox("key\(number)").utf8))
      #expect(status.st_mode & 0o7777 == 0o600)
    }
    let keys = try (0..<3).map { try RawFiles.read(Array(sandbox("key\($0)").utf8)) }
    #expect(Set(keys).count == 3)
  }

  @Test func `What is there already stays: a file, a link to one or to nothing, a directory`() throws {
    try sandbox.write("file", "kept")
    try FileManager.default.createSymbolicLink(atPath: sandbox("link"), withDestinationPath: "file")
    try FileManager.default.createSymbolicLink(atPath: sandbox("dangling"), withDestinationPath: "new")
    for name in ["file", "link", "dangling", "tmp"] {
      let result = try sandbox.drydock("keygen", "-o", name).expect(exit: 1, errors: "already exists")
      #expect(!result.errors.contains("AGE-SECRET") && !result.errors.contains("Public key"))
    }
    #expect(try RawFiles.read(Array(sandbox("file").utf8)) == Data("kept".utf8))
    #expect(!RawFiles.exists(Array(sandbox("new").utf8)))
  }

  @Test func `A key file that cannot be written whole is not left behind`() throws {
    // A limit on the size of files stands for a full disk; its signal is ignored, so that the call fails.
    try sandbox.execute(
      "/bin/sh",
      ["-c", "trap '' XFSZ; ulimit -f 0; \"$0\" keygen -o key.txt >/dev/null 2>/dev/null", sandbox.program]
    ).expect(exit: 1)
    #expect(!RawFiles.exists(Array(sandbox("key.txt").utf8)))
  }

  @Test func `At a terminal the key is shown once, and no remark is made`() throws {
    let result = try sandbox.atTerminal("", ["keygen"]).expect(errors: "# public key: age1")
    #expect(!result.errors.contains("Public key:"))
  }
}
