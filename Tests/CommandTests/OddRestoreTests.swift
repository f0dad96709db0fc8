import Foundation
import TestSupport
import Testing

/// Restores by a user who did not make the archive, and on file systems that lack something: what cannot be had is passed
/// over, the second restore finds nothing to do, and a rollback works.
@Suite struct OddRestoreTests {
  private static let make = """
    mkdir -p Box/closed/empty Box/shared; echo one > Box/closed/file; echo two > Box/owned; echo three > Box/own
    echo four > Box/shared/file; chmod 4755 Box/owned; chmod 2755 Box/own; chmod 2775 Box/shared
    setfattr -n security.drydock -v x Box/own; setfattr -n trusted.drydock -v x Box/shared
    setfattr -n user.drydock -v x Box/closed; chown 1234:5678 Box/owned; ln -s own Box/link; chown -h 7:8 Box/link
    chmod 555 Box/closed/empty Box/closed; printf 'app: com.example.box\\n' > drydock.yaml
    """

  private func with(commit: String? = nil, _ body: (Sandbox) throws -> Void) throws {
    try Sandbox.with(commit: commit) { sandbox in
      try sandbox.openToOthers()
      try sandbox.shell(Self.make)
      try sandbox.succeed("snapshot Box -o Box.tar.zst")
      try sandbox.shell("chmod 644 Box.tar.zst; mkdir -m 777 Place")
      try body(sandbox)
    }
  }

  @Test(arguments: ["automatic", "in-place"])
  func `A user restores what root has made`(_ way: String) throws {
    try with(commit: way) { sandbox in
      func drydock(_ arguments: String...) throws -> CommandResult { try sandbox.asOther(arguments) }
      try drydock("restore", "Box.tar.zst", "Place/Box", "--from-other", "--keep-set-id").expect()
      let restored = try sandbox.tree("Place/Box")
      // No set-id bits for somebody whom they were not meant for.
      #expect(restored["owned"]?.mode == 0o755 && restored["own"]?.mode == 0o755)
      #expect(restored["closed"]?.mode == 0o555 && restored["closed/empty"]?.mode == 0o555)
      #expect(restored["closed"]?.attributes.isEmpty == false)
      let lines = try restored.differences(
        from: sandbox.tree("Box"), comparing: [.type, .content, .linkTarget, .modified])
      #expect(lines == [])
      let again = try drydock("restore", "Box.tar.zst", "Place/Box", "--from-other", "--keep-set-id")
      #expect(again.output.contains("nothing to change"), "\(again)")

      try sandbox.run(
        "/bin/sh", "-ec",
        """
        cd Place/Box; chmod 755 closed; rm closed/file; setfattr -x user.drydock closed; chmod 555 closed
        mkdir -p new/empty; echo new > new/file; echo changed > own; chmod 555 new/empty new; chown -R 65534:65534 .
        """)
      let damaged = try sandbox.tree("Place/Box").without(".drydock-state")
      try drydock("restore", "Box.tar.zst", "Place/Box", "--from-other", "--keep-set-id").expect()
      let after = try sandbox.tree("Place/Box").without(".drydock-state")
      #expect(after.differences(from: restored, ignoringTimesOf: [""]) == [])
      try drydock("rollback", "Place/Box").expect()
      let rolledBack = try sandbox.tree("Place/Box").without(".drydock-state")
      #expect(rolledBack.differences(from: damaged, ignoringTimesOf: [""]) == [])
      #expect(try drydock("recover", "Place/Box").output.contains("nothing was interrupted"))
    }
  }

  @Test func `A directory with an attribute that a user may not set is left where it is`() throws {
    try with { sandbox in
      try sandbox.run(
        "/bin/sh", "-ec",
        "cp -a Box Place/Box; setfattr -n security.drydock -v x Place/Box/closed; chown -R 65534:65534 Place/Box"
      )
      try sandbox.write("Place/Box/own", "changed")
      try sandbox.asOther("restore Box.tar.zst Place/Box").expect(errors: "cannot reproduce")
      #expect(try sandbox.text("Place/Box/own") == "three\n")
      #expect(try sandbox.tree("Place/Box")["closed"]?.attributes.count == 2)
    }
  }

  @Test(arguments: ["ramfs", "overlay"])
  func `No attributes and no count of free blocks; a lower layer`(_ kind: String) throws {
    try with { sandbox in
      let setup = [
        "ramfs": "mount -t ramfs none \"$0/Place\"",
        "overlay": """
        mkdir "$0/Lower"; cp -a "$0/Box" "$0/Lower/"; mount -t tmpfs none "$0/tmp"; mkdir "$0/tmp/u" "$0/tmp/w"
        mount -t overlay -o "lowerdir=$0/Lower,upperdir=$0/tmp/u,workdir=$0/tmp/w" none "$0/Place"
        """,
      ]
      let space = try Namespace(sandbox, setup[kind] ?? "")
      let restore = ["restore", "Box.tar.zst", "Place/Box", "--keep-set-id"]
      if kind == "ramfs" { #expect(try space.drydock(restore).succeeded) }
      let before = try space.tree("Place/Box")
      _ = try space.run("/bin/sh", ["-ec", "echo changed > Place/Box/own"])
      try space.drydock(restore).expect()
      let lines = try space.tree("Place/Box").without(".drydock-state")
        .differences(from: before, ignoringTimesOf: [""])
      #expect(lines == [])
      let second = try space.drydock(restore)
      #expect(second.output.contains("nothing to change"), "\(second)")
      try space.drydock("rollback Place/Box").expect()
      #expect(try RawFiles.read(Array(space("Place/Box/own").utf8)) == Data("changed\n".utf8))
    }
  }

  @Test func `What a name or link says is one line and commands no terminal`() throws {
    try Sandbox.with { sandbox in
      try sandbox.write("drydock.yaml", "app: com.example.box\n")
      try sandbox.write("Box/a\nb", "x")
      try sandbox.write("Box/\u{1b}[31mred", "x")
      try sandbox.write("Box/\u{202e}txt.exe", "x")
      try sandbox.run("/bin/sh", "-c", "ln -s \"$(printf 'one\\ntwo\\t\\342\\200\\256')\" Box/link")
      try sandbox.succeed("snapshot Box -o Box.tar.zst")
      let shown = try sandbox.succeed("show Box.tar.zst")
      try sandbox.remove("Box/a\nb")
      let dry = try sandbox.succeed("restore Box.tar.zst Box --dry-run")
      for text in [shown, dry, try sandbox.succeed("restore Box.tar.zst Box")] {
        let isDeceiving = text.unicodeScalars.contains { ($0.value < 32 && $0 != "\n") || $0 == "\u{202e}" }
        #expect(!isDeceiving && !text.contains("\nb") && !text.contains("\ntwo"), "\(text)")
      }
      #expect(shown.contains("link → one\\x0atwo\\x09"))
    }
  }
}
