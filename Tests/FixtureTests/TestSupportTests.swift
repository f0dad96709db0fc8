import Foundation
import TestSupport
import Testing

/// Tools whose failure would let other tests pass.
@Suite("The tests' own tools can be trusted") struct TestSupportTests {
  @Test("What cannot start is an error, and so is a program that never says the word")
  func failures() throws {
    #expect(throws: SystemFailure.self) { try Command.run("/nowhere/at-all") }
    let command = try Command.spawn("/bin/sh", ["-c", "echo no"])
    #expect(throws: SystemFailure.self) { try command.waitForLine("ready") }
  }

  @Test("A tree's differences are seen, each aspect by itself")
  func differences() throws {
    try TemporaryDirectory.with { directory in
      let script = """
        mkdir -p "$0/d/empty"; cd "$0"
        echo one > d/file; ln d/file d/hard; ln -s file d/link; printf x > "$(printf 'd/\\377')"
        setfattr -n user.color -v red d/file
        """
      for name in ["a", "b"] {
        #expect(try Command.run("/bin/bash", ["-c", script, directory(name)]).succeeded)
      }
      let first = try TreeListing(directory("a"))
      #expect(first.paths == ["d", "d/empty", "d/file", "d/hard", "d/link", "d/\\xff"])
      #expect(try TreeListing(directory("b")).differences(from: first, comparing: TreeListing.timeless) == [])
      #expect(try !TreeListing(directory("b")).differences(from: first).isEmpty, "times differ")
      #expect(
        try TreeListing(directory("a")).differences(from: first, comparing: TreeListing.untouched) == [])

      let changes = [
        ("chmod 600 d/file", "d/file: mode was 644, is 600"),
        ("printf y > \"$(printf 'd/\\377')\"", "d/\\xff: content was 1 bytes “x”, is 1 bytes “y”"),
        ("ln -sfn other d/link", "d/link: linkTarget was file, is other"),
        (
          "setfattr -n user.color -v blue d/file", "d/file: attributes was user.color=red, is user.color=blue"
        ),
        ("cp -p d/hard d/new && mv d/new d/hard", "d/hard: hardLink was d/file, is own inode"),
        ("rmdir d/empty", "d/empty: only in the old tree"),
        ("touch d/more", "d/more: only in the new tree"),
        ("rm d/link && mkdir d/link", "d/link: type was symbolicLink, is directory"),
      ]
      for (change, line) in changes {
        #expect(try Command.run("/bin/bash", ["-c", change], directory: directory("a")).succeeded)
        let lines = try TreeListing(directory("a")).differences(from: first, comparing: TreeListing.timeless)
        #expect(lines.contains(line), "\(change): \(lines)")
      }
    }
  }

  @Test("A temporary directory goes away, whatever is in it")
  func removal() throws {
    let path = try TemporaryDirectory.with { directory throws in
      let script =
        "mkdir -p \"$0/a/b\"; touch \"$(printf '%s/a/b/\\376' \"$0\")\"; chmod 0 \"$0/a/b\" \"$0/a\""
      #expect(try Command.run("/bin/bash", ["-c", script, directory.path]).succeeded)
      return directory.path
    }
    #expect(!RawFiles.exists(Array(path.utf8)))
  }
}
